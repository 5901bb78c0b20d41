/** The areas of a workspace, and the assignments that delegate them to subagents. */
import { z } from "zod";
import { baseName, withSlash } from "../../../backends/paths.ts";
import { groupBy } from "../../../core/group-by.ts";
import { fill, hasName, oneLine } from "../../../core/text.ts";
import { parsedJson } from "../../../core/unknown.ts";
import type { OfflineTurn } from "./conversation.ts";
import { callsNamed, callPath, parseListing, parsePaths, resultFor, searchWords } from "./conversation.ts";
import names from "./file-names.json" with { type: "json" };
import rules from "./rules.json" with { type: "json" };

/** A part of the workspace for one subagent. Its folders have a trailing slash, and `deep` if those below count. */
export interface Area {
  title: string;
  folders: { path: string; deep: boolean }[];
  files: number;
}

/** The main agent's knowledge so far, read from the calls of its turn. */
export function readSurvey(turn: OfflineTurn) {
  const { workspace, memories, notes } = rules.places;
  const listing = (path: string): string[] => parseListing(resultFor(turn, "ls", path));
  const words = searchWords(turn.task);
  const mounts = listing("/");
  // The error names the folder with the files if `/` cannot be listed, because paths of the host are used.
  const [, host] = callsNamed(turn, "ls")[0]?.result.split(" root directory. Files are in: ") ?? [];
  const root = mounts.includes(workspace) ? workspace : host && withSlash(host);
  const base = root ?? "/";
  const entries = listing(base).filter((path) => !names.mounts.includes(path));
  const folders = entries
    .filter((path) => path.endsWith("/") && !isSkippedFolder(baseName(path)))
    .sort()
    .sort((a, b) => relevance(b, words) - relevance(a, words))
    .slice(0, rules.limits.folders);
  const files = entries.filter((path) => !path.endsWith("/") && isExamined(path, base));
  return {
    words,
    /** `/workspace/`; if no folder is mounted there, the folder with the files, or `/`. */
    base,
    entries,
    folders,
    /** The folders to list after `/`. */
    places: [...(root === undefined ? [] : [root]), ...mounts.filter((path) => path === memories)],
    areas: cutAreas(turn, base, files.length, folders, words),
    /** True if `/memories/` is kept for later threads. */
    remembers: mounts.includes(memories),
    hasNotes: listing(memories).includes(notes),
  };
}

/**
 * Cuts the workspace into areas: a folder each, the files of the base together; the largest folder is cut
 * again when there are few, the last ones are put together when there are many. The most relevant first.
 */
function cutAreas(turn: OfflineTurn, base: string, files: number, folders: string[], words: string[]) {
  const makeArea = (path: string, deep: boolean, files: number): Area => {
    const name = path.slice(base.length) || path;
    return { title: deep ? name : `files in ${name}`, folders: [{ path, deep }], files };
  };
  const contents = folders.map((folder) => {
    const call = callsNamed(turn, "glob").find((call) => callPath(call) === folder);
    // A folder that could not be listed is still an area: its subagent reports the failure.
    const { paths, more } = call?.failed ? { paths: [], more: 1 } : parsePaths(call?.result ?? "");
    return { folder, paths: paths.filter((path) => isExamined(path, folder)), more };
  });
  const isFew = contents.filter(({ paths, more }) => paths.length + more > 0).length < 3;
  const largest = Math.max(rules.limits.largeFolder + 1, ...contents.map(({ paths }) => paths.length));
  const areas = contents
    .flatMap(({ folder, paths, more }) => {
      const isCut = isFew && paths.length === largest;
      const parts = groupBy(
        isCut ? paths : [],
        (path) => path.slice(0, path.indexOf("/", folder.length) + 1) || folder,
      );
      if (parts.size < 2) return [makeArea(folder, true, paths.length + more)];
      return [...parts].map(([part, { length }]) => makeArea(part, part !== folder, length));
    })
    .filter((area) => area.files > 0)
    .sort((a, b) => b.files - a.files || compare(a.title, b.title))
    .sort((a, b) => relevance(b.title, words) - relevance(a.title, words));
  const direct = files > 0 ? [makeArea(base, false, files)] : [];
  const room = rules.limits.areas - direct.length;
  const rest = areas.splice(areas.length > room ? room - 1 : room);
  const together: Area = {
    title: rest.map(({ title }) => title).join(", "),
    folders: rest.flatMap(({ folders }) => folders),
    files: countFiles(rest),
  };
  return [...areas, ...(rest.length > 0 ? [together] : []), ...direct];
}

/** Order that does not depend on the machine's language. */
export const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);

export const countFiles = (areas: readonly Area[]): number =>
  areas.reduce((sum, { files }) => sum + files, 0);

const isSkippedFolder = (name: string): boolean =>
  names.skippedFolders.includes(name) || (name.startsWith(".") && name !== ".github");

/** True if a file below `base` is examined: it is not generated, a dependency, a secret or one of our reports. */
export function isExamined(path: string, base: string): boolean {
  const segments = path.slice(base.length).split("/");
  const name = segments.pop() ?? "";
  const isOwnReport = /^deepagent-report(?:-\d+)?\.md$/.test(name);
  return !segments.some(isSkippedFolder) && !isListed(name, names.secrets) && !isOwnReport;
}

/** True if a list of `file-names.json` has the name. */
export const isListed = (name: string, list: readonly string[]): boolean =>
  hasName(list, name) || list.some((known) => known.startsWith("*") && name.endsWith(known.slice(1)));

/** The number of words that a path has. */
export const relevance = (path: string, words: readonly string[]): number =>
  words.filter((word) => path.toLowerCase().includes(word.toLowerCase())).length;

export const writeAssignment = ({ title, folders }: Area, goal: string, words: readonly string[]): string =>
  fill(
    rules.assignment,
    title,
    folders.map(({ path, deep }) => `Folder${deep ? "" : ", without subfolders"}: ${path}`).join("\n"),
    oneLine(goal, 1000),
    words.map((word) => JSON.stringify(word)).join(", ") || "(none)",
  );

const NAMED_FOLDER = /(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g;

/** Words that are listed; none if the line is not a list. */
const WORD_LIST = z.array(z.string()).catch([]);

/** Reads an assignment; any other text is taken as a goal, with the folders it names. */
export function readAssignment(text: string, fallbackFolder: string) {
  const assigned = [...text.matchAll(/^Folder(, without subfolders)?: (\/.*)$/gm)];
  const named = [...new Set(text.match(NAMED_FOLDER) ?? [fallbackFolder])].slice(0, 3);
  const goal = /^Goal: (.*)$/m.exec(text)?.[1] ?? text;
  const list = /^Search words: (.*)$/m.exec(text)?.[1];
  const folders = assigned.map(([, flat, path = ""]) => ({ path: withSlash(path.trim()), deep: !flat }));
  return {
    goal,
    folders: folders.length > 0 ? folders : named.map((path) => ({ path, deep: true })),
    words:
      list === undefined
        ? searchWords(goal.replace(NAMED_FOLDER, " "))
        : WORD_LIST.parse(parsedJson(`[${list}]`)),
  };
}
