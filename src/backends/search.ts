import { setImmediate as nextTurn } from "node:timers/promises";
import { RE2JS, RE2JSException } from "re2js";
import { headOf, tailOf } from "../core/text.ts";
import type * as port from "./backend.ts";
import { BYTE_ORDER_MARK } from "./encoding.ts";
import { type BackendFailure, errors } from "./errors.ts";
import { parseContent, toFileInfo, contentVersion } from "./file-data.ts";
import { compileGlob } from "./glob.ts";
import { baseName, comparePaths, isAtOrBelow, relativeTo, subfolder } from "./paths.ts";

/** Matches of one search when the caller names no cap. */
export const DEFAULT_MAX_COUNT = 1000;
/** After this time a search ends with the matches it has, marked `truncated`. */
export const SEARCH_TIME_LIMIT_MS = 30_000;
/** Longest line of a result; a longer one is shown around its match. */
export const MAX_LINE_LENGTH = 1000;

/** The UTF-16 offsets of a line's match. */
export type LineMatcher = (line: string) => { start: number; end: number } | undefined;

export type SearchCompilation =
  | { ok: true; matcher: LineMatcher; literal: string | undefined }
  | ({ ok: false } & BackendFailure);

/** Compiles a pattern. `literal` is set if plain substring search suffices. Expressions are RE2, linear in the line. */
export function compileSearch(pattern: string, options: port.GrepOptions = {}): SearchCompilation {
  if (pattern === "") return { ok: false, ...errors.emptySearch() };
  if (/[\r\n]/.test(pattern)) return { ok: false, ...errors.multilineSearch() };
  const isRegex = options.regex === true;
  if (pattern.length > 10_000) return { ok: false, ...errors.patternTooLong() };
  if (!isRegex && options.caseSensitive !== false)
    return {
      ok: true,
      literal: pattern,
      matcher: (line) => {
        const start = line.indexOf(pattern);
        return start === -1 ? undefined : { start, end: start + pattern.length };
      },
    };
  try {
    const flags = options.caseSensitive === false ? RE2JS.CASE_INSENSITIVE : 0;
    const expression = RE2JS.compile(isRegex ? pattern : RE2JS.quote(pattern), flags);
    const matcher: LineMatcher = (line) => {
      if (!expression.test(line)) return undefined;
      const found = expression.matcher(line);
      return found.find() ? { start: found.start(), end: found.end() } : { start: 0, end: 0 };
    };
    return { ok: true, literal: undefined, matcher };
  } catch (thrown) {
    if (!(thrown instanceof RE2JSException)) throw thrown;
    return { ok: false, ...errors.invalidRegex(thrown.message.replace(/^error parsing regexp: /, "")) };
  }
}

/** A file to search. `load` is called once, in order, and only while the search continues. */
export interface SearchFile {
  path: string;
  /** See `FileInfo`. */
  ignored?: boolean;
  load(): SearchableContent | Promise<SearchableContent>;
}

/** The text of a file; `binary` is passed over, `skipped` is counted (unreadable, or over the size limit). */
export type SearchableContent = { kind: "text"; text: string } | { kind: "binary" } | { kind: "skipped" };

export interface Search {
  pattern: string;
  /** A directory, or the one file to search. */
  path: string;
  /** Chooses files by their names. Default: all. */
  glob: string | null | undefined;
  maxCount: number;
  options: port.GrepOptions;
}

export function fileFilter({ path, glob }: Search): ((file: string) => boolean) | BackendFailure {
  const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
  if (!filter.ok) return { error: filter.error, code: filter.code };
  return (file) => filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file));
}

/** Longest time between two turns of the event loop. */
const SLICE_MS = 10;

/**
 * Searches files in their order, which decides the content of a capped result, and stops at the cap.
 * `truncated` is set when at least one more match exists or the time is up. `deadline`: of `performance.now()`.
 */
export async function searchFiles(
  files: Iterable<SearchFile> | AsyncIterable<SearchFile>,
  { pattern, path, maxCount, options }: Search,
  deadline: number = performance.now() + SEARCH_TIME_LIMIT_MS,
): Promise<port.GrepResult> {
  const compiled = compileSearch(pattern, options);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const matches: port.GrepMatch[] = [];
  let skipped = 0;
  const slice = new Slice();
  const result = (truncated: boolean): port.GrepResult => ({ matches, truncated, skipped });
  for await (const file of files) {
    if (options.signal?.aborted === true) return errors.operationAborted(path);
    const content = await file.load();
    if (content.kind === "skipped") skipped += 1;
    if (content.kind === "text") {
      const room = maxCount - matches.length;
      const found = await searchText(content.text, compiled, {
        slice,
        limit: Math.min(room + 1, options.maxPerFile ?? Number.POSITIVE_INFINITY),
        contextLines: options.contextLines ?? 0,
        deadline,
      });
      for (const match of found.matches.slice(0, room)) {
        // The object is filled in, because a copy of each of many thousand matches takes as long as their search.
        match.path = file.path;
        if (file.ignored === true) match.ignored = true;
        matches.push(match);
      }
      if (found.matches.length > room || found.timedOut) return result(true);
    }
    if (!slice.isOver()) continue;
    if (performance.now() > deadline) return result(true);
    await slice.next();
  }
  return options.signal?.aborted === true ? errors.operationAborted(path) : result(false);
}

class Slice {
  #end = performance.now() + SLICE_MS;

  isOver(): boolean {
    return performance.now() > this.#end;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#end = performance.now() + SLICE_MS;
  }
}

/** The first matches in one text, lines counted from 1. Their `path` is empty. */
async function searchText(
  text: string,
  search: SearchCompilation & { ok: true },
  bounds: { slice: Slice; limit: number; contextLines: number; deadline: number },
): Promise<{ matches: port.GrepMatch[]; timedOut: boolean }> {
  const { slice, limit, contextLines, deadline } = bounds;
  const matches: port.GrepMatch[] = [];
  // `indexOf` skips a text without the literal, and the lines before the first match, at native speed.
  const first = search.literal === undefined ? 0 : text.indexOf(search.literal);
  if (first === -1 || limit <= 0) return { matches, timedOut: false };
  const lines = new LineReader(text);
  lines.skipTo(first);
  for (let line = lines.next(); line !== undefined; line = lines.next()) {
    if (lines.number % 1000 === 0 && slice.isOver()) {
      if (performance.now() > deadline) return { matches, timedOut: true };
      await slice.next();
    }
    const range = search.matcher(line);
    if (range === undefined) continue;
    const shown = detach(excerpt(line, range.start, range.end));
    const match: port.GrepMatch = { path: "", line: lines.number, text: shown };
    matches.push(contextLines > 0 ? Object.assign(match, lines.around(contextLines)) : match);
    if (matches.length >= limit) break;
    if (search.literal !== undefined) {
      const next = text.indexOf(search.literal, lines.end);
      if (next === -1) break;
      lines.skipTo(next);
    }
  }
  return { matches, timedOut: false };
}

/** Walks over the lines of a text. Line ends are LF or CRLF; a final one starts no line. */
class LineReader {
  readonly #text: string;
  number = 0;
  #start = 0;
  end: number;

  constructor(text: string) {
    this.#text = text;
    this.end = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  }

  next(): string | undefined {
    if (this.end >= this.#text.length) return undefined;
    this.number += 1;
    this.#start = this.end;
    const feed = this.#text.indexOf("\n", this.end);
    this.end = feed === -1 ? this.#text.length : feed + 1;
    return this.#lineAt(this.#start, this.end);
  }

  /** Moves to the line that contains `position`, which `next` then returns. */
  skipTo(position: number): void {
    const start = position === 0 ? 0 : this.#text.lastIndexOf("\n", position - 1) + 1;
    while (this.end < start) {
      this.end = this.#text.indexOf("\n", this.end) + 1;
      this.number += 1;
    }
  }

  around(count: number): { before: string[]; after: string[] } {
    const before: string[] = [];
    for (let end = this.#start; before.length < count && end > this.#first;) {
      const start = Math.max(this.#text.lastIndexOf("\n", end - 2) + 1, this.#first);
      before.unshift(detach(excerpt(this.#lineAt(start, end), 0, 0)));
      end = start;
    }
    const after: string[] = [];
    for (let start = this.end; after.length < count && start < this.#text.length;) {
      const feed = this.#text.indexOf("\n", start);
      const end = feed === -1 ? this.#text.length : feed + 1;
      after.push(detach(excerpt(this.#lineAt(start, end), 0, 0)));
      start = end;
    }
    return { before, after };
  }

  get #first(): number {
    return this.#text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  }

  #lineAt(start: number, end: number): string {
    return this.#text.slice(start, end).replace(/\r?\n$/, "");
  }
}

/** Cuts a long line to its match. `…` shows the cuts, which are never inside a character. */
export function excerpt(line: string, start: number, end: number): string {
  if (line.length <= MAX_LINE_LENGTH) return line;
  const room = Math.max(MAX_LINE_LENGTH - (end - start), 0);
  const from = Math.max(0, Math.min(start - Math.floor(room / 2), line.length - MAX_LINE_LENGTH));
  const to = Math.min(line.length, from + MAX_LINE_LENGTH);
  const window = headOf(tailOf(line, line.length - from), to - from);
  return `${from > 0 ? "…" : ""}${window}${to < line.length ? "…" : ""}`;
}

/** Copies a line, which would otherwise keep the whole text of its file in memory. */
const detach = (text: string): string => Buffer.from(text, "utf8").toString("utf8");

/** Puts entries in the order of their paths, those that git ignores after all others. */
export const sortByPath = <Entry extends { path: string; ignored?: boolean }>(entries: Entry[]): Entry[] =>
  entries.sort(
    (left, right) =>
      Number(left.ignored === true) - Number(right.ignored === true) || comparePaths(left.path, right.path),
  );

/** The paths at `path` and below among those of files. */
export const pathsAtOrBelow = (path: string, files: Iterable<[string, port.FileData]>): string[] =>
  Array.from(files, ([known]) => known).filter((known) => isAtOrBelow(known, path));

/** True if a path is a folder: the root, or one with a file below. */
export function hasBelow(path: string, files: Iterable<[string, port.FileData]>): boolean {
  if (path === "/") return true;
  for (const [known] of files) if (known !== path && isAtOrBelow(known, path)) return true;
  return false;
}

export function* toFileInfos(files: Iterable<[string, port.FileData]>): Generator<port.FileInfo> {
  for (const [path, data] of files) yield toFileInfo(path, data);
}

/** Lists the entries directly in `directory`, for a backend with a flat set of paths, which imply the directories. */
export function listFlat(directory: string, files: Iterable<port.FileInfo>): port.LsResult {
  const found = new Map<string, port.FileInfo>();
  for (const file of files) {
    if (file.path === directory) return { files: [file] };
    if (!isAtOrBelow(file.path, directory)) continue;
    const folder = subfolder(directory, file.path);
    const entry = folder === undefined ? file : { path: folder, is_dir: true };
    found.set(entry.path, entry);
  }
  if (found.size === 0 && directory !== "/") return errors.directoryNotFound(directory);
  return { files: sortByPath([...found.values()]) };
}

/** Finds the files below `directory` that match, for a backend with a flat set of paths. */
export function globFlat(
  pattern: string,
  directory: string,
  files: Iterable<port.FileInfo>,
): port.GlobResult {
  const compiled = compileGlob(pattern);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const found: port.FileInfo[] = [];
  let exists = directory === "/";
  for (const file of files) {
    if (file.path === directory) return errors.notDirectory(directory);
    if (!isAtOrBelow(file.path, directory)) continue;
    exists = true;
    if (compiled.glob.matches(relativeTo(directory, file.path))) found.push(file);
  }
  return exists ? { files: sortByPath(found) } : errors.directoryNotFound(directory);
}

/** Searches the files at or below a path, in the order of their paths. */
export function grepFlat(files: Iterable<[string, port.FileData]>, search: Search): Promise<port.GrepResult> {
  const listed = Array.from(files, ([path, data]) => ({ path, data }));
  return grepListed(listed, search, (chosen) =>
    chosen.map(({ path, data }) => ({ path, load: () => searchable(path, data) })),
  );
}

/** Like `grepFlat`, for files without contents. `open` gets the contents of the chosen files. */
export async function grepListed<File extends { path: string }>(
  files: Iterable<File>,
  search: Search,
  open: (chosen: readonly File[]) => Iterable<SearchFile> | AsyncIterable<SearchFile>,
): Promise<port.GrepResult> {
  const { path } = search;
  const accepts = fileFilter(search);
  if (typeof accepts !== "function") return accepts;
  const chosen: File[] = [];
  let exists = path === "/";
  for (const file of files) {
    if (!isAtOrBelow(file.path, path)) continue;
    exists = true;
    if (accepts(file.path)) chosen.push(file);
  }
  return exists ? searchFiles(open(sortByPath(chosen)), search) : errors.pathNotFound(path);
}

/** Asks a search for at least `wanted` matches in files that `isShown`, or for all of them if there are fewer. */
export async function grepShown(
  ask: (cap: number) => port.MaybePromise<port.GrepResult>,
  wanted: number,
  isShown: (path: string) => boolean,
): Promise<port.GrepResult> {
  for (let cap = wanted; ; cap *= 4) {
    const result = await ask(cap);
    const matches = result.matches?.filter(({ path }) => isShown(path));
    if (matches === undefined) return result;
    // A result below the cap is truncated because the time was up.
    const isAll = result.truncated !== true || (result.matches?.length ?? 0) < cap;
    // The cap grows at most so far to make up for hidden matches.
    if (isAll || matches.length >= wanted || cap > wanted * 256) return { ...result, matches };
  }
}

/** Refuses a write over the file `old` if its options do not allow it. */
export function refusedWrite(
  path: string,
  old: port.FileData | undefined,
  { mode, expectedVersion }: port.WriteOptions,
): BackendFailure | undefined {
  if (old !== undefined && mode !== "overwrite") return errors.alreadyExists(path);
  const isChanged = expectedVersion !== undefined && expectedVersion !== (old && contentVersion(old));
  return isChanged ? errors.changedSinceRead(path) : undefined;
}

/** The text of stored file data for a search. */
export function searchable(path: string, data: port.FileData): SearchableContent {
  const known = parseContent(path, data);
  return known.ok && known.content.kind === "text"
    ? { kind: "text", text: known.content.text }
    : { kind: "binary" };
}
