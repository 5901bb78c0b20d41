import type { Entry } from "./tool-output.ts";

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
export const MOST_AREAS = 6;
/** Folders listed to count what is in them. */
export const MOST_FOLDERS = 16;
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

export function isSkippedFolder(name: string): boolean {
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
export function foldersToList(entries: readonly Entry[], words: readonly string[]): string[] {
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
export function planAreas({ base, files, folders }: Inventory, words: readonly string[]): Area[] {
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
