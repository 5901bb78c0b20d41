/** What the offline model knows of a workspace: its areas, and which of them each subagent is given. */
import { z } from "zod";
import { oneLine } from "../../../core/text.ts";
import {
  type CallRecord,
  type Entry,
  type Turn,
  callsOf,
  failureText,
  parseListing,
  parsePaths,
  searchWords,
  textArgument,
} from "./conversation.ts";

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

/** A part of the workspace that one subagent examines. */
export interface Area {
  title: string;
  folders: AreaFolder[];
  files: number;
}

export interface AreaFolder {
  /** With a trailing slash. */
  path: string;
  /** Whether the folders below count, too. */
  deep: boolean;
}

/** What the workspace looks like. */
export interface Inventory {
  /** `/workspace/`, or `/` when there is no such mount. */
  base: string;
  /** Files directly in the base. */
  files: string[];
  /** Files below each folder of the base, as far as they were listed. */
  folders: ReadonlyMap<string, { paths: readonly string[]; more: number }>;
}

/** Most areas of one task: each is a subagent. */
const MOST_AREAS = 6;
/** Folders listed to count what is in them. */
const MOST_FOLDERS = 16;
/** A folder with more files than this is worth several subagents when there are few areas. */
const LARGE_FOLDER = 24;
const FEW_AREAS = 3;

const SKIPPED_FOLDERS: ReadonlySet<string> = new Set(
  "node_modules bower_components vendor venv env dist build out target coverage tmp temp __pycache__ __snapshots__ large_tool_results conversation_history".split(
    " ",
  ),
);
const KEPT_DOT_FOLDERS = new Set([".github"]);
const SECRET_FILES: ReadonlySet<string> = new Set([
  "id_rsa",
  "id_dsa",
  "id_ecdsa",
  "id_ed25519",
  ".env",
  ".npmrc",
  ".netrc",
  "credentials",
]);
const SECRET_NAME = /^\.env\.|\.(?:pem|key|p12|pfx|keystore)$/;
const OWN_REPORT = /^deepagent-report(?:-\d+)?\.md$/;

function isSkippedFolder(name: string): boolean {
  return SKIPPED_FOLDERS.has(name) || (/^\../.test(name) && !KEPT_DOT_FOLDERS.has(name));
}

/** Whether a file below `base` is looked at: not generated, not a dependency, not a secret, not a report of ours. */
export function isExamined(path: string, base: string): boolean {
  const segments = path.slice(base.length).split("/");
  const name = segments.pop() ?? "";
  const isSecret = SECRET_FILES.has(name) || SECRET_NAME.test(name);
  return !segments.some(isSkippedFolder) && !isSecret && !OWN_REPORT.test(name);
}

/** Names of the folders directly in `base` that are worth listing, with trailing slash. */
function foldersToList(entries: readonly Entry[], words: readonly string[]): string[] {
  return entries
    .filter(({ path, directory }) => directory && !isSkippedFolder(nameOf(path)))
    .map(({ path }) => `${path}/`)
    .sort((a, b) => relevance(b, words) - relevance(a, words) || compare(a, b))
    .slice(0, MOST_FOLDERS);
}

/**
 * Cuts the workspace into areas: a folder each, the files of the base together; a large folder is cut
 * again when there are few, small ones are put together when there are many. The most relevant first.
 */
function planAreas({ base, files, folders }: Inventory, words: readonly string[]): Area[] {
  const areas: Area[] = [];
  for (const [folder, { paths, more }] of folders) {
    const count = paths.filter((path) => isExamined(path, base)).length + more;
    if (count > 0)
      areas.push({ title: titleOf(folder, base), folders: [{ path: folder, deep: true }], files: count });
  }
  areas.sort((a, b) => weight(b, words) - weight(a, words) || compare(a.title, b.title));
  const cut = areas.length < FEW_AREAS ? cutLargest(areas, folders, base) : areas;
  const direct = files.filter((path) => isExamined(path, base));
  const room = MOST_AREAS - (direct.length > 0 ? 1 : 0);
  const kept = cut.length > room ? [...cut.slice(0, room - 1), together(cut.slice(room - 1))] : cut;
  if (direct.length > 0) {
    kept.push({ title: `files in ${base}`, folders: [{ path: base, deep: false }], files: direct.length });
  }
  return kept;
}

function cutLargest(areas: readonly Area[], folders: Inventory["folders"], base: string): Area[] {
  const largest = areas.toSorted((a, b) => b.files - a.files)[0];
  const folder = largest?.folders[0]?.path;
  if (largest === undefined || folder === undefined || largest.files <= LARGE_FOLDER) return [...areas];
  const counts = new Map<string, number>();
  let direct = 0;
  for (const path of folders.get(folder)?.paths ?? []) {
    if (!isExamined(path, base)) continue;
    const [below = "", ...rest] = path.slice(folder.length).split("/");
    if (rest.length === 0) direct += 1;
    else counts.set(below, (counts.get(below) ?? 0) + 1);
  }
  if (counts.size < 2) return [...areas];
  const parts = [...counts].map(([name, files]): Area => ({
    title: titleOf(`${folder}${name}/`, base),
    folders: [{ path: `${folder}${name}/`, deep: true }],
    files,
  }));
  if (direct > 0)
    parts.push({
      title: `files in ${titleOf(folder, base)}`,
      folders: [{ path: folder, deep: false }],
      files: direct,
    });
  parts.sort((a, b) => b.files - a.files || compare(a.title, b.title));
  return areas.flatMap((area) => (area === largest ? parts : [area]));
}

function together(areas: readonly Area[]): Area {
  return {
    title: areas.map(({ title }) => title).join(", "),
    folders: areas.flatMap(({ folders }) => folders),
    files: areas.reduce((sum, { files }) => sum + files, 0),
  };
}

function weight({ folders, files }: Area, words: readonly string[]): number {
  return files + 1_000_000 * Math.max(...folders.map(({ path }) => relevance(path, words)));
}

/** How many of the words a path contains. */
export function relevance(path: string, words: readonly string[]): number {
  const lower = path.toLowerCase();
  return words.filter((word) => lower.includes(word.toLowerCase())).length;
}

export function nameOf(path: string): string {
  return path.replace(/\/$/, "").split("/").at(-1) ?? "";
}

function titleOf(folder: string, base: string): string {
  return folder.slice(base.length) || folder;
}

/** Order that does not depend on the machine's language. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a subagent is to do, as it stands in the description of its `task` call. */
export interface Assignment {
  goal: string;
  folders: AreaFolder[];
  words: string[];
}

const GOAL_LIMIT = 1000;

export function writeAssignment(area: Area, goal: string, words: readonly string[]): string {
  return [
    `Examine ${area.title} and report what is there.`,
    "",
    ...area.folders.map(({ path, deep }) =>
      deep ? `Folder: ${path}` : `Folder, without subfolders: ${path}`,
    ),
    `Goal: ${oneLine(goal, GOAL_LIMIT)}`,
    `Search words: ${words.length === 0 ? "(none)" : words.map((word) => JSON.stringify(word)).join(", ")}`,
    "",
    "List the files, search for the words, for definitions and for open marks (TODO, FIXME), read the files that matter most, and report findings with path:line and counts. Do not change anything.",
  ].join("\n");
}

/** Reads an assignment; any other text is taken as a goal, with the folders it names. */
export function readAssignment(description: string, fallbackFolder: string): Assignment {
  const folders = [...description.matchAll(/^Folder(, without subfolders)?: (\/.*)$/gm)].map(
    ([, flat, path]): AreaFolder => ({ path: withSlash(path ?? "/"), deep: flat === undefined }),
  );
  const goal = /^Goal: (.*)$/m.exec(description)?.[1] ?? description;
  if (folders.length > 0) return { goal, folders, words: listedWords(description) ?? searchWords(goal) };
  const named = [...description.matchAll(/(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g)].map(([path]) => path);
  const paths = named.length > 0 ? [...new Set(named)].slice(0, 3) : [fallbackFolder];
  return {
    goal,
    folders: paths.map((path) => ({ path, deep: true })),
    words: searchWords(withoutPaths(goal)),
  };
}

function listedWords(description: string): string[] | undefined {
  const line = /^Search words: (.*)$/m.exec(description)?.[1];
  if (line === undefined) return undefined;
  try {
    return z.array(z.string()).parse(JSON.parse(`[${line}]`));
  } catch {
    return [];
  }
}

function withoutPaths(text: string): string {
  return text.replace(/(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g, " ");
}

function withSlash(path: string): string {
  const trimmed = path.trim();
  return trimmed.endsWith("/") ? trimmed : `${trimmed}/`;
}
