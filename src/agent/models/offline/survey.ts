import { type Area, foldersToList, isExamined, planAreas } from "./areas.ts";
import { type CallRecord, callsOf, failureText, textArgument, type Turn } from "./conversation.ts";
import { searchWords } from "./search-words.ts";
import { type Entry, parseListing, parsePaths } from "./tool-output.ts";

const WORKSPACE = "/workspace/";
const MEMORIES = "/memories/";
export const MEMORY_FILE = "/memories/offline-notes.md";
const MOUNTS = ["/memories/", "/skills/", "/conversation_history/", "/large_tool_results/"];

/** What the main agent knows so far, read from the calls of its turn. */
export interface Survey {
  words: string[];
  /** `/workspace/`, or `/` when no folder is mounted there. */
  base: string;
  entries: Entry[];
  /** Folders of the base that are worth listing, with trailing slash. */
  folders: string[];
  /** Areas to examine; complete once the folders are listed. */
  areas: Area[];
  /** Whether `/memories/` is kept for later threads. */
  remembers: boolean;
  /** Text of the notes kept from earlier tasks, as numbered lines; empty when there are none. */
  notes: string;
  hasNotes: boolean;
}

export function surveyOf(turn: Turn): Survey {
  const words = searchWords(turn.task);
  const root = listing(turn, "/");
  const listed = listing(turn, WORKSPACE);
  const workspace = listed.length > 0 ? listed : entriesOf(globbed(turn, WORKSPACE).paths);
  const mounted = workspace.length > 0 || has(root, WORKSPACE);
  const base = mounted ? WORKSPACE : "/";
  const entries = mounted ? workspace : root.filter(({ path }) => !MOUNTS.includes(`${path}/`));
  const folders = foldersToList(entries, words);
  const files = entries.filter(({ directory }) => !directory).map(({ path }) => path);
  const inFolders = new Map(folders.map((folder) => [folder, filesBelow(turn, folder)]));
  const memories = listing(turn, MEMORIES);
  return {
    words,
    base,
    entries,
    folders,
    areas: planAreas({ base, files, folders: inFolders }, words),
    remembers: has(root, MEMORIES) || memories.length > 0,
    hasNotes: memories.some(({ path }) => path === MEMORY_FILE),
    notes: callsOf(turn, "read_file").find(isNotes)?.result ?? "",
  };
}

/** The folders of interest that the listing of `/` has. */
export function mountsOf(turn: Turn): string[] {
  const root = listing(turn, "/");
  return [WORKSPACE, MEMORIES].filter((folder) => has(root, folder));
}

function isNotes(call: CallRecord): boolean {
  return !call.failed && textArgument(call, "file_path") === MEMORY_FILE;
}

function listing(turn: Turn, path: string): Entry[] {
  const call = callsOf(turn, "ls").find((call) => textArgument(call, "path") === path);
  return call === undefined || call.failed ? [] : parseListing(call.result);
}

function has(entries: readonly Entry[], folder: string): boolean {
  return entries.some(({ path, directory }) => directory && `${path}/` === folder);
}

function filesBelow(turn: Turn, folder: string): { paths: string[]; more: number } {
  const { paths, more, asked } = globbed(turn, folder);
  const found = asked ? paths : globbed(turn, WORKSPACE).paths.filter((path) => path.startsWith(folder));
  return { paths: found.filter((path) => isExamined(path, folder)), more };
}

function globbed(turn: Turn, folder: string): { paths: string[]; more: number; asked: boolean } {
  const call = callsOf(turn, "glob").find((call) => textArgument(call, "path") === folder);
  if (call === undefined) return { paths: [], more: 0, asked: false };
  // A folder that could not be listed is still an area: its subagent says what went wrong.
  if (call.failed) return { paths: [], more: 1, asked: true };
  return { ...parsePaths(call.result), asked: true };
}

/** What `ls` would say, out of the paths below the workspace. */
function entriesOf(paths: readonly string[]): Entry[] {
  const entries = new Map<string, Entry>();
  for (const path of paths) {
    const [name = "", ...rest] = path.slice(WORKSPACE.length).split("/");
    const entry = { path: `${WORKSPACE}${name}`, directory: rest.length > 0 };
    entries.set(entry.path, entry);
  }
  return [...entries.values()];
}

/** How a write went: not asked for, not possible, done, or refused with the reason. */
export type WriteOutcome =
  | { kind: "none" }
  | { kind: "written"; path: string }
  | { kind: "refused"; path: string; rejected: boolean; reason: string };

/** The newest attempt to write a file for which `isTarget` holds. */
export function writeOutcome(turn: Turn, isTarget: (path: string) => boolean): WriteOutcome {
  const attempts = turn.calls.filter(
    (call) =>
      (call.name === "write_file" || call.name === "edit_file") && isTarget(textArgument(call, "file_path")),
  );
  const last = attempts.at(-1);
  if (last === undefined) return { kind: "none" };
  const asked = textArgument(last, "file_path");
  if (!last.failed) {
    // A person may have changed the call before approving it; the result names what was written.
    return { kind: "written", path: /'(\/[^']+)'/.exec(last.result)?.[1] ?? asked };
  }
  return { kind: "refused", path: asked, rejected: !isToolFailure(last), reason: failureText(last) };
}

/** Whether the tool itself failed; the words of a person who rejects a call have no such prefix. */
function isToolFailure({ result }: CallRecord): boolean {
  return result.startsWith("Error: ") || result === "" || result.startsWith("Tool call was cancelled");
}

/** Whether a write failed only because the name is taken, by a file that is not known or not as it was. */
export function isTaken(outcome: WriteOutcome): boolean {
  return (
    outcome.kind === "refused" &&
    !outcome.rejected &&
    /already exists|changed since it was read/.test(outcome.reason)
  );
}
