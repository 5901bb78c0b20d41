/** The areas of a workspace, and the assignments that delegate them to subagents. */
import { z } from "zod";
import { baseName, comparePaths, subfolder, withSlash } from "../../../backends/paths.ts";
import { groupBy } from "../../../core/group-by.ts";
import { hasName, oneLine } from "../../../core/text.ts";
import { parsedJson } from "../../../core/unknown.ts";
import type { OfflineTurn } from "./conversation.ts";
import { callFor, parseListing, parsePaths, searchWords } from "./conversation.ts";
import names from "./file-names.json" with { type: "json" };

export const WORKSPACE_FOLDER = "/workspace/";
export const MEMORIES = "/memories/";
export const MEMORY_FILE = "/memories/offline-notes.md";
const MOUNTS = [MEMORIES, "/skills/", "/conversation_history/", "/large_tool_results/"];

/** A part of the workspace for one subagent. Its folders have a trailing slash, and `deep` if those below count. */
export interface Area {
  title: string;
  folders: { path: string; deep: boolean }[];
  files: number;
}

/** The main agent's knowledge so far, read from the calls of its turn. */
export function readSurvey(turn: OfflineTurn) {
  const listing = (path: string): string[] => {
    const call = callFor(turn, "ls", path);
    return call === undefined || call.failed ? [] : parseListing(call.result);
  };
  const words = searchWords(turn.task);
  // The error names the folder with the files if `/` cannot be listed, because paths of the host are used.
  const [, host] =
    callFor(turn, "ls", "/")?.result.split("is outside the root directory. Files are in: ") ?? [];
  const root = host === undefined ? undefined : withSlash(host);
  const mounts = listing("/");
  const base = mounts.includes(WORKSPACE_FOLDER) ? WORKSPACE_FOLDER : (root ?? "/");
  const entries = listing(base).filter((path) => !MOUNTS.includes(path));
  /** Folders that are worth listing. */
  const folders = entries
    .filter((path) => path.endsWith("/") && !isSkippedFolder(baseName(path)))
    .sort((a, b) => relevance(b, words) - relevance(a, words) || comparePaths(a, b))
    .slice(0, MOST_FOLDERS);
  const files = entries.filter((path) => !path.endsWith("/") && isExamined(path, base));
  return {
    words,
    /** `/workspace/`; if no folder is mounted there, the folder with the files, or `/`. */
    base,
    entries,
    folders,
    /** The folders to list after `/`. */
    places: [root ?? WORKSPACE_FOLDER, MEMORIES].filter((path) => path === root || mounts.includes(path)),
    /** Complete once the folders are listed. */
    areas: cutIntoAreas(turn, base, files.length, folders, words),
    /** True if `/memories/` is kept for later threads. */
    remembers: mounts.includes(MEMORIES),
    /** True if there are notes of earlier tasks. */
    hasNotes: listing(MEMORIES).includes(MEMORY_FILE),
  };
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
  turn: OfflineTurn,
  base: string,
  files: number,
  folders: string[],
  words: string[],
): Area[] {
  const makeArea = (path: string, deep: boolean, files: number): Area => {
    const name = path.slice(base.length) || path;
    return { title: deep ? name : `files in ${name}`, folders: [{ path, deep }], files };
  };
  const contents = folders.map((folder) => {
    const call = callFor(turn, "glob", folder);
    // A folder that could not be listed is still an area: its subagent reports the failure.
    const { paths, more } = call?.failed ? { paths: [], more: 1 } : parsePaths(call?.result ?? "");
    return { folder, paths: paths.filter((path) => isExamined(path, folder)), more };
  });
  const isFew = contents.filter(({ paths, more }) => paths.length + more > 0).length < 3;
  const largest = Math.max(LARGE_FOLDER + 1, ...contents.map(({ paths }) => paths.length));
  const areas = contents
    .flatMap(({ folder, paths, more }) => {
      const isCut = isFew && paths.length === largest;
      const parts = groupBy(isCut ? paths : [], (path) => subfolder(folder, path) ?? folder);
      if (parts.size < 2) return [makeArea(folder, true, paths.length + more)];
      return [...parts].map(([part, { length }]) => makeArea(part, part !== folder, length));
    })
    .filter((area) => area.files > 0)
    .sort(
      (a, b) =>
        relevance(b.title, words) - relevance(a.title, words) ||
        b.files - a.files ||
        comparePaths(a.title, b.title),
    );
  const direct = files > 0 ? [makeArea(base, false, files)] : [];
  const room = MOST_AREAS - direct.length;
  const rest = areas.splice(areas.length > room ? room - 1 : room);
  const together: Area = {
    title: rest.map(({ title }) => title).join(", "),
    folders: rest.flatMap(({ folders }) => folders),
    files: countFiles(rest),
  };
  return [...areas, ...(rest.length > 0 ? [together] : []), ...direct];
}

export const countFiles = (areas: readonly Area[]): number =>
  areas.reduce((sum, { files }) => sum + files, 0);

const isSkippedFolder = (name: string): boolean =>
  names.skippedFolders.includes(name) || (name.startsWith(".") && name !== ".github");

/** True if a file below `base` is examined: it is not generated, a dependency, a secret or one of our reports. */
export function isExamined(path: string, base: string): boolean {
  const segments = path.slice(base.length).split("/");
  const name = segments.pop() ?? "";
  const isSecret =
    hasName(names.secrets, name) || names.secretEndings.some((ending) => name.endsWith(ending));
  return !segments.some(isSkippedFolder) && !isSecret && !/^deepagent-report(?:-\d+)?\.md$/.test(name);
}

/** How many of the words a path has. */
export const relevance = (path: string, words: readonly string[]): number =>
  words.filter((word) => path.toLowerCase().includes(word.toLowerCase())).length;

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
export function readAssignment(
  text: string,
  fallbackFolder: string,
): Pick<Area, "folders"> & { goal: string; words: string[] } {
  const assigned = [...text.matchAll(/^Folder(, without subfolders)?: (\/.*)$/gm)];
  const named = [...new Set(text.match(NAMED_FOLDER) ?? [fallbackFolder])].slice(0, 3);
  const goal = /^Goal: (.*)$/m.exec(text)?.[1] ?? text;
  const list = /^Search words: (.*)$/m.exec(text)?.[1];
  return {
    goal,
    folders:
      assigned.length > 0
        ? assigned.map(([, flat, path = "/"]) => ({ path: withSlash(path.trim()), deep: flat === undefined }))
        : named.map((path) => ({ path, deep: true })),
    // None when the line is not a list.
    words:
      list === undefined
        ? searchWords(goal.replace(NAMED_FOLDER, " "))
        : WORDS.parse(parsedJson(`[${list}]`)),
  };
}

const WORDS = z.array(z.string()).catch([]);
