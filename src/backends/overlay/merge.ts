import type {
  Backend,
  CallOptions,
  FileInfo,
  GlobResult,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
} from "../backend.ts";
import * as errors from "../errors.ts";
import { infoOf } from "../file-data.ts";
import { sortByPath } from "../flat-files.ts";
import { isReserved, type OverlayChanges } from "./changes.ts";
import { parentsOf, withoutSlash } from "../paths.ts";

/** How an overlay puts what its base answers together with its own changes. */

export function* infosOf(changes: OverlayChanges): Generator<FileInfo> {
  for (const [path, data] of changes.entries()) yield infoOf(path, data);
}

const isShown = (path: string, changes: OverlayChanges): boolean =>
  changes.get(path) === undefined && !changes.hidesBase(path) && !isReserved(path);

/** What is not in the base may be in the changes and the other way round; other failures of the base count. */
export function mergeFiles<Result extends LsResult | GlobResult>(
  base: Result,
  own: Result,
  changes: OverlayChanges,
): Result {
  if (base.error !== undefined) return base.code === "not_found" && own.error === undefined ? own : base;
  const merged = new Map<string, FileInfo>((own.files ?? []).map((file) => [file.path, file]));
  for (const file of base.files ?? []) {
    // A directory of both is shown as the base has it, with its time.
    if (isShown(withoutSlash(file.path), changes)) merged.set(file.path, file);
  }
  return { ...base, files: sortByPath([...merged.values()]) };
}

/** How many times its cap a search may ask for to make up for matches that are not shown. */
const MAX_GROWTH = 256;

/** A search of the base without what was changed or deleted: more than `wanted` matches of it if there are. */
export async function grepBase(
  changes: OverlayChanges,
  wanted: number,
  ask: (cap: number) => GrepResult | Promise<GrepResult>,
): Promise<GrepResult> {
  for (let cap = wanted; ; cap *= 4) {
    const result = await ask(cap);
    if (result.matches === undefined) return result;
    const matches = result.matches.filter(({ path }) => isShown(path, changes));
    // Fewer than the cap: it is the time that was up.
    const isAll = result.truncated !== true || result.matches.length < cap || cap > wanted * MAX_GROWTH;
    if (isAll || matches.length > wanted) return { ...result, matches };
  }
}

/** What is said of a path at which the base is not asked; undefined when it is. */
export function hiddenFile(path: string, changes: OverlayChanges): errors.BackendFailure | undefined {
  if (!changes.hidesBase(path)) return undefined;
  return changes.hasBelow(path) ? errors.isDirectory(path) : errors.fileNotFound(path);
}

export const orDirectory = <Result extends ReadResult | ReadRawResult>(
  result: Result,
  path: string,
  changes: OverlayChanges,
): Result | errors.BackendFailure =>
  result.code === "not_found" && changes.hasBelow(path) ? errors.isDirectory(path) : result;

/** A file that is there all the same. */
const UNREADABLE_FILE = new Set(["binary", "encoding", "too_large", "out_of_range"]);

/** The file the base has at a path; undefined when one can be made there, or why not. */
export async function entryIn(
  base: Backend,
  path: string,
  options: CallOptions,
): Promise<{ version?: string | undefined } | errors.BackendFailure | undefined> {
  const found = await look(base, path, options);
  if (found !== undefined) return found;
  for (const parent of parentsOf(path).reverse()) {
    const above = await look(base, parent, options);
    if (above === undefined) continue;
    if (!("error" in above)) return errors.parentIsFile(path);
    return above.code === "is_directory" ? undefined : above;
  }
  return undefined;
}

async function look(
  base: Backend,
  path: string,
  options: CallOptions,
): Promise<{ version?: string | undefined } | errors.BackendFailure | undefined> {
  const { error, code, version } = await base.read(path, 0, 1, options);
  if (error === undefined || (code !== undefined && UNREADABLE_FILE.has(code))) return { version };
  return code === "not_found" ? undefined : { error, code: code ?? "io" };
}
