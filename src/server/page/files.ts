/** Reads folders and files for the page, searches them, and changes memories. */
import type { Backend, FileInfo } from "../../backends/backend.ts";
import { parseContent } from "../../backends/file-data.ts";
import { oneLine } from "../../core/text.ts";
import { type RunView, isApproval } from "../../runs/run.ts";
import type { FileChange, ShownChange } from "../views/room/changes.ts";
import { type FileTree, MEMORIES, type Mark, folderOf } from "../views/room/file-tree.ts";
import { type FilesFound, type FilesScreen, LINES_OF_PAGE, renderFiles } from "../views/room/files.ts";
import type { Screen } from "../views/room/shell.ts";
import type { CombinedDiff } from "../views/content/combined-diff.ts";
import type { Html } from "../views/html.ts";
import { approvalsOfChanges, changesOfMany, changesOfRun, inFolder, joinedChange } from "./file-changes.ts";
import { renderedDiff } from "./whole-text.ts";
import { decodeOnce } from "../contracts/uris.ts";
import { type ScreenContext, headOf, waitingFor } from "./screen-context.ts";
import { filesPath, isShared, linesPath } from "../contracts/viewer.ts";
import { isAsItIs } from "./unchanged.ts";

const MAX = {
  roots: 20,
  hits: 20,
  names: 50,
  matches: 100,
  perFile: 5,
  changes: 50,
  looked: 50,
  searchMs: 10_000,
};

export interface FilesRequest {
  context: ScreenContext;
  /** The run whose files they are; absent: the files that all runs share. */
  runId: string | undefined;
  /** The path as the address has it. */
  address: string;
  query: URLSearchParams;
  now: number;
  complaint?: FilesScreen["complaint"];
}

/** The path of a file in an address below that of files; a folder ends in a slash. */
const readPath = (address: string, base: string): string => decodeOnce(address.slice(base.length)) || "/";

/** The files of one request, with the run that they belong to. `undefined`: no such run. */
async function loadTree({ context: { runs }, runId }: FilesRequest) {
  if (runId === undefined) return { backend: await runs.files.mounts(), view: undefined };
  const [backend, view] = await Promise.all([runs.files.ofRun(runId), runs.read.view(runId)]);
  return backend === undefined || view === undefined ? undefined : { backend, view };
}

/** Returns undefined if the run is unknown. */
export async function filesScreen(request: FilesRequest): Promise<Screen | undefined> {
  const { context, runId, query, now, complaint } = request;
  const { runs, session } = context;
  const found = await loadTree(request);
  if (found === undefined) return undefined;
  const { backend, view } = found;
  const base = filesPath(runId);
  const path = readPath(request.address, base);
  // Those who follow a shared link see the changes of the run, and no file as it is.
  const isOnlyChanged = isShared(session);
  const asked = isOnlyChanged ? "" : (query.get("q") ?? "").trim().slice(0, 200);
  const line = Number(query.get("from") ?? 0);
  const from = Number.isSafeInteger(line) && line > 0 ? line : 0;
  const isFile = !path.endsWith("/") && asked === "";
  const [listings, file, known, results] = await Promise.all([
    isOnlyChanged ? new Map<string, FileInfo[]>([["/", []]]) : listingsFor(backend, path, view === undefined),
    isFile && !isOnlyChanged ? backend.read(path, from, LINES_OF_PAGE) : undefined,
    view === undefined
      ? changesOfMany(context).then((changes) => ({ changes, isAll: false }))
      : changesOfRun(runs, view.run).then((own) => ({ ...own, changes: inFolder(own.changes, view.run) })),
    asked === "" ? undefined : search(backend, asked, view === undefined ? context : undefined),
  ]);
  if (file?.code === "is_directory") return filesScreen({ ...request, address: `${request.address}/` });
  const all = known.changes;
  const own = isFile ? all.filter(({ data }) => data.path === path).slice(0, MAX.changes) : [];
  const tree: FileTree = {
    base,
    path,
    listings,
    query: asked,
    marks: await loadMarks(all, backend),
    isOnlyChanged,
    ...(view === undefined ? {} : { changed: view.filesChanged }),
  };
  const listed = listings.get(folderOf(path)) ?? [];
  const entry = typeof listed === "string" ? undefined : listed.find((one) => one.path === path);
  const asLook = query.get("view");
  const look = asLook === "changes" || asLook === "history" ? asLook : isOnlyChanged ? "changes" : "file";
  const joined =
    view !== undefined && look === "changes" && own.length > 0 ? joinedChange(known, path) : undefined;
  const screen: FilesScreen = {
    session,
    tree,
    file,
    size: entry?.size,
    changes: await shownChanges(own, request, { view, isShown: look !== "file" && joined === undefined }),
    look,
    joined: joined && (await shownJoined(request, path, joined)),
    found: results,
    complaint,
  };
  const head = view && (await headOf(context, view, "files"));
  return {
    title: path === "/" ? "Files" : oneLine(path, 80),
    place: view === undefined ? "files" : "runs",
    waiting: await waitingFor(context, view),
    isLive: false,
    session,
    main: renderFiles(screen, head?.(now)),
  };
}

/** All changes of a file by the run of the request, as one. */
async function shownJoined(
  { context, runId = "" }: FilesRequest,
  path: string,
  { diff, added, removed }: CombinedDiff,
): Promise<Html> {
  const isKnown = await isAsItIs(context, runId, { path, diff, side: "newLine" });
  const lines = isKnown ? linesPath(runId, { file: path }) : undefined;
  return renderedDiff(path, diff, {
    lines,
    counts: { added, removed },
    remark: "against the file before this run",
  });
}

/** The whole text of a file. `undefined`: no such run, or no such text. */
export async function fileText(request: FilesRequest): Promise<string | undefined> {
  if (isShared(request.context.session)) return undefined;
  const found = await loadTree(request);
  const path = readPath(request.address, filesPath(request.runId));
  const { data } = (await found?.backend.readRaw(path)) ?? {};
  const known = data && parseContent(path, data);
  return known?.ok === true && known.content.kind === "text" ? known.content.text : undefined;
}

/** The entries of the root, of all folders on the way to `path`, and with `opensRoots` of the folders in the root. */
async function listingsFor(backend: Backend, path: string, opensRoots: boolean) {
  const listings = new Map<string, FileInfo[] | string>();
  const list = async (folder: string): Promise<void> => {
    const listed = await backend.ls(folder);
    const entries = listed.error === undefined ? (listed.files ?? []) : oneLine(listed.error, 300);
    listings.set(folder, entries);
  };
  const way: string[] = [];
  for (let folder = path.endsWith("/") ? path : folderOf(path); folder.length > 1; folder = folderOf(folder))
    way.push(folder);
  await Promise.all(["/", ...way].map(list));
  const top = listings.get("/") ?? [];
  if (opensRoots && typeof top !== "string") {
    const roots = top.filter((entry) => entry.path.endsWith("/") && !listings.has(entry.path));
    await Promise.all(roots.slice(0, MAX.roots).map((root) => list(root.path)));
  }
  return listings;
}

/** `changes`: the newest first. A change without a diff may be a deletion: the file is then missing. */
async function loadMarks(changes: readonly FileChange[], backend: Backend): Promise<Map<string, Mark>> {
  const marks = new Map<string, Mark>();
  const unsure: string[] = [];
  for (const { data } of changes) {
    if (!marks.has(data.path) && data.diff === undefined) unsure.push(data.path);
    const isNew = data.diff?.startsWith("--- /dev/null\n") === true;
    marks.set(data.path, isNew ? "A" : (marks.get(data.path) ?? "M"));
  }
  await Promise.all(
    unsure.slice(0, MAX.looked).map(async (path) => {
      if ((await backend.read(path, 0, 1)).code === "not_found") marks.set(path, "D");
    }),
  );
  return marks;
}

/** `changes`: those of one file, the newest first. */
async function shownChanges(
  changes: readonly FileChange[],
  { context }: FilesRequest,
  { view, isShown }: { view: RunView | undefined; isShown: boolean },
): Promise<ShownChange[]> {
  const approvals = new Map<FileChange, ShownChange["approval"]>();
  for (const id of new Set(changes.map(({ run }) => run.id))) {
    const own = changes.filter(({ run }) => run.id === id);
    const decided = (view ?? (await context.runs.read.view(id)))?.requests.filter(isApproval) ?? [];
    const found = approvalsOfChanges(own, decided);
    for (const change of own) approvals.set(change, found.get(change.seq));
  }
  return Promise.all(
    changes.map(async (change, index) => {
      const { run, seq, data } = change;
      const { path, diff, added, removed } = data;
      // An earlier change left a file that later ones have changed.
      const isKnown =
        isShown &&
        index === 0 &&
        diff !== undefined &&
        (await isAsItIs(context, run.id, { path, diff, side: "newLine" }));
      const lines = isKnown ? linesPath(run.id, { change: String(seq) }) : undefined;
      const counts = added === undefined || removed === undefined ? undefined : { added, removed };
      const shown =
        isShown && diff !== undefined ? await renderedDiff(path, diff, { lines, counts }) : undefined;
      return { ...change, isOfMany: view === undefined, approval: approvals.get(change), shown };
    }),
  );
}

/** Searches names and contents; for `shared`, which is not of one run, memories by their meaning too. */
async function search(
  backend: Backend,
  query: string,
  shared: Pick<ScreenContext, "runs" | "session"> | undefined,
): Promise<FilesFound> {
  const signal = AbortSignal.timeout(MAX.searchMs);
  const [found, memories] = await Promise.all([
    searchFiles(backend, query, { under: "/", signal }),
    shared?.runs.files.searchMemories(query, MAX.hits),
  ]);
  const { names, lines } = found;
  const cut = found.isCut ? ["There are more results. Search for more of the name or the text."] : [];
  return { names, lines, memories, notes: [...found.notes, ...cut] };
}

/** Searches names and contents of files below a folder, in capital and small letters; `namesOnly` leaves contents out. */
export async function searchFiles(
  backend: Backend,
  query: string,
  { under, namesOnly = false, signal }: { under: string; namesOnly?: boolean; signal: AbortSignal },
): Promise<Pick<FilesFound, "names" | "lines" | "notes"> & { isCut: boolean }> {
  const options = { caseSensitive: false, maxPerFile: MAX.perFile, signal };
  const anyCase = Array.from(query, (letter) => {
    const [small, capital] = [letter.toLowerCase(), letter.toUpperCase()];
    const isPair = small !== capital && [small, capital].every((one) => Array.from(one).length === 1);
    if (isPair) return `[${small}${capital}]`;
    return /[\p{L}\p{N}/]/u.test(letter) ? letter : `\\${letter}`;
  }).join("");
  const [named, inside] = await Promise.all([
    backend.glob(`**/*${anyCase}*`, under, { signal }),
    namesOnly ? undefined : backend.grep(query, under, null, MAX.matches, options),
  ]);
  const names = (named.files ?? []).map(({ path }) => path);
  const failures = [named, inside].flatMap((result) =>
    result?.error === undefined
      ? []
      : [result.code === "aborted" ? "The search took too long and was stopped." : result.error],
  );
  return {
    names: names.slice(0, MAX.names),
    lines: (inside?.matches ?? []).slice(0, MAX.matches),
    notes: [...new Set([...failures, ...(named.notes ?? []), ...(inside?.notes ?? [])])],
    isCut: names.length > MAX.names || inside?.truncated === true,
  };
}

/** Stores the memory as the person wrote it, or returns the reason why not, such as a change by somebody else. */
export async function saveMemory(
  backend: Backend,
  { path, content, version }: { path: string; content: string; version: string },
): Promise<string | undefined> {
  if (!path.startsWith(MEMORIES)) return "Only memories can be changed here.";
  const expected = version === "" ? {} : { expectedVersion: version };
  const saved = await backend.write(path, content, { mode: "overwrite", ...expected });
  if (saved.code === "conflict")
    return "This file changed while you were editing. Review the new version, then save.";
  return saved.error;
}

export async function deleteMemory(backend: Backend, path: string): Promise<string | undefined> {
  if (!path.startsWith(MEMORIES) || backend.delete === undefined) return "Only memories can be deleted here.";
  return (await backend.delete(path)).error;
}
