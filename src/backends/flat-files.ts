import type {
  FileData,
  FileDownloadResponse,
  FileInfo,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  ReadRawResult,
  WriteOptions,
} from "./backend.ts";
import {
  alreadyExists,
  type BackendFailure,
  changedSinceRead,
  directoryNotFound,
  notDirectory,
  operationError,
  pathNotFound,
} from "./errors.ts";
import { bytesOf, contentOf, versionOf } from "./file-data.ts";
import { compileGlob } from "./glob/glob.ts";
import { baseName, comparePaths, isAtOrBelow, relativeTo, withSlash } from "./paths.ts";
import { type SearchableContent, type SearchFile, searchFiles } from "./search.ts";

/** Operations of backends that keep a flat set of paths; directories are what the paths imply. */

export const sortByPath = <Entry extends { path: string }>(entries: Entry[]): Entry[] =>
  entries.sort((left, right) => comparePaths(left.path, right.path));

/** The entries directly in `directory` of a backend that keeps a flat set of paths. */
export function listFlat(directory: string, files: Iterable<FileInfo>): LsResult {
  const found = new Map<string, FileInfo>();
  for (const file of files) {
    if (file.path === directory) return { files: [file] };
    if (!isAtOrBelow(file.path, directory)) continue;
    const rest = relativeTo(directory, file.path);
    const slash = rest.indexOf("/");
    const entry =
      slash === -1 ? file : { path: withSlash(directory) + rest.slice(0, slash + 1), is_dir: true };
    found.set(entry.path, entry);
  }
  if (found.size === 0 && directory !== "/") return directoryNotFound(directory);
  return { files: sortByPath([...found.values()]) };
}

/** The files below `directory` that match, of a backend that keeps a flat set of paths. */
export function globFlat(pattern: string, directory: string, files: Iterable<FileInfo>): GlobResult {
  const compiled = compileGlob(pattern);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const found: FileInfo[] = [];
  let exists = directory === "/";
  for (const file of files) {
    if (file.path === directory) return notDirectory(directory);
    if (!isAtOrBelow(file.path, directory)) continue;
    exists = true;
    if (compiled.glob.matches(relativeTo(directory, file.path))) found.push(file);
  }
  return exists ? { files: sortByPath(found) } : directoryNotFound(directory);
}

export interface FlatSearch {
  pattern: string;
  /** A directory, or the one file to search. */
  path: string;
  glob?: string | null | undefined;
  maxCount?: number | null | undefined;
  options?: GrepOptions | undefined;
}

/** Searches the files at or below a path, in the order of their paths. */
export function grepFlat(files: Iterable<[string, FileData]>, search: FlatSearch): Promise<GrepResult> {
  const listed = Array.from(files, ([path, data]) => ({ path, data }));
  return grepListed(listed, search, (chosen) =>
    chosen.map(({ path, data }) => ({ path, load: () => searchable(path, data) })),
  );
}

/** As `grepFlat`; `open` gets the contents of the files that are to be searched. */
export async function grepListed<File extends { path: string }>(
  files: Iterable<File>,
  { pattern, path, glob, maxCount, options }: FlatSearch,
  open: (chosen: readonly File[]) => Iterable<SearchFile> | AsyncIterable<SearchFile>,
): Promise<GrepResult> {
  const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
  if (!filter.ok) return { error: filter.error, code: filter.code };
  const accepts = (file: string): boolean =>
    filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file));
  const chosen: File[] = [];
  let exists = path === "/";
  for (const file of files) {
    if (!isAtOrBelow(file.path, path)) continue;
    exists = true;
    if (accepts(file.path)) chosen.push(file);
  }
  if (!exists) return pathNotFound(path);
  return searchFiles(open(sortByPath(chosen)), { pattern, maxCount, options, path });
}

/** Refuses a write over the file `old` that its options do not allow; `undefined`: it may be made. */
export function refusedWrite(
  path: string,
  old: FileData | undefined,
  { mode, expectedVersion }: WriteOptions,
): BackendFailure | undefined {
  if (old !== undefined && mode !== "overwrite") return alreadyExists(path);
  const isChanged = expectedVersion !== undefined && expectedVersion !== (old && versionOf(old));
  return isChanged ? changedSinceRead(path) : undefined;
}

/** Makes the answer to a download of what was read at a path. */
export const downloadOf = (path: string, { data, code }: ReadRawResult): FileDownloadResponse =>
  data === undefined
    ? { path, content: null, error: operationError(code) }
    : { path, content: bytesOf(data), error: null };

/** Text of kept file data for a search; text in another encoding is searched as far as it decodes. */
export function searchable(path: string, data: FileData): SearchableContent {
  const known = contentOf(path, data);
  if (!known.ok) {
    return typeof data.content === "string" || Array.isArray(data.content)
      ? { kind: "binary" }
      : { kind: "text", text: new TextDecoder().decode(data.content) };
  }
  return known.content.kind === "text" ? { kind: "text", text: known.content.text } : { kind: "binary" };
}
