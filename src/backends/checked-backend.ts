/** The eleven methods of the port, once. They check arguments from outside; `Operations` do the work. */
import { KeyedLock, mapAtMost } from "../core/concurrency.ts";
import type * as port from "./backend.ts";
import { type BackendFailure, type FailureAt, errors, operationError, uploadRefused } from "./errors.ts";
import { type ContentEdit, toBytes, bytesToWrite, readFileData, contentVersion } from "./file-data.ts";
import { type PageRequest, pageRequest } from "./pages.ts";
import { DEFAULT_MAX_COUNT, type Search } from "./search.ts";

/** The capabilities of a backend that keeps every promise of the port. */
export const COMPLETE = {
  writeMode: true,
  regexGrep: true,
  versions: true,
  abort: true,
  rawRead: true,
} as const satisfies Partial<port.BackendCapabilities>;

/** The capabilities of such a backend with files alone, which have virtual paths. */
export const FILES_ONLY = { ...COMPLETE, paths: "virtual", isolation: "none" } as const;

/**
 * The locks of files, shared by the process, because several backends (one for each run, call or subagent) may work on
 * the same file.
 */
export const fileLocks = new KeyedLock();

/** Requests of one operation that may run at the same time. */
export const PARALLEL_TRANSFERS = 8;

/** A checked path, which backends extend with the means to reach the file. */
export interface Located {
  /** The path as results and failures show it. */
  path: string;
}

export type Edit = ContentEdit & port.EditOptions;

export type Method = "ls" | "read" | "readRaw" | "grep" | "glob" | "write" | "edit" | "delete" | "upload";

export type Change = Extract<Method, "write" | "edit" | "delete">;

export const CHANGING_METHODS: ReadonlySet<Method> = new Set<Method>(["write", "edit", "delete", "upload"]);

/** The failure for a missing entry, as a method takes its path. */
export const missingEntry = (method: Method): FailureAt =>
  method === "grep"
    ? errors.pathNotFound
    : method === "ls" || method === "glob"
      ? errors.directoryNotFound
      : errors.fileNotFound;

/** The operations of a backend at checked paths, each of which has all that an operation needs. */
export interface Operations<At extends Located = Located> {
  /** Uploads and downloads at the same time. Default 1. */
  readonly parallel?: number;
  /** Set if every operation but `grep` returns its result at once, and then the methods do, too. Default false. */
  readonly atOnce?: boolean;
  /**
   * Runs an operation, with locks if needed, and turns exceptions into failures. It may run at another place, and with
   * other options, than those of the call. Default: only runs it.
   */
  attempt?<Options extends port.CallOptions, Result>(
    at: At,
    call: { method: Method; options: Options },
    run: (at?: At, options?: Options) => port.MaybePromise<Result>,
  ): port.MaybePromise<Result | BackendFailure>;
  ls(at: At, options: port.CallOptions): port.MaybePromise<port.LsResult>;
  read(at: At, page: PageRequest, options: port.CallOptions): port.MaybePromise<port.ReadResult>;
  readRaw(at: At, options: port.CallOptions): port.MaybePromise<port.ReadRawResult>;
  grep(at: At, search: Search): port.MaybePromise<port.GrepResult>;
  glob(at: At, pattern: string, options: port.CallOptions): port.MaybePromise<port.GlobResult>;
  write(at: At, content: string, options: port.WriteOptions): port.MaybePromise<port.WriteResult>;
  edit(at: At, edit: Edit): port.MaybePromise<port.EditResult>;
  delete(at: At, options: port.CallOptions): port.MaybePromise<port.DeleteResult>;
  /** Stores bytes and replaces existing content. */
  upload(at: At, bytes: Uint8Array, options: port.CallOptions): port.MaybePromise<port.WriteResult>;
  /** The failure that a change at this path has for certain. Default: none is known. */
  refusal?(at: At, change: Change, options: port.CallOptions): port.MaybePromise<port.Failure | undefined>;
  /** Default: the bytes that `readRaw` returns. */
  download?(at: At, options: port.CallOptions): port.MaybePromise<port.FileDownloadResponse>;
}

/** The operations that read a file, for a backend that loads whole files. */
export const loadedBy = <At extends Located>(
  load: (at: At, options: port.CallOptions) => port.MaybePromise<port.FileData | BackendFailure>,
): Pick<Operations<At>, "read" | "readRaw"> => ({
  read: (at, page, options) =>
    then(load(at, options), (data) => ("error" in data ? data : readFileData(at.path, data, page))),
  readRaw: (at, options) =>
    then(load(at, options), (data) => ("error" in data ? data : { data, version: contentVersion(data) })),
});

/** The operations that store a file, for a backend that stores a text as the bytes it stands for. */
export const storedBy = <At extends Located>(
  put: (at: At, bytes: Uint8Array, options: port.WriteOptions) => port.MaybePromise<port.WriteResult>,
): Pick<Operations<At>, "write" | "upload"> => ({
  write: (at, content, options) => {
    const given = bytesToWrite(at.path, content, options.encoding);
    return given.ok ? put(at, given.bytes, options) : { error: given.error, code: given.code };
  },
  upload: (at, bytes, options) => put(at, bytes, { ...options, mode: "overwrite" }),
});

/** Checks a path and finds its file. */
type Locate = (path: string) => Located | BackendFailure;

/** The result of a method: a promise, unless the operations return theirs at once. */
type MethodResult<AtOnce extends boolean, Result> = AtOnce extends true ? Result : Promise<Result>;

/** A backend over operations, which a subclass passes in. */
export class CheckedBackend<AtOnce extends boolean = false> implements port.Backend {
  readonly #operations: Operations;
  readonly #locate: Locate;
  readonly #top: string;

  /** `top`: the path of a search that names none. */
  constructor(operations: Operations, locate: Locate, top = "/") {
    this.#operations = operations;
    this.#locate = locate;
    this.#top = top;
  }

  ls(path: string, options: port.CallOptions = {}): MethodResult<AtOnce, port.LsResult> {
    return this.#run("ls", path, options, (at, given) => this.#operations.ls(at, given));
  }

  read(
    path: string,
    offset?: number,
    limit?: number,
    options: port.CallOptions = {},
  ): MethodResult<AtOnce, port.ReadResult> {
    const page = pageRequest(offset, limit);
    return this.#run("read", path, options, (at, given) => this.#operations.read(at, page, given));
  }

  readRaw(path: string, options: port.CallOptions = {}): MethodResult<AtOnce, port.ReadRawResult> {
    return this.#run("readRaw", path, options, (at, given) => this.#operations.readRaw(at, given));
  }

  async grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options: port.GrepOptions = {},
  ): Promise<port.GrepResult> {
    const search = { pattern, glob, maxCount: maxCount ?? DEFAULT_MAX_COUNT };
    return this.#call("grep", path ?? this.#top, options, (at, given) =>
      this.#operations.grep(at, { ...search, path: at.path, options: given }),
    );
  }

  glob(
    pattern: string,
    path?: string,
    options: port.CallOptions = {},
  ): MethodResult<AtOnce, port.GlobResult> {
    const top = path ?? this.#top;
    return this.#run("glob", top, options, (at, given) => this.#operations.glob(at, pattern, given));
  }

  write(
    path: string,
    content: string,
    options: port.WriteOptions = {},
  ): MethodResult<AtOnce, port.WriteResult> {
    return this.#run("write", path, options, (at, given) => this.#operations.write(at, content, given));
  }

  edit(
    path: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: port.EditOptions = {},
  ): MethodResult<AtOnce, port.EditResult> {
    const edit: Edit = { oldString, newString, replaceAll, ...options };
    return this.#run("edit", path, edit, (at, given) => this.#operations.edit(at, given));
  }

  delete(path: string, options: port.CallOptions = {}): MethodResult<AtOnce, port.DeleteResult> {
    return this.#run("delete", path, options, (at, given) => this.#operations.delete(at, given));
  }

  refusal(
    change: Change,
    path: string,
    options: port.CallOptions = {},
  ): MethodResult<AtOnce, port.Failure | undefined> {
    const find = (): port.MaybePromise<port.Failure | undefined> =>
      this.#call(change, path, options, (at, given) => this.#operations.refusal?.(at, change, given));
    // Failures that may end by themselves are not certain.
    const mayEnd = new Set<unknown>(["io", "timeout", "aborted", "backend_error"]);
    return this.#answer(() => then(find(), (found) => (mayEnd.has(found?.code) ? undefined : found)));
  }

  uploadFiles(
    files: Array<[string, Uint8Array]>,
    options: port.CallOptions = {},
  ): MethodResult<AtOnce, port.FileUploadResponse[]> {
    return this.#each(files, ([path, bytes]) =>
      then(
        this.#call("upload", path, options, (at, given) => this.#operations.upload(at, bytes, given)),
        ({ code, filesUpdate }: port.WriteResult): port.FileUploadResponse => ({
          path,
          error: operationError(code),
          ...(filesUpdate ? { filesUpdate } : {}),
        }),
      ),
    );
  }

  downloadFiles(
    paths: string[],
    options: port.CallOptions = {},
  ): MethodResult<AtOnce, port.FileDownloadResponse[]> {
    const operations = this.#operations;
    return this.#each(paths, (path) =>
      then(
        this.#call<port.CallOptions, port.ReadRawResult | port.FileDownloadResponse>(
          "readRaw",
          path,
          options,
          (at, given) =>
            operations.download === undefined
              ? operations.readRaw(at, given)
              : operations.download(at, given),
        ),
        (read) => ("content" in read ? { ...read, path } : toDownload(path, read)),
      ),
    );
  }

  #run<Options extends port.CallOptions, Result>(
    method: Method,
    path: string,
    options: Options,
    run: (at: Located, options: Options) => port.MaybePromise<Result>,
  ): MethodResult<AtOnce, Result | BackendFailure> {
    return this.#answer(() => this.#call(method, path, options, run));
  }

  #call<Options extends port.CallOptions, Result>(
    method: Method,
    path: string,
    options: Options,
    run: (at: Located, options: Options) => port.MaybePromise<Result>,
  ): port.MaybePromise<Result | BackendFailure> {
    const at = this.#locate(path);
    if ("error" in at) return { error: at.error, code: at.code };
    const runHere = (there = at, given = options): port.MaybePromise<Result> => run(there, given);
    return this.#operations.attempt === undefined
      ? runHere()
      : this.#operations.attempt(at, { method, options }, runHere);
  }

  #each<Item, Result>(items: readonly Item[], run: (item: Item) => port.MaybePromise<Result>) {
    const { atOnce, parallel = 1 } = this.#operations;
    return this.#answer((): port.MaybePromise<Result[]> =>
      atOnce === true
        ? items.map((item) => run(item) as Result) // at once: no promise
        : mapAtMost(parallel, items, async (item) => run(item)),
    );
  }

  #answer<Result>(make: () => port.MaybePromise<Result>): MethodResult<AtOnce, Result> {
    const answer = this.#operations.atOnce === true ? make() : (async () => make())();
    return answer as MethodResult<AtOnce, Result>; // the type parameter is the value of `atOnce`
  }
}

const then = <Value, Result>(value: port.MaybePromise<Value>, use: (value: Value) => Result) =>
  value instanceof Promise ? value.then(use) : use(value);

/** Makes the answer to a download from the result of `readRaw`. */
export const toDownload = (path: string, { data, code }: port.ReadRawResult): port.FileDownloadResponse =>
  data === undefined
    ? { path, content: null, error: operationError(code) ?? "file_not_found" }
    : { path, content: toBytes(data), error: null };

/** Uploads one file to the backend inside another one. */
export async function uploadTo(
  backend: port.Backend,
  path: string,
  bytes: Uint8Array,
  options: port.CallOptions,
): Promise<port.WriteResult> {
  const [answer] = (await backend.uploadFiles?.([[path, bytes]], options)) ?? [];
  return answer?.error === null ? { path, filesUpdate: answer.filesUpdate } : uploadRefused(answer?.error);
}

/**
 * Replaces some members of a backend. All others remain, including those that only this backend has, and work on the
 * backend itself, which may keep private fields.
 */
export function wrapBackend(backend: port.Backend, members: Partial<port.Backend>): port.Backend {
  const get = (name: string | symbol): unknown => {
    if (Object.hasOwn(members, name)) return Reflect.get(members, name);
    const value: unknown = Reflect.get(backend, name, backend);
    return typeof value === "function" ? (value.bind(backend) as unknown) : value;
  };
  // The target is a copy: the proxy of a frozen object may answer nothing else than the object does.
  return new Proxy(
    { ...backend },
    {
      get: (_target, name) => get(name),
      has: (_target, name) => get(name) !== undefined,
      getPrototypeOf: () => Reflect.getPrototypeOf(backend),
    },
  );
}
