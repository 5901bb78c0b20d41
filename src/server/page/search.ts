/** Searches everything that the page shows: runs, files, memories and commands. */
import type { Backend } from "../../backends/backend.ts";
import { groupBy } from "../../core/group-by.ts";
import type { Run } from "../../runs/run.ts";
import type { MemorySearch } from "../../runs/service.ts";
import { MEMORIES } from "../views/room/file-tree.ts";
import { TABS } from "../views/room/run-head.ts";
import { type Command, KINDS, type Kind, has, renderSearch, startAddress } from "../views/room/search.ts";
import type { Screen } from "../views/room/shell.ts";
import { searchFiles } from "./files.ts";
import { type ScreenContext, waitingFor } from "./screen-context.ts";
import { mayRun, runPath, schedulePath } from "../contracts/viewer.ts";

const MAX = { query: 200, each: 50, roots: 20 };
/** Time limits of a search, in milliseconds. */
const PATIENCE_MS = { names: 2000, all: 10_000 };

/** `signal`: aborts when nobody waits for the results. */
export async function searchScreen(
  context: ScreenContext,
  query: URLSearchParams,
  now: number,
  signal: AbortSignal,
): Promise<Screen> {
  const { session } = context;
  const text = (query.get("q") ?? "").trim().slice(0, MAX.query).toWellFormed();
  const isPart = query.get("part") === "names" && text !== "";
  const { all, waiting, counts, files, memories } = await search(context, text, isPart, signal);
  const commands = findCommands(text, query.get("run") ?? "", waiting, counts);
  if (mayRun(session) && has(SCHEDULES.name, text)) commands.push(SCHEDULES);
  const isFound = Object.values(all).some(({ length }) => length > 0) || commands.length > 0;
  const name = text === "" ? "Start a run" : `Start a run with “${text}”`;
  if (mayRun(session) && (isFound || text === ""))
    commands.unshift({ name, address: startAddress(text), icon: "up" });
  const runs = Object.values(counts).reduce((total, count) => total + count, 0);
  const isCut = (kind: keyof typeof all): boolean =>
    all[kind].length > MAX.each || (kind === "files" && files.isCut);
  const main = renderSearch({
    session,
    query: text,
    kind: KINDS.find((kind) => kind === query.get("kind")),
    found: {
      runs: all.runs.slice(0, MAX.each),
      files: all.files.slice(0, MAX.each),
      memories: all.memories.slice(0, MAX.each),
      commands,
    },
    cut: new Set<Kind>((["runs", "files", "memories"] as const).filter(isCut)),
    isPart,
    places: `Searched ${runs === 1 ? "1 run" : `${runs} runs`}, ${files.places}, and memories. Hidden files are not searched.`,
    notes: [...files.notes, ...(memories.note === undefined ? [] : [memories.note])],
    now,
  });
  const title = text === "" ? "Search" : `Search: ${text}`;
  return { title, place: "search", waiting, isLive: false, session, main };
}

/** Searches runs, files and memories; `namesOnly` leaves contents out. */
export async function search(context: ScreenContext, text: string, namesOnly: boolean, signal: AbortSignal) {
  const { runs, folderOf } = context;
  const patience = AbortSignal.timeout(namesOnly ? PATIENCE_MS.names : PATIENCE_MS.all);
  const until = AbortSignal.any([signal, patience]);
  const none: MemorySearch = { hits: [] };
  const noFiles: FoundFiles = { names: [], lines: [], notes: [], isCut: false, places: "files" };
  const [waiting, counts, listed, files, memories] = await Promise.all([
    waitingFor(context),
    runs.read.counts(),
    runs.read.summaries(text === "" ? {} : { text, tasksOnly: namesOnly }, { limit: MAX.each + 1 }),
    text === "" ? noFiles : filesWith(await runs.files.mounts(), text, { namesOnly, signal: until }),
    text === "" || namesOnly ? none : runs.files.searchMemories(text, MAX.each + 1),
  ]);
  const all = {
    runs: byName(listed, text, ({ task }) => task).map((run) => ({ ...run, folder: folderOf?.(run) })),
    files: [...files.names.map((path) => ({ path })), ...files.lines],
    memories: byName(memories.hits, text, ({ path }) => path),
  };
  return { all, waiting, counts, files, memories };
}

/** Those whose names have the text come first. */
const byName = <One>(found: readonly One[], text: string, nameOf: (one: One) => string): One[] =>
  found.toSorted((one, other) => Number(has(nameOf(other), text)) - Number(has(nameOf(one), text)));

/** `lines`: the first one of each other file. `places`: names the folders that were searched. */
type FoundFiles = Awaited<ReturnType<typeof searchFiles>> & { places: string };

/** Memories are left out: their own search finds them without reading all of them. */
async function filesWith(
  backend: Backend,
  text: string,
  options: { namesOnly: boolean; signal: AbortSignal },
): Promise<FoundFiles> {
  const { files = [] } = await backend.ls("/");
  const roots = files.map(({ path }) => path).filter((path) => path.endsWith("/") && path !== MEMORIES);
  const searched = roots.slice(0, MAX.roots);
  const found = await Promise.all(searched.map((under) => searchFiles(backend, text, { ...options, under })));
  const names = found.flatMap((one) => one.names);
  const byPath = groupBy(
    found.flatMap((one) => one.lines),
    ({ path }) => path,
  );
  return {
    names: names.toSorted((one, other) => one.length - other.length),
    lines: [...byPath].flatMap(([path, lines]) => (names.includes(path) ? [] : lines.slice(0, 1))),
    notes: [...new Set(found.flatMap((one) => one.notes))],
    isCut: found.some((one) => one.isCut),
    places: `the files in ${searched.map((path) => path.slice(1, -1)).join(", ")}`,
  };
}

const SCHEDULES: Command = { name: "Show schedules", address: schedulePath(), icon: "clock" };

/** Commands that make sense now and whose names have the text. `run`: the one whose screen is open, or empty. */
function findCommands(
  text: string,
  run: string,
  waiting: number,
  counts: Readonly<Record<Run["status"], number>>,
): Command[] {
  const ofRun = run === "" ? [] : ([...TABS, "files"] as const);
  const commands: readonly (Command & { isOff?: boolean })[] = [
    { name: "Review open requests", address: "/review", icon: "ask", key: "R", isOff: waiting === 0 },
    ...ofRun.map((tab) => ({
      name: `Show ${tab} of this run`,
      address: `${runPath(run)}/${tab}`,
      icon: "list" as const,
    })),
    { name: "Show runs at work", address: "/?status=working", icon: "work", isOff: counts.working === 0 },
    { name: "Show failed runs", address: "/?status=failed", icon: "fail", isOff: counts.failed === 0 },
    { name: "Show all runs", address: "/", icon: "list" },
    { name: "Browse files and memories", address: "/files", icon: "folder" },
  ];
  return commands.filter(({ name, isOff }) => isOff !== true && has(name, text));
}
