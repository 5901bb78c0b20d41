import type {
  Backend,
  BackendCapabilities,
  EditOptions,
  EditResult,
  Failure,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import { type BackendV1, fromV1, isV1 } from "./adapt-v1.ts";
import {
  alreadyExists,
  type BackendFailure,
  changedSinceRead,
  foreignFailure,
  operationAborted,
  thrownFailure,
} from "./errors.ts";
import { versionOf } from "./file-data.ts";
import { grepFlat, sortByPath } from "./flat-files.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { pageRequest } from "./pages.ts";
import { withSlash } from "./paths.ts";
import { DEFAULT_MAX_COUNT } from "./search.ts";

const COMPLETE = ["writeMode", "regexGrep", "versions", "abort"] as const;

/** Writes to a foreign backend, one at a time for each path, whatever number of adapters it has. */
const locks = new WeakMap<object, KeyedLock>();

/**
 * A backend written for deepagents (version 1 or 2 of its protocol) with everything the port promises. What
 * it declares to do itself is left to it; the rest is done here: no file is overwritten by a create, edits
 * are bound to versions, expressions are searched, results are in order, and nothing throws. A backend that
 * declares all of it is given back as it is.
 */
export function adaptBackend(foreign: Backend | BackendV1): Backend {
  const backend = isV1(foreign) ? fromV1(foreign) : foreign;
  const declared = backend.capabilities ?? {};
  if (COMPLETE.every((capability) => declared[capability] === true)) return backend;
  const lock = locks.get(foreign) ?? new KeyedLock();
  locks.set(foreign, lock);
  const adapted = new Adapted(backend, lock);
  const remove = backend.delete?.bind(backend);
  const uploadFiles = backend.uploadFiles?.bind(backend);
  const downloadFiles = backend.downloadFiles?.bind(backend);
  const lifetimeOf = backend.lifetimeOf?.bind(backend);
  return {
    capabilities: { ...declared, writeMode: true, regexGrep: true, versions: true, abort: true },
    ls: (...args) => adapted.ls(...args),
    read: (...args) => adapted.read(...args),
    readRaw: (...args) => adapted.readRaw(...args),
    grep: (...args) => adapted.grep(...args),
    glob: (...args) => adapted.glob(...args),
    write: (...args) => adapted.write(...args),
    edit: (...args) => adapted.edit(...args),
    ...(remove === undefined
      ? {}
      : {
          delete: (path, options) => adapted.guard(path, options, () => remove(path, options)),
        }),
    ...(uploadFiles === undefined ? {} : { uploadFiles }),
    ...(downloadFiles === undefined ? {} : { downloadFiles }),
    ...(lifetimeOf === undefined ? {} : { lifetimeOf }),
    ...executionOf(backend),
  };
}

/** `id` and `execute` of a sandbox; nothing of other backends. */
function executionOf(backend: Backend): object {
  if (!("execute" in backend) || typeof backend.execute !== "function") return {};
  const { execute } = backend;
  return {
    id: "id" in backend ? backend.id : "",
    execute: (...args: unknown[]): unknown => Reflect.apply(execute, backend, args),
  };
}

class Adapted {
  readonly #backend: Backend;
  readonly #declared: Partial<BackendCapabilities>;
  readonly #lock: KeyedLock;

  constructor(backend: Backend, lock: KeyedLock) {
    this.#backend = backend;
    this.#declared = backend.capabilities ?? {};
    this.#lock = lock;
  }

  async ls(path: string, options?: EditOptions): Promise<LsResult> {
    const result: LsResult = await this.guard<LsResult>(path, options, () => this.#backend.ls(path, options));
    const files = result.files?.map((file) => (file.is_dir ? { ...file, path: withSlash(file.path) } : file));
    return files === undefined ? result : { ...result, files: sortByPath(files) };
  }

  async read(path: string, offset?: number, limit?: number, options?: EditOptions): Promise<ReadResult> {
    const request = pageRequest(offset, limit);
    const result: ReadResult = await this.guard<ReadResult>(path, options, () =>
      this.#backend.read(path, request.offset, request.limit, options),
    );
    if (typeof result.content !== "string") return result;
    // Others count these lines from 1.
    const lines =
      result.content.split("\n").length - (result.content.endsWith("\n") || result.content === "" ? 1 : 0);
    return { ...result, startLine: request.offset, endLine: request.offset + lines };
  }

  async readRaw(path: string, options?: EditOptions): Promise<ReadRawResult> {
    const result: ReadRawResult = await this.guard<ReadRawResult>(path, options, () =>
      this.#backend.readRaw(path, options),
    );
    const { data } = result;
    if (data === undefined || result.version !== undefined) return result;
    return { ...result, version: versionOf(data) };
  }

  async glob(pattern: string, path?: string, options?: EditOptions): Promise<GlobResult> {
    const result: GlobResult = await this.guard<GlobResult>(path ?? "/", options, () =>
      this.#backend.glob(pattern, path, options),
    );
    const files = result.files?.filter((file) => file.is_dir !== true);
    return files === undefined ? result : { ...result, files: sortByPath(files) };
  }

  async grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options: GrepOptions = {},
  ): Promise<GrepResult> {
    const cap = maxCount ?? DEFAULT_MAX_COUNT;
    const isPlain =
      options.regex !== true &&
      options.caseSensitive !== false &&
      (options.contextLines ?? 0) === 0 &&
      options.maxPerFile === undefined;
    if (this.#declared.regexGrep !== true && !isPlain) {
      return this.#grepHere({ pattern, path: path ?? "/", glob, maxCount: cap, options });
    }
    const result: GrepResult = await this.guard<GrepResult>(path ?? "/", options, () =>
      this.#backend.grep(pattern, path, glob, cap, options),
    );
    if (result.matches === undefined) return result;
    const matches = sortByPath([...result.matches]);
    return {
      ...result,
      matches: matches.slice(0, cap),
      truncated: result.truncated === true || matches.length > cap,
    };
  }

  async write(path: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    if (this.#declared.writeMode === true) {
      return this.guard<WriteResult>(path, options, () => this.#backend.write(path, content, options));
    }
    return this.#lock.run(path, async () => {
      const old = await this.readRaw(path, options);
      if (old.error !== undefined && old.code !== "not_found") return failureOf(path, old);
      if (old.data !== undefined && options.mode !== "overwrite") return alreadyExists(path);
      if (options.expectedVersion !== undefined && options.expectedVersion !== old.version) {
        return changedSinceRead(path);
      }
      return this.guard<WriteResult>(path, options, () =>
        this.#replace(path, content, old.data !== undefined),
      );
    });
  }

  async edit(
    path: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
    options: EditOptions = {},
  ): Promise<EditResult> {
    const edit = (): Promise<EditResult> =>
      this.guard<EditResult>(path, options, () =>
        this.#backend.edit(path, oldString, newString, replaceAll, options),
      );
    return this.#lock.run(path, async () => {
      if (this.#declared.versions === true || options.expectedVersion === undefined) return edit();
      const old = await this.readRaw(path, options);
      if (old.error !== undefined) return failureOf(path, old);
      return old.version === options.expectedVersion ? edit() : changedSinceRead(path);
    });
  }

  /** A call of the foreign backend that never throws, does not outlast its signal and names its failures. */
  async guard<Result extends Failure>(
    path: string,
    options: { signal?: AbortSignal } | undefined,
    call: () => Result | Promise<Result>,
  ): Promise<Result | BackendFailure> {
    if (options?.signal?.aborted === true) return operationAborted(path);
    try {
      const result = await untilAborted(call, options?.signal);
      if (result === undefined) return operationAborted(path);
      return result.error === undefined ? result : { ...result, ...failureOf(path, result) };
    } catch (thrown) {
      return thrownFailure(path, thrown);
    }
  }

  /** Some backends write over a file, others refuse to; an upload always does. */
  async #replace(path: string, content: string, exists: boolean): Promise<WriteResult> {
    const written = await this.#backend.write(path, content);
    if (written.error === undefined || !exists || this.#backend.uploadFiles === undefined) return written;
    const [answer] = await this.#backend.uploadFiles([[path, new TextEncoder().encode(content)]]);
    return answer?.error === null ? { path, filesUpdate: answer.filesUpdate ?? null } : written;
  }

  async #grepHere(search: {
    pattern: string;
    path: string;
    glob: string | null | undefined;
    maxCount: number;
    options: GrepOptions;
  }): Promise<GrepResult> {
    const { path, options } = search;
    const one = await this.readRaw(path, options);
    if (one.data !== undefined) return grepFlat([[path, one.data]], search);
    const listed = await this.glob("**", path, options);
    if (listed.files === undefined) return failureOf(path, listed);
    const files: [string, NonNullable<ReadRawResult["data"]>][] = [];
    let skipped = 0;
    for (const file of listed.files) {
      const { data } = await this.readRaw(file.path, options);
      if (data === undefined) skipped += 1;
      else files.push([file.path, data]);
    }
    const result = await grepFlat(files, { ...search, path });
    return result.matches === undefined ? result : { ...result, skipped: (result.skipped ?? 0) + skipped };
  }
}

const failureOf = (path: string, { error = "", code }: Failure): BackendFailure =>
  code === undefined ? foreignFailure(path, error) : { error, code };

/** The result, or undefined when the signal came first; then nobody waits for the call any more. */
async function untilAborted<Result>(
  call: () => Result | Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result | undefined> {
  if (signal === undefined) return call();
  let stop = (): void => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([call(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
