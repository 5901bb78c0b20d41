import { closeSync, constants, fstatSync } from "node:fs";
import { join } from "node:path";
import { filterInTurns } from "../../core/concurrency.ts";
import { codeOf } from "../../core/errors.ts";
import type { CallOptions, FileInfo, GlobResult, GrepResult } from "../backend.ts";
import { detectEncoding, encodedForms, readFileText } from "../encoding.ts";
import { errors } from "../errors.ts";
import type { Glob } from "../glob.ts";
import { hasNul, isTextType, mimeTypeOf } from "../mime.ts";
import { readBytes } from "../pages.ts";
import { baseName, comparePaths, joinPath, withSlash } from "../paths.ts";
import type { Search, SearchFile, SearchableContent } from "../search.ts";
import { SEARCH_TIME_LIMIT_MS, compileSearch, searchFiles } from "../search.ts";
import { GitignoreTree } from "./gitignore.ts";
import { type DirectoryHandle, DirectoryTrail } from "./handles.ts";
import type { FilesystemPath, HiddenFiles } from "./jail.ts";
import { type OpenDirectory, type WalkRequest, walkFiles } from "./list.ts";
import { isTemporaryName } from "./read-write.ts";
import type { RipgrepAnswer } from "./ripgrep.ts";
import { LIMITS_MEMORY, ripgrepFiles, ripgrepPattern, toRipgrepGlobs } from "./ripgrep.ts";

export interface SearchRoot extends OpenDirectory {
  ignored: GitignoreTree;
  /** True if these are left out. Otherwise they come last. */
  leavesOut: boolean;
  /** Files that are not read. Default: none. */
  hidden?: HiddenFiles | undefined;
}

/** Calls `use` with a root that knows which files git ignores in `top` and below. */
export function withGitignore<Result>(
  root: Omit<SearchRoot, "ignored">,
  top: readonly string[],
  use: (root: SearchRoot) => Promise<Result>,
): Promise<Result> {
  const isBelowTop = top.every((segment, index) => root.segments[index] === segment);
  const from = isBelowTop ? top : root.segments;
  return root.tree.jail.inDirectory(from, {}, async (directory) => {
    const ignored = new GitignoreTree(directory, root.segments.slice(from.length));
    try {
      return await use({ ...root, ignored });
    } finally {
      ignored.close();
    }
  });
}

/** The pattern without the ignored files. `onIgnored` is called for each of these and their directories. */
function withoutIgnored(glob: Glob, { ignored }: SearchRoot, onIgnored?: (path: string) => void): Glob {
  const isKept = (path: string, isDirectory: boolean): boolean => {
    const isIgnored = ignored.excludes(path, isDirectory);
    if (isIgnored) onIgnored?.(path);
    return !isIgnored;
  };
  return {
    ...glob,
    matches: (path) => glob.matches(path) && isKept(path, false),
    reaches: (directory) => glob.reaches(directory) && isKept(directory, true),
  };
}

interface Portion {
  files: readonly string[];
  ignored: boolean;
}

/** Yields the matching files in path order, those that git ignores after all others. */
async function* walkInOrder(root: SearchRoot, glob: Glob, request: Omit<WalkRequest, "glob">) {
  const { ignored, leavesOut, directory } = root;
  const onTheWay = new Set<string>();
  /** A directory, or a file, for which the directories on the way are remembered. */
  const onIgnored = (path: string): void => {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
      onTheWay.add(path.slice(0, at));
    onTheWay.add(path);
  };
  const onNames = (at: string, names: readonly string[]): void => {
    if (!names.includes(".gitignore")) ignored.addsNothing(at);
  };
  const kept = withoutIgnored(glob, root, onIgnored);
  for await (const found of walkFiles(directory, { ...request, glob: kept, onNames })) {
    const matching = await filterInTurns(found, (path) => glob.matches(path));
    const files = await ignored.kept(matching);
    if (files.length < matching.length) onIgnored(found[0] ?? "");
    yield { files, ignored: false };
  }
  if (leavesOut || onTheWay.size === 0) return;
  const reaches = (path: string): boolean =>
    glob.reaches(path) && (onTheWay.has(path) || ignored.excludes(path, true));
  for await (const files of walkFiles(directory, { ...request, glob: { reaches } })) {
    const late = await filterInTurns(files, (path) => glob.matches(path) && ignored.excludes(path, false));
    yield { files: late, ignored: true };
  }
}

/** Finds the files below the root that match, in path order, and links to files inside the jail. */
export async function globDirectory(root: SearchRoot, glob: Glob, options: CallOptions): Promise<GlobResult> {
  const files: FileInfo[] = [];
  let skipped = 0;
  const deadline = performance.now() + SEARCH_TIME_LIMIT_MS;
  const links = new Map<string, Pick<FileInfo, "real_path">>();
  const isFile = (link: string): boolean => {
    const followed = root.tree.jail.follow([...root.segments, ...link.split("/")]);
    if (followed?.stats?.isFile() !== true) return false;
    links.set(link, { real_path: root.tree.pathOf(followed.segments) });
    return true;
  };
  const request = { isFile, onUnreadable: () => (skipped += 1) };
  const base = withSlash(root.path);
  for await (const portion of walkInOrder(root, glob, request)) {
    if (options.signal?.aborted === true) return errors.operationAborted(root.path);
    if (performance.now() > deadline) return { files, skipped, truncated: true };
    for (const path of portion.files) {
      if (files.length === 100_000) return { files, skipped, truncated: true };
      const file: FileInfo = { path: base + path, is_dir: false };
      if (links.size > 0) Object.assign(file, links.get(path));
      if (portion.ignored) file.ignored = true;
      files.push(file);
    }
  }
  return { files, skipped, truncated: false };
}

export interface FilesystemSearch extends Search {
  filter: Glob;
  maxFileSize: number;
  /** The `rg` to use; undefined for the built-in walk. */
  ripgrep: string | undefined;
}

/**
 * Finds the matching lines below the root, in path order, those of ignored files last. ripgrep only proposes files.
 * Each is opened inside the jail and searched here, so the result is the same without ripgrep and contains nothing
 * from outside.
 */
export async function grepDirectory(root: SearchRoot, search: FilesystemSearch): Promise<GrepResult> {
  const { maxCount, filter } = search;
  const compiled = compileSearch(search.pattern, search.options);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const deadline = performance.now() + SEARCH_TIME_LIMIT_MS;
  let skipped = 0;
  const walk = () => walkInOrder(root, filter, { onUnreadable: () => (skipped += 1) });
  if (search.ripgrep !== undefined && maxCount <= FIRST_FILES) {
    // Starting ripgrep takes about as long.
    const soonest = performance.now() + 50;
    const first = await searchPortions(root, walk(), search, { deadline: soonest, most: FIRST_FILES });
    if (first.error !== undefined) return first;
    // One that ran out of time has fewer matches than are wanted.
    if (first.truncated === true && first.matches?.length === maxCount)
      return { ...first, skipped: (first.skipped ?? 0) + skipped };
  }
  const glob = root.leavesOut ? withoutIgnored(filter, root) : filter;
  const isDense =
    search.ripgrep !== undefined && maxCount > FIRST_FILES && (await matchesInMost(root, walk(), search));
  const proposed = isDense ? undefined : await propose(root, glob, search, deadline);
  if (proposed?.end === "aborted") return errors.operationAborted(root.path);
  const isUsable = proposed !== undefined && proposed.end !== "overflow";
  skipped = isUsable ? countSkipped(root, glob, proposed) : 0;
  const portions = isUsable ? await orderProposed(root, glob, proposed.files) : walk();
  // Files found before the time was up are still searched.
  const until = proposed?.end === "timeout" ? deadline + SEARCH_TIME_LIMIT_MS / 3 : deadline;
  const result = await searchPortions(root, portions, search, { deadline: until });
  if (result.error !== undefined) return result;
  return {
    ...result,
    skipped: (result.skipped ?? 0) + skipped,
    truncated: result.truncated === true || proposed?.end === "timeout",
  };
}

/** Most files of a search before ripgrep starts. */
const FIRST_FILES = 150;

/** True if most of the first files have a match: ripgrep would name most files of the tree, and each is read again. */
async function matchesInMost(
  root: SearchRoot,
  portions: AsyncIterable<Portion>,
  search: FilesystemSearch,
): Promise<boolean> {
  const most = 64;
  const one = { ...search, options: { ...search.options, maxPerFile: 1 } };
  const { matches = [] } = await searchPortions(root, portions, one, {
    deadline: performance.now() + 50,
    most,
  });
  return matches.length > most / 2;
}

/** Searches the files of the portions in their order. */
async function searchPortions(
  root: SearchRoot,
  portions: Iterable<Portion> | AsyncIterable<Portion>,
  search: FilesystemSearch,
  { deadline, most = Infinity }: { deadline: number; most?: number },
): Promise<GrepResult> {
  const trail = new DirectoryTrail(root.directory);
  const mayMatch = bytesFilter(search);
  // ripgrep takes UTF-16 without a mark for binary.
  const isReadable = (bytes: Uint8Array): boolean => !hasNul(bytes) || detectEncoding(bytes) !== "utf-8";
  const limits = {
    maxFileSize: search.maxFileSize,
    hidden: root.hidden,
    // Its files are read one after the other.
    scratch: Buffer.allocUnsafeSlow(64 * 1024),
    mayMatch: (bytes: Uint8Array) => isReadable(bytes) && mayMatch(bytes),
  };
  async function* files(): AsyncGenerator<SearchFile> {
    let given = 0;
    for await (const portion of portions) {
      for (const path of portion.files) {
        const name = baseName(path);
        if (isTemporaryName(name)) continue;
        if ((given += 1) > most) return;
        yield {
          path: joinPath(root.path, path),
          ignored: portion.ignored,
          load: () => loadText(name, limits, async (use) => use(trail.openFile(path, constants.O_RDONLY))),
        };
      }
    }
  }
  return searchFiles(files(), search, deadline).finally(() => trail.close());
}

/** Puts the proposed files that match in order, those that git ignores after all others. */
async function orderProposed({ ignored, leavesOut }: SearchRoot, glob: Glob, proposed: readonly string[]) {
  const isChosen = (path: string): boolean => !path.includes("\\") && glob.matches(path);
  const chosen = await filterInTurns([...new Set(proposed)], isChosen);
  const sorted = chosen.sort(comparePaths);
  if (leavesOut) return [{ files: sorted, ignored: false }];
  const late = new Set(await filterInTurns(sorted, (path) => ignored.excludes(path, false)));
  return [
    { files: sorted.filter((path) => !late.has(path)), ignored: false },
    { files: [...late], ignored: true },
  ];
}

/** Finds the matching lines of one file, which is searched even if `.gitignore` excludes it. */
export async function grepFile(
  { jail, segments, path, links, hidden }: FilesystemPath,
  search: FilesystemSearch,
): Promise<GrepResult> {
  const file = {
    path,
    load: () =>
      loadText(baseName(path), { ...search, hidden, mayMatch: bytesFilter(search) }, (use) =>
        jail.atEntry(segments, { links }, ({ directory, name }) =>
          use(directory.openFile(name, constants.O_RDONLY)),
        ),
      ),
  };
  return searchFiles(search.filter.matches(baseName(path)) ? [file] : [], search);
}

async function propose(
  { tree, directory, segments, ignored, leavesOut }: SearchRoot,
  filter: Glob,
  { pattern, maxCount, options, maxFileSize, ripgrep }: FilesystemSearch,
  deadline: number,
): Promise<RipgrepAnswer | undefined> {
  const caseSensitive = options.caseSensitive !== false;
  const translated = ripgrepPattern(pattern, { isRegex: options.regex === true, caseSensitive });
  if (ripgrep === undefined || translated === undefined) return undefined;
  const request = {
    binary: ripgrep,
    directory: join(tree.jail.root, ...segments),
    ...translated,
    caseSensitive,
    maxFiles: translated.isRegex ? 10_000 : Math.min(Math.max(maxCount * 10, 1000), 10_000),
    globs: toRipgrepGlobs(filter),
    excluded: leavesOut ? [".git", ...(await directoriesLeftOut(directory, ignored))] : ["**/.git/objects"],
    signal: options.signal,
  };
  if (LIMITS_MEMORY) {
    // Checking the size of each file takes a fifth of a search. It is worth it if there are large files, which is
    // likely if a search without the check does not end within this time.
    const soon = performance.now() + 2000;
    const everything = { ...request, maxFileSize: undefined, deadline: Math.min(deadline, soon) };
    const answer = await ripgrepFiles(everything);
    if (answer?.end !== "timeout") return answer;
  }
  return ripgrepFiles({ ...request, maxFileSize, deadline });
}

/** Finds excluded directories, in bounds, which ripgrep need not read. Its proposals are filtered all the same. */
async function directoriesLeftOut(directory: DirectoryHandle, ignored: GitignoreTree): Promise<string[]> {
  const leftOut: string[] = [];
  let lookedAt = 0;
  const reaches = (path: string): boolean => {
    if ((lookedAt += 1) > 1000 || leftOut.length === 300) return false;
    if (!ignored.excludes(path, true)) return true;
    // Other names would need escapes.
    if (/^[\w./@+ -]+$/.test(path)) leftOut.push(`/${path}`);
    return false;
  };
  for await (const _files of walkFiles(directory, { glob: { reaches }, onUnreadable: () => undefined }))
    continue;
  return leftOut;
}

/** Counts skipped files like the walk: those that the filter accepts, and directories that it reaches. */
function countSkipped({ tree, segments }: SearchRoot, glob: Glob, answer: RipgrepAnswer): number {
  const isText = (path: string): boolean => isTextType(mimeTypeOf(path));
  const large = answer.tooLarge.filter((path) => glob.matches(path) && isText(path));
  const unreadable = answer.unreadable.filter((path) => {
    const isDirectory =
      path === "." || tree.jail.follow([...segments, ...path.split("/")])?.stats?.isDirectory() === true;
    return isDirectory ? glob.reaches(path === "." ? "" : path) : glob.matches(path) && isText(path);
  });
  return large.length + unreadable.length;
}

interface LoadLimits {
  maxFileSize: number;
  hidden: HiddenFiles | undefined;
  /** False for bytes whose text cannot match. */
  mayMatch: (bytes: Uint8Array) => boolean;
  /** For the bytes of one file after the other. */
  scratch?: Buffer;
}

/** Spares files without a literal text the detection of their encoding. */
function bytesFilter({ pattern, options }: Search): LoadLimits["mayMatch"] {
  if (options.regex === true || options.caseSensitive === false) return () => true;
  const forms = encodedForms(pattern);
  return (bytes) =>
    hasNul(bytes) ||
    forms.some((form) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(form));
}

/** Loads the text of a file for a search. Skips a file that vanished or is not a file any more. */
async function loadText(
  name: string,
  { maxFileSize, hidden, mayMatch, scratch }: LoadLimits,
  open: (use: (descriptor: number) => Promise<SearchableContent>) => Promise<SearchableContent>,
): Promise<SearchableContent> {
  if (!isTextType(mimeTypeOf(name))) return { kind: "binary" };
  try {
    return await open(async (descriptor) => {
      try {
        const stats = fstatSync(descriptor);
        if (!stats.isFile()) return { kind: "binary" };
        if (stats.size > maxFileSize) return { kind: "skipped" };
        const isOneName = stats.nlink < 2 || hidden === undefined;
        // It is not counted as skipped, which would reveal that it exists.
        if (!isOneName && (await hidden.has(fstatSync(descriptor, { bigint: true }))))
          return { kind: "binary" };
        const bytes = await readBytes(descriptor, stats.size, maxFileSize, scratch);
        if (bytes.length > maxFileSize) return { kind: "skipped" };
        const text = mayMatch(bytes) ? readFileText(bytes)?.text : undefined;
        return text === undefined ? { kind: "binary" } : { kind: "text", text };
      } finally {
        closeSync(descriptor);
      }
    });
  } catch (thrown) {
    const code = codeOf(thrown);
    return code === "EACCES" || code === "EPERM" || code === "EIO" ? { kind: "skipped" } : { kind: "binary" };
  }
}
