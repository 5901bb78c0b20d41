import type { Logger } from "../../core/logger.ts";
import type {
  Backend,
  DeleteResult,
  EditResult,
  Failure,
  FileData,
  FileDownloadResponse,
  FileInfo,
  FileUploadResponse,
  GrepMatch,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  WriteResult,
} from "../backend.ts";
import { CheckedBackend, wrapBackend } from "../checked-backend.ts";
import { backendFailed, foreignFailure, thrownFailure } from "../errors.ts";
import { readFileData } from "../file-data.ts";
import { KeyedLock } from "../keyed-lock.ts";
import { pageRequest } from "../pages.ts";
import { Adapted } from "./adapted.ts";

/** The first version of the deepagents protocol: plain values, failures as strings or exceptions. */
export interface BackendV1 {
  lsInfo(path: string): MaybePromise<FileInfo[]>;
  /** Text, with line numbers in older backends. A failure starts with `Error`. */
  read(filePath: string, offset?: number, limit?: number): MaybePromise<string>;
  /** Throws when there is no such file. */
  readRaw?(filePath: string): MaybePromise<FileData>;
  /** A string is a failure. */
  grepRaw(pattern: string, path?: string | null, glob?: string | null): MaybePromise<GrepMatch[] | string>;
  globInfo(pattern: string, path?: string): MaybePromise<FileInfo[]>;
  write(filePath: string, content: string): MaybePromise<WriteResult>;
  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
  ): MaybePromise<EditResult>;
  delete?(filePath: string): MaybePromise<DeleteResult>;
  uploadFiles?(files: Array<[string, Uint8Array]>): MaybePromise<FileUploadResponse[]>;
  downloadFiles?(paths: string[]): MaybePromise<FileDownloadResponse[]>;
}

export const isV1 = (backend: Backend | BackendV1): backend is BackendV1 => "lsInfo" in backend;

/** The methods of the port over a backend of version 1; nothing it can do is added. */
export function fromV1(backend: BackendV1): Backend {
  const remove = backend.delete?.bind(backend);
  const uploadFiles = backend.uploadFiles?.bind(backend);
  const downloadFiles = backend.downloadFiles?.bind(backend);
  return {
    ls: async (path) => ({ files: await backend.lsInfo(path) }),
    glob: async (pattern, path) => ({ files: await backend.globInfo(pattern, path) }),
    grep: async (pattern, path, glob) => {
      const found = await backend.grepRaw(pattern, path, glob);
      return typeof found === "string" ? foreignFailure(path ?? "/", found) : { matches: found };
    },
    read: (path, offset, limit) => readV1(backend, path, offset, limit),
    readRaw: (path) => readRawV1(backend, path),
    write: (path, content) => backend.write(path, content),
    edit: (path, oldString, newString, replaceAll) => backend.edit(path, oldString, newString, replaceAll),
    ...(remove === undefined ? {} : { delete: (path) => remove(path) }),
    ...(uploadFiles === undefined ? {} : { uploadFiles }),
    ...(downloadFiles === undefined ? {} : { downloadFiles }),
  };
}

/** The raw file is what tells text from numbers in front of it. */
async function readV1(
  backend: BackendV1,
  path: string,
  offset?: number,
  limit?: number,
): Promise<ReadResult> {
  if (backend.readRaw === undefined) {
    const text = await backend.read(path, offset, limit);
    return isFailure(text) ? foreignFailure(path, text) : { content: withoutNumbers(text) };
  }
  const { data, error, code } = await readRawV1(backend, path);
  return data === undefined
    ? { ...(error === undefined ? {} : { error }), ...(code === undefined ? {} : { code }) }
    : readFileData(path, data, pageRequest(offset, limit));
}

async function readRawV1(backend: BackendV1, path: string): Promise<ReadRawResult> {
  if (backend.readRaw !== undefined) {
    try {
      return { data: await backend.readRaw(path) };
    } catch (thrown) {
      return thrownFailure(path, thrown);
    }
  }
  const text = await backend.read(path, 0, Number.MAX_SAFE_INTEGER);
  if (isFailure(text)) return foreignFailure(path, text);
  const content = withoutNumbers(text);
  return { data: { content, mimeType: "text/plain", created_at: "", modified_at: "" } };
}

const isFailure = (text: string): boolean => /^Error\b/.test(text);

const NUMBERED = /^ *\d+(?:\.(\d+))?\t/;

/** Takes line numbers off, when every line has one; pieces of a long line (`12.1`) are put together. */
function withoutNumbers(text: string): string {
  const lines = text.split("\n");
  if (!lines.every((line) => NUMBERED.test(line))) return text;
  return lines
    .map((line, index) => {
      const continues = NUMBERED.exec(line)?.[1] !== undefined;
      return (continues || index === 0 ? "" : "\n") + line.replace(NUMBERED, "");
    })
    .join("");
}

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): boolean => typeof value === "string";
const isBytesOrText = (value: unknown): boolean => isText(value) || value instanceof Uint8Array;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** What an answer of each method must hold unless it is a failure. */
const SHAPES = {
  ls: ({ files }: Fields) => Array.isArray(files),
  read: ({ content }: Fields) => isBytesOrText(content),
  readRaw: ({ data }: Fields) =>
    isObject(data) && (isBytesOrText(data["content"]) || Array.isArray(data["content"])),
  grep: ({ matches }: Fields) => Array.isArray(matches),
  glob: ({ files }: Fields) => Array.isArray(files),
  write: ({ path }: Fields) => isText(path),
  edit: ({ path }: Fields) => isText(path),
  delete: () => true,
} as const;

type Guarded = keyof typeof SHAPES;

/** Where the path stands among the arguments. */
const PATH_AT: Readonly<Partial<Record<Guarded, number>>> = { grep: 1, glob: 1 };

/**
 * A backend whose methods neither throw nor answer in another shape than the port's: both become a failure with the
 * code `backend_error`, and a line in the log with what was thrown.
 */
export function guardBackend(backend: Backend, log?: Logger): Backend {
  const fail = (failure: Failure, method: string): Failure => {
    if (failure.code === "backend_error") log?.error("backend_error", { method, error: failure.cause });
    return failure;
  };
  const guard = (method: Guarded, run: (...args: unknown[]) => unknown) => {
    return async (...args: unknown[]): Promise<unknown> => {
      const given = args[PATH_AT[method] ?? 0];
      const path = typeof given === "string" ? given : "/";
      try {
        const result = await run.apply(backend, args);
        if (isObject(result) && typeof result["error"] === "string") return fail(result, method);
        if (isObject(result) && (result["error"] ?? undefined) === undefined && SHAPES[method](result))
          return result;
        const wrong = new TypeError(`${method} of the backend answered ${shapeOf(result)}`);
        return fail(backendFailed(path, "its backend answered in a wrong form", wrong), method);
      } catch (thrown) {
        return fail(thrownFailure(path, thrown), method);
      }
    };
  };
  const guarded: Record<string, unknown> = {};
  for (const name of Object.keys(SHAPES)) {
    const method = name as Guarded; // a key of the table
    const run = backend[method];
    if (run !== undefined) guarded[method] = guard(method, run as (...args: unknown[]) => unknown);
  }
  return wrapBackend(backend, guarded);
}

const shapeOf = (result: unknown): string =>
  isObject(result)
    ? `an object with ${Object.keys(result).slice(0, 10).join(", ") || "nothing"}`
    : typeof result;

const PROMISES = ["writeMode", "regexGrep", "versions", "abort"] as const;

/** Writes to a foreign backend, one at a time for each path, whatever number of adapters it has. */
const locks = new WeakMap<object, KeyedLock>();

/**
 * A backend written for deepagents (version 1 or 2 of its protocol) with everything the port promises. What
 * it declares to do itself is left to it; the rest is done here: no file is overwritten by a create, edits
 * are bound to versions, expressions are searched, results are in order, and nothing throws. Of a backend that
 * declares all of it only what it throws and answers is looked at.
 */
export function adaptBackend(foreign: Backend | BackendV1, log?: Logger): Backend {
  const backend = guardBackend(isV1(foreign) ? fromV1(foreign) : foreign, log);
  const declared = backend.capabilities ?? {};
  if (PROMISES.every((capability) => declared[capability] === true)) return backend;
  const lock = locks.get(foreign) ?? new KeyedLock();
  locks.set(foreign, lock);
  const adapted = new CheckedBackend(new Adapted(backend, lock));
  const optional = (["delete", "uploadFiles", "downloadFiles"] as const).filter((name) => backend[name]);
  const methods = [...(["ls", "read", "readRaw", "grep", "glob", "write", "edit"] as const), ...optional];
  return wrapBackend(backend, {
    capabilities: { ...declared, writeMode: true, regexGrep: true, versions: true, abort: true },
    ...Object.fromEntries(methods.map((name) => [name, adapted[name].bind(adapted)])),
  });
}
