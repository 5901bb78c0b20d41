import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { readOptions } from "../core/options.ts";
import type * as port from "./backend.ts";
import { CheckedBackend, FILES_ONLY, type Located, type Operations, storedBy } from "./checked-backend.ts";
import { type BackendFailure, errors } from "./errors.ts";
import { editFileData, readFileData, toFileData, contentVersion } from "./file-data.ts";
import { parentPaths, validatePath, withoutSlash } from "./paths.ts";
import { bindRuntime, checkBackend, obtainBackend } from "./runtime.ts";
import {
  globFlat,
  grepFlat,
  grepShown,
  hasBelow,
  toFileInfos,
  listFlat,
  pathsAtOrBelow,
  sortByPath,
} from "./search.ts";

/** Begins the name of a file that marks a deletion: the base has the deleted entry under the rest of the name. */
const DELETED = ".wh.";

/** True if a path contains a name that is reserved for deletion marks. */
const isReserved = (path: string): boolean => path.split("/").some((name) => name.startsWith(DELETED));

const deletionMark = (path: string): string => {
  const name = path.lastIndexOf("/") + 1;
  return path.slice(0, name) + DELETED + path.slice(name);
};

/** The changes of an overlay in the files of a thread: new content, and marks for deletions in the base. */
class OverlayChanges {
  readonly #files: port.ThreadFiles;

  constructor(files: port.ThreadFiles) {
    this.#files = files;
  }

  get(path: string): port.FileData | undefined {
    return this.#files.get(path);
  }

  /** True if the path, or a directory above it, is deleted in the base. */
  hidesBase(path: string): boolean {
    return [...parentPaths(path), path].some((at) => this.#files.get(deletionMark(at)) !== undefined);
  }

  *entries(): Generator<[string, port.FileData]> {
    for (const entry of this.#files.entries()) if (!isReserved(entry[0])) yield entry;
  }

  hasBelow(path: string): boolean {
    return hasBelow(path, this.entries());
  }

  put(path: string, data: port.FileData): Record<string, port.FileData> {
    const update = { [path]: data };
    this.#files.apply(update);
    return update;
  }

  /** Deletes the changes at and below a path. With `mark`, deletes the path in the base as well. */
  delete(path: string, mark: port.FileData | undefined) {
    const own = pathsAtOrBelow(path, this.#files.entries());
    const filesUpdate = Object.fromEntries(own.map((at): [string, null] => [at, null]));
    this.#files.apply(filesUpdate);
    return mark === undefined
      ? { filesUpdate }
      : { filesUpdate, recorded: this.put(deletionMark(path), mark) };
  }
}

const isShown = (path: string, changes: OverlayChanges): boolean =>
  changes.get(path) === undefined && !changes.hidesBase(path) && !isReserved(path);

/** Merges two listings. A path may be missing in one of them; any other failure of the base is the result. */
function mergeFiles(base: port.GlobResult, own: port.GlobResult, changes: OverlayChanges): port.GlobResult {
  if (base.error !== undefined) return base.code === "not_found" && own.error === undefined ? own : base;
  const merged = new Map<string, port.FileInfo>((own.files ?? []).map((file) => [file.path, file]));
  for (const file of base.files ?? []) {
    // A directory that both have is shown with the time that the base knows.
    if (isShown(withoutSlash(file.path), changes)) merged.set(file.path, file);
  }
  return { ...base, files: sortByPath([...merged.values()]) };
}

/** The failure for a path that is deleted in the base; undefined for any other path. */
function hiddenFile(path: string, changes: OverlayChanges): BackendFailure | undefined {
  if (!changes.hidesBase(path)) return undefined;
  return changes.hasBelow(path) ? errors.isDirectory(path) : errors.fileNotFound(path);
}

const orDirectory = <Result extends port.Failure>(result: Result, path: string, changes: OverlayChanges) =>
  result.code === "not_found" && changes.hasBelow(path) ? errors.isDirectory(path) : result;

/** Finds the file at a path of the base. Returns undefined if a file can be made there, or a failure if not. */
async function findInBase(base: port.Backend, path: string, options: port.CallOptions) {
  const found = await look(base, path, options);
  if (found !== undefined) return found;
  for (const parent of parentPaths(path).reverse()) {
    const above = await look(base, parent, options);
    if (above === undefined) continue;
    if (!("error" in above)) return errors.parentIsFile(path);
    return above.code === "is_directory" ? undefined : above;
  }
  return undefined;
}

async function look(base: port.Backend, path: string, options: port.CallOptions) {
  const { error, code, version } = await base.read(path, 0, 1, options);
  // These failures show that a file exists.
  const isUnreadable = ["binary", "encoding", "too_large", "out_of_range"].includes(code ?? "");
  if (error === undefined || isUnreadable) return { version };
  return code === "not_found" ? undefined : { error, code: code ?? "io" };
}

interface OverlayPath extends Located {
  changes: OverlayChanges;
  base: () => Promise<port.Backend>;
  clock: Clock;
}

const OVERLAY_OPERATIONS: Operations<OverlayPath> = {
  ls: async ({ path, changes, base }, options) => {
    const own = listFlat(path, toFileInfos(changes.entries()));
    if (changes.get(path) !== undefined) return own;
    const backend = await base();
    const lower = changes.hidesBase(path) ? errors.directoryNotFound(path) : await backend.ls(path, options);
    return mergeFiles(lower, own, changes);
  },
  read: async ({ path, changes, base }, page, options) => {
    const own = changes.get(path);
    if (own !== undefined) return readFileData(path, own, page);
    const backend = await base();
    return (
      hiddenFile(path, changes) ??
      orDirectory(await backend.read(path, page.offset, page.limit, options), path, changes)
    );
  },
  readRaw,
  glob: async ({ path, changes, base }, pattern, options) => {
    const own = globFlat(pattern, path, toFileInfos(changes.entries()));
    if (own.error !== undefined && own.code !== "not_found") return own;
    const backend = await base();
    const lower = changes.hidesBase(path)
      ? errors.directoryNotFound(path)
      : await backend.glob(pattern, path, options);
    return mergeFiles(lower, own, changes);
  },
  grep: async ({ path, changes, base }, search) => {
    const { pattern, glob, maxCount, options } = search;
    const own = await grepFlat(changes.entries(), search);
    if (changes.get(path) !== undefined || (own.error !== undefined && own.code !== "not_found")) return own;
    const backend = await base();
    const lower: port.GrepResult = changes.hidesBase(path)
      ? errors.pathNotFound(path)
      : await grepShown(
          (cap) => backend.grep(pattern, path, glob, cap, options),
          maxCount + 1,
          (match) => isShown(match, changes),
        );
    if (lower.error !== undefined) return lower.code === "not_found" && own.error === undefined ? own : lower;
    const matches = sortByPath([...(lower.matches ?? []), ...(own.matches ?? [])]);
    const truncated = lower.truncated === true || own.truncated === true || matches.length > maxCount;
    return { ...lower, matches: matches.slice(0, maxCount), truncated };
  },
  ...storedBy<OverlayPath>(async (at, bytes, options) => {
    const { path, changes } = at;
    const isOwn = changes.get(path) !== undefined || changes.hidesBase(path);
    const { signal } = options;
    const found = isOwn ? undefined : await findInBase(await at.base(), path, { signal });
    if (signal?.aborted === true) return errors.operationAborted(path);
    if (found !== undefined && "error" in found) return found;
    // Another call may have deleted it while the base was asked.
    const below = changes.hidesBase(path) ? undefined : found;
    if (changes.hasBelow(path)) return errors.isDirectory(path);
    if (parentPaths(path).some((parent) => changes.get(parent) !== undefined))
      return errors.parentIsFile(path);
    const own = changes.get(path);
    const version = own === undefined ? below?.version : contentVersion(own);
    if ((own ?? below) !== undefined && options.mode !== "overwrite") return errors.alreadyExists(path);
    if (options.expectedVersion !== undefined && options.expectedVersion !== version)
      return errors.changedSinceRead(path);
    return putChange(at, bytes, own?.created_at);
  }),
  edit: async (at, { expectedVersion, ...edit }) => {
    const { path, changes } = at;
    const { signal, realPath, hides } = edit;
    const found = await readRaw(at, { signal, realPath, hides });
    // Another call may have changed or deleted it while the base was read.
    const own = changes.get(path);
    const data = own ?? (changes.hidesBase(path) ? undefined : found.data);
    if (data === undefined)
      return found.error === undefined ? errors.fileNotFound(path) : { error: found.error, code: found.code };
    const version = own === undefined ? found.version : contentVersion(own);
    if (expectedVersion !== undefined && expectedVersion !== version) return errors.changedSinceRead(path);
    const edited = editFileData(path, data, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    return { ...putChange(at, edited.bytes, data.created_at), occurrences: edited.occurrences };
  },
  delete: async ({ path, changes, base, clock }, { signal }) => {
    if (path === "/") return errors.refusedToDelete(path);
    const backend = await base();
    const lower = changes.hidesBase(path) ? errors.fileNotFound(path) : await backend.ls(path, { signal });
    const isInBase = lower.error === undefined;
    if (!isInBase && lower.code !== "not_found") return lower;
    const isOwn = changes.get(path) !== undefined || changes.hasBelow(path);
    if (!isInBase && !isOwn) return errors.fileNotFound(path);
    const mark = isInBase ? toFileData(path, new Uint8Array(), { now: isoTime(clock()) }) : undefined;
    return { path, ...changes.delete(path, mark) };
  },
};

async function readRaw(
  { path, changes, base }: OverlayPath,
  options: port.CallOptions,
): Promise<port.ReadRawResult> {
  const own = changes.get(path);
  if (own !== undefined) return { data: own, version: contentVersion(own) };
  const backend = await base();
  return hiddenFile(path, changes) ?? orDirectory(await backend.readRaw(path, options), path, changes);
}

function putChange({ path, changes, clock }: OverlayPath, bytes: Uint8Array, createdAt?: string) {
  const data = toFileData(path, bytes, { now: isoTime(clock()), createdAt });
  return { path, filesUpdate: changes.put(path, data), version: contentVersion(data) };
}

/**
 * Shows changes on top of a backend and never changes that backend. Writes, edits and deletions are kept in the
 * files of the thread and are seen by this thread alone, so an agent can work on a folder and leave it untouched.
 * The base needs virtual paths. Names that start with `.wh.` are reserved for marks of deletions. Runs no commands.
 */
export class OverlayBackend extends CheckedBackend {
  readonly capabilities: Partial<port.BackendCapabilities> = { ...FILES_ONLY, lifetime: "thread" };
  readonly #source: port.BackendSource;
  readonly #clock: Clock;
  readonly #runtime: port.BackendRuntime | undefined;
  #base: Promise<port.Backend> | undefined;

  constructor(base: port.BackendSource, given: { clock?: Clock } = {}, runtime?: port.BackendRuntime) {
    checkBackend("The first argument of OverlayBackend", base);
    super(OVERLAY_OPERATIONS, (path) => this.#locate(path));
    this.#source = base;
    this.#clock = readOptions("OverlayBackend", given, { clock: "a function" }).clock ?? systemClock;
    this.#runtime = runtime;
  }

  [bindRuntime](runtime: port.BackendRuntime): port.Backend {
    return new OverlayBackend(this.#source, { clock: this.#clock }, runtime);
  }

  #locate(given: string): OverlayPath | BackendFailure {
    const valid = validatePath(given);
    if (!valid.ok) return valid;
    if (isReserved(valid.path)) return errors.reservedName(valid.path);
    if (this.#runtime === undefined) return errors.threadFilesMissing();
    const base = (): Promise<port.Backend> => (this.#base ??= obtainBackend(this.#source, this.#runtime));
    return { path: valid.path, changes: new OverlayChanges(this.#runtime.files), base, clock: this.#clock };
  }

  /** Changes have no links. */
  async followLinks(given: string, options?: port.ResolveOptions): Promise<string | undefined> {
    const at = this.#locate(given);
    if ("error" in at) return undefined;
    const { path, changes } = at;
    const base = await at.base();
    const isOwn = changes.get(path) !== undefined || changes.hidesBase(path);
    return isOwn || base.followLinks === undefined ? path : base.followLinks(path, options);
  }

  /** One root: changes stay in the conversation, whatever the base is. */
  roots(): port.FileRoot[] {
    return [{ path: "/", holds: "thread" }];
  }
}
