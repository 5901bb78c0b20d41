/** The areas of a workspace, and the assignments that delegate them to subagents. */
import { z } from "zod";
import { withSlash } from "../../../backends/paths.ts";
import { oneLine } from "../../../core/text.ts";
import { parsedJson } from "../../../core/unknown.ts";
import type { OfflineTurn } from "./conversation.ts";
import { callsNamed, parseListing, parsePaths, callPath, searchWords } from "./conversation.ts";

export const WORKSPACE_FOLDER = "/workspace/";
export const MEMORIES = "/memories/";
export const MEMORY_FILE = "/memories/offline-notes.md";
const MOUNTS = new Set(["/memories", "/skills", "/conversation_history", "/large_tool_results"]);

export interface Area {
  title: string;
  folders: AreaFolder[];
  files: number;
}

export interface AreaFolder {
  /** With a trailing slash. */
  path: string;
  /** True if the folders below count, too. */
  deep: boolean;
}

/** The main agent's knowledge so far, read from the calls of its turn. */
export function readSurvey(turn: OfflineTurn) {
  const words = searchWords(turn.task);
  /** `/workspace/`; if no folder is mounted there, the folder with the files, or `/`. */
  const base = isMounted(turn, WORKSPACE_FOLDER) ? WORKSPACE_FOLDER : (rootFolder(turn) ?? "/");
  const entries = listing(turn, base).filter(({ path }) => !MOUNTS.has(path));
  /** Folders that are worth listing, with trailing slash. */
  const folders = entries
    .filter(({ path, directory }) => directory && !isSkippedFolder(lastSegment(path)))
    .map(({ path }) => `${path}/`)
    .sort((a, b) => relevance(b, words) - relevance(a, words) || compare(a, b))
    .slice(0, MOST_FOLDERS);
  const files = entries.filter(({ path, directory }) => !directory && isExamined(path, base));
  const contents = folders.map((folder) => readFolder(turn, folder));
  return {
    words,
    base,
    entries,
    folders,
    /** Complete once the folders are listed. */
    areas: cutIntoAreas(base, files.length, contents, words),
    /** True if `/memories/` is kept for later threads. */
    remembers: isMounted(turn, MEMORIES),
    /** True if there are notes of earlier tasks. */
    hasNotes: listing(turn, MEMORIES).some(({ path }) => path === MEMORY_FILE),
  };
}

export const isMounted = (turn: OfflineTurn, folder: string): boolean =>
  listing(turn, "/").some(({ path, directory }) => directory && `${path}/` === folder);

/** The folder that is named where `/` cannot be listed, because paths of the host are used. */
export function rootFolder(turn: OfflineTurn): string | undefined {
  const call = callsNamed(turn, "ls").find((call) => callPath(call) === "/" && call.failed);
  const [, root] = call?.result.split("is outside the root directory. Files are in: ") ?? [];
  return root === undefined ? undefined : `${root.replace(/\/$/, "")}/`;
}

function listing(turn: OfflineTurn, path: string) {
  const call = callsNamed(turn, "ls").find((call) => callPath(call) === path);
  return call === undefined || call.failed ? [] : parseListing(call.result);
}

type FolderContent = ReturnType<typeof readFolder>;

/** The examined files below a folder, and how many more there are. */
function readFolder(turn: OfflineTurn, folder: string) {
  const call = callsNamed(turn, "glob").find((call) => callPath(call) === folder);
  // A folder that could not be listed is still an area: its subagent reports the failure.
  if (call?.failed) return { folder, paths: [], more: 1 };
  const { paths, more } = parsePaths(call?.result ?? "");
  return { folder, paths: paths.filter((path) => isExamined(path, folder)), more };
}

/** Most areas of one task: each is a subagent. */
const MOST_AREAS = 6;
/** Folders listed to count their files. */
const MOST_FOLDERS = 16;
/** A folder with more files than this is worth several subagents when there are few areas. */
const LARGE_FOLDER = 24;

/**
 * Cuts the workspace into areas: a folder each, the files of the base together; the largest folder is cut
 * again when there are few, the last ones are put together when there are many. The most relevant first.
 */
function cutIntoAreas(
  base: string,
  files: number,
  contents: readonly FolderContent[],
  words: readonly string[],
) {
  const isFew = contents.filter(({ paths, more }) => paths.length + more > 0).length < 3;
  const largest = Math.max(LARGE_FOLDER + 1, ...contents.map(({ paths }) => paths.length));
  const areas = contents
    .flatMap((content) => folderAreas(content, base, isFew && content.paths.length === largest))
    .filter((area) => area.files > 0)
    .sort(
      (a, b) =>
        relevance(b.title, words) - relevance(a.title, words) ||
        b.files - a.files ||
        compare(a.title, b.title),
    );
  const direct = files > 0 ? [makeArea(base, false, files, base)] : [];
  const room = MOST_AREAS - direct.length;
  const rest = areas.splice(areas.length > room ? room - 1 : room);
  const together: Area = {
    title: rest.map(({ title }) => title).join(", "),
    folders: rest.flatMap(({ folders }) => folders),
    files: rest.reduce((sum, { files }) => sum + files, 0),
  };
  return [...areas, ...(rest.length > 0 ? [together] : []), ...direct];
}

/** One area for a folder; if it is to be cut, one for each folder in it and one for the files there. */
function folderAreas({ folder, paths, more }: FolderContent, base: string, isCut: boolean): Area[] {
  const counts = new Map<string, number>();
  for (const path of isCut ? paths : []) {
    const end = path.indexOf("/", folder.length) + 1;
    const part = end === 0 ? folder : path.slice(0, end);
    counts.set(part, (counts.get(part) ?? 0) + 1);
  }
  return counts.size < 2
    ? [makeArea(folder, true, paths.length + more, base)]
    : [...counts].map(([part, files]) => makeArea(part, part !== folder, files, base));
}

function makeArea(path: string, deep: boolean, files: number, base: string): Area {
  const name = path.slice(base.length) || path;
  return { title: deep ? name : `files in ${name}`, folders: [{ path, deep }], files };
}

const SECRET_FILE =
  /^(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.env|\.npmrc|\.netrc|credentials)$|^\.env\.|\.(?:pem|key|p12|pfx|keystore)$/;

const isSkippedFolder = (name: string): boolean =>
  /^(?:(?!\.github$)\..+|node_modules|bower_components|vendor|venv|env|dist|build|out|target|coverage|tmp|temp|__pycache__|__snapshots__|large_tool_results|conversation_history)$/.test(
    name,
  );

/** True if a file below `base` is examined: it is not generated, a dependency, a secret or one of our reports. */
export function isExamined(path: string, base: string): boolean {
  const segments = path.slice(base.length).split("/");
  const name = segments.pop() ?? "";
  const isOwnReport = /^deepagent-report(?:-\d+)?\.md$/.test(name);
  return !segments.some(isSkippedFolder) && !SECRET_FILE.test(name) && !isOwnReport;
}

export const relevance = (path: string, words: readonly string[]): number =>
  words.filter((word) => path.toLowerCase().includes(word.toLowerCase())).length;

export const lastSegment = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Order that does not depend on the machine's language. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export const writeAssignment = (area: Area, goal: string, words: readonly string[]): string =>
  [
    `Examine ${area.title} and report your findings.`,
    "",
    ...area.folders.map(({ path, deep }) => `Folder${deep ? "" : ", without subfolders"}: ${path}`),
    `Goal: ${oneLine(goal, 1000)}`,
    `Search words: ${words.length === 0 ? "(none)" : words.map((word) => JSON.stringify(word)).join(", ")}`,
    "",
    "List the files, search for the words, for definitions and for open marks (TODO, FIXME), read the files that matter most, and report findings with path:line and counts. Do not change anything.",
  ].join("\n");

const NAMED_FOLDER = /(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g;

/** Reads an assignment; any other text is taken as a goal, with the folders it names. */
export function readAssignment(description: string, fallbackFolder: string) {
  const folders = [...description.matchAll(/^Folder(, without subfolders)?: (\/.*)$/gm)].map(
    ([, flat, path = "/"]): AreaFolder => ({ path: withSlash(path.trim()), deep: flat === undefined }),
  );
  const goal = /^Goal: (.*)$/m.exec(description)?.[1] ?? description;
  if (folders.length > 0) {
    const line = /^Search words: (.*)$/m.exec(description)?.[1];
    // None when the line is not a list.
    const list = z.array(z.string()).catch([]);
    return {
      goal,
      folders,
      words: line === undefined ? searchWords(goal) : list.parse(parsedJson(`[${line}]`)),
    };
  }
  const named = [...new Set(description.match(NAMED_FOLDER) ?? [fallbackFolder])].slice(0, 3);
  return {
    goal,
    folders: named.map((path) => ({ path, deep: true })),
    words: searchWords(goal.replace(NAMED_FOLDER, " ")),
  };
}
