import { KeyedLock } from "../../core/concurrency.ts";
import { defined } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import type * as port from "../backend.ts";
import type { Located, Operations } from "../checked-backend.ts";
import { CHANGING_METHODS, CheckedBackend, PARALLEL_TRANSFERS, wrapBackend } from "../checked-backend.ts";
import { type BackendFailure, errors, foreignFailure, operationError, thrownFailure } from "../errors.ts";
import { bytesToWrite, editFileData, readFileData, contentVersion, versionOfBytes } from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import { isTextType, mimeTypeOf } from "../mime.ts";
import { isNotebookPath } from "../notebook.ts";
import { pageRequest } from "../pages.ts";
import { isAtOrBelow, joinPath, relativeTo, validatePath } from "../paths.ts";
import type { Search, SearchFile } from "../search.ts";
import {
  compileSearch,
  excerpt,
  fileFilter,
  refusedWrite,
  searchFiles,
  searchable,
  sortByPath,
} from "../search.ts";
import { ForeignFiles, toBackendFailure } from "./files.ts";

/** The first version of the deepagents protocol. Results are plain values; failures are strings or exceptions. */
export interface BackendV1 {
  lsInfo(path: string): port.MaybePromise<port.FileInfo[]>;
  /** Text, with line numbers in older backends. A failure starts with `Error`. */
  read(filePath: string, offset?: number, limit?: number): port.MaybePromise<string>;
  /** Throws when there is no such file. */
  readRaw?(filePath: string): port.MaybePromise<port.FileData>;
  /** Returns a string for a failure. */
  grepRaw(
    pattern: string,
    path?: string | null,
    glob?: string | null,
  ): port.MaybePromise<port.GrepMatch[] | string>;
  globInfo(pattern: string, path?: string): port.MaybePromise<port.FileInfo[]>;
  write(filePath: string, content: string): port.MaybePromise<port.WriteResult>;
  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
  ): port.MaybePromise<port.EditResult>;
  delete?(filePath: string): port.MaybePromise<port.DeleteResult>;
  uploadFiles?(files: Array<[string, Uint8Array]>): port.MaybePromise<port.FileUploadResponse[]>;
  downloadFiles?(paths: string[]): port.MaybePromise<port.FileDownloadResponse[]>;
}

/** Translates the methods of a version 1 backend to those of the port, and adds nothing. */
function fromV1(backend: BackendV1): port.Backend {
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
    // Reads the whole file, because the text of a page may have line numbers in it.
    read: async (path, offset, limit) => {
      const { data, ...failure } = await readRawV1(backend, path);
      return data === undefined ? failure : readFileData(path, data, pageRequest(offset, limit));
    },
    readRaw: (path) => readRawV1(backend, path),
    write: (path, content) => backend.write(path, content),
    edit: (path, oldString, newString, replaceAll) => backend.edit(path, oldString, newString, replaceAll),
    ...(remove === undefined ? {} : { delete: (path) => remove(path) }),
    ...defined({ uploadFiles, downloadFiles }),
  };
}

async function readRawV1(backend: BackendV1, path: string): Promise<port.ReadRawResult> {
  if (backend.readRaw !== undefined) {
    try {
      return { data: await backend.readRaw(path) };
    } catch (thrown) {
      return thrownFailure(path, thrown);
    }
  }
  const text = await backend.read(path, 0, Number.MAX_SAFE_INTEGER);
  if (/^Error\b/.test(text)) return foreignFailure(path, text);
  // Removes line numbers if every line has one, and joins the pieces of a long line (`12.1`).
  const lines = text.split("\n");
  const isNumbered = lines.every((line) => NUMBERED.test(line));
  const plain = lines.map((line, index) => {
    const continues = NUMBERED.exec(line)?.[1] !== undefined;
    return (continues || index === 0 ? "" : "\n") + line.replace(NUMBERED, "");
  });
  const content = isNumbered ? plain.join("") : text;
  return { data: { content, mimeType: "text/plain", created_at: "", modified_at: "" } };
}

const NUMBERED = /^ *\d+(?:\.(\d+))?\t/;

type ResultFields = Readonly<Record<string, unknown>>;

const isString = (value: unknown): boolean => typeof value === "string";
const isBytesOrText = (value: unknown): boolean => isString(value) || value instanceof Uint8Array;
const isObject = (value: unknown): value is ResultFields => typeof value === "object" && value !== null;

const SHAPES = {
  ls: ({ files }: ResultFields) => Array.isArray(files),
  read: ({ content }: ResultFields) => isBytesOrText(content),
  readRaw: ({ data }: ResultFields) =>
    isObject(data) && (isBytesOrText(data["content"]) || Array.isArray(data["content"])),
  grep: ({ matches }: ResultFields) => Array.isArray(matches),
  glob: ({ files }: ResultFields) => Array.isArray(files),
  write: ({ path }: ResultFields) => isString(path),
  edit: ({ path }: ResultFields) => isString(path),
  delete: () => true,
} as const;

type Guarded = keyof typeof SHAPES;

/**
 * Turns exceptions and results of a wrong shape into failures with the code `backend_error`, and logs the exceptions.
 */
function guardBackend(backend: port.Backend, log?: Logger): port.Backend {
  const fail = (failure: port.Failure, method: string): port.Failure => {
    if (failure.code === "backend_error") log?.error("backend_error", { method, error: failure.cause });
    return failure;
  };
  const guard = (method: Guarded, run: (...args: unknown[]) => unknown) => {
    return async (...args: unknown[]): Promise<unknown> => {
      // A search has its pattern as the first argument.
      const given = args[method === "grep" || method === "glob" ? 1 : 0];
      const path = typeof given === "string" ? given : "/";
      try {
        const result = await run.apply(backend, args);
        if (isObject(result) && typeof result["error"] === "string") return fail(result, method);
        if (isObject(result) && (result["error"] ?? undefined) === undefined && SHAPES[method](result))
          return result;
        const shape = isObject(result)
          ? `an object with ${Object.keys(result).slice(0, 10).join(", ") || "nothing"}`
          : typeof result;
        const wrong = new TypeError(`${method} of the backend answered ${shape}`);
        return fail(errors.backendFailed(path, "its backend returned an invalid result", wrong), method);
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

/** One lock for each foreign backend: all of its adapters write to a path one at a time. */
const locks = new WeakMap<object, KeyedLock>();

/**
 * Adapts a backend for deepagents (version 1 or 2 of its protocol), so that it keeps every promise of the port:
 * a create overwrites no file, edits are bound to versions, regular expressions are searched, results are in order,
 * and nothing throws. Declared abilities are left to the backend. If it declares all of them, only its exceptions and
 * the shape of its results are checked.
 */
export function adaptBackend(foreign: port.Backend | BackendV1, log?: Logger): port.Backend {
  const backend = guardBackend("lsInfo" in foreign ? fromV1(foreign) : foreign, log);
  const declared = backend.capabilities ?? {};
  const promises = ["writeMode", "regexGrep", "versions", "abort"] as const;
  if (promises.every((capability) => declared[capability] === true)) return backend;
  const lock = locks.get(foreign) ?? new KeyedLock();
  locks.set(foreign, lock);
  const context = { backend, declared, files: new ForeignFiles(backend), lock };
  const adapted = new CheckedBackend(FOREIGN_OPERATIONS, (given) => {
    const valid = validatePath(given, { form: declared.paths ?? "virtual" });
    return valid.ok ? { ...context, path: valid.path } : valid;
  });
  const optional = (["delete", "uploadFiles", "downloadFiles"] as const).filter((name) => backend[name]);
  const methods = [...(["ls", "read", "readRaw", "grep", "glob", "write", "edit"] as const), ...optional];
  return wrapBackend(backend, {
    capabilities: { ...declared, writeMode: true, regexGrep: true, versions: true, abort: true },
    ...Object.fromEntries(methods.map((name) => [name, adapted[name].bind(adapted)])),
  });
}

/** Uses the search of the backend. Its matches are filtered, ordered and cut as in every other backend. */
async function searchThere(
  files: ForeignFiles,
  search: Search,
  grep: () => port.MaybePromise<port.GrepResult>,
) {
  const { pattern, path, maxCount, options } = search;
  const compiled = compileSearch(pattern, options);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const result: port.GrepResult = await files.guard(path, options, grep);
  if (result.matches === undefined) return result.code === "not_found" ? errors.pathNotFound(path) : result;
  const matches = sortByPath(result.matches.filter((match) => chosen(match.path)));
  return {
    ...result,
    matches: matches.slice(0, maxCount).map((match) => {
      const range = compiled.matcher(match.text);
      return range === undefined ? match : { ...match, text: excerpt(match.text, range.start, range.end) };
    }),
    truncated: result.truncated === true || matches.length > maxCount,
    skipped: result.skipped ?? 0,
  };
}

/** Searches without the search of the backend, by reading every file. */
async function searchHere(files: ForeignFiles, search: Search, listAll: () => Promise<port.GlobResult>) {
  const { path, options } = search;
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const one = await files.data(path, options);
  if ("data" in one)
    return searchFiles(chosen(path) ? [{ path, load: () => searchable(path, one.data) }] : [], search);
  const listed = await listAll();
  if (listed.files === undefined) return toBackendFailure(path, listed);
  const found = listed.files.filter((file) => chosen(file.path));
  return searchFiles(
    found.map(({ path: file }): SearchFile => ({
      path: file,
      load: async () => {
        const got = await files.data(file, options);
        return "error" in got ? { kind: "skipped" } : searchable(file, got.data);
      },
    })),
    search,
  );
}

/** Chooses the files of a search: text files whose names the filter accepts. */
function chooser(search: Search): ((file: string) => boolean) | BackendFailure {
  const accepts = fileFilter(search);
  return typeof accepts === "function" ? (file) => isTextType(mimeTypeOf(file)) && accepts(file) : accepts;
}

interface ForeignPath extends Located {
  backend: port.Backend;
  declared: Partial<port.BackendCapabilities>;
  files: ForeignFiles;
  lock: KeyedLock;
}

const FOREIGN_OPERATIONS: Operations<ForeignPath> = {
  parallel: PARALLEL_TRANSFERS,
  attempt: ({ path, lock }, { method }, run) =>
    CHANGING_METHODS.has(method) ? lock.run(path, async () => run()) : run(),
  ls: async ({ path, files }, options) => {
    const result = await files.list(path, options);
    if (result.files === undefined)
      return result.code === "not_found" ? errors.directoryNotFound(path) : result;
    if (result.files.length > 0 || path === "/") return { ...result, files: sortByPath(result.files) };
    const found = await files.find(path, options);
    if (found === undefined) return errors.directoryNotFound(path);
    return found.is_dir === true ? result : { ...result, files: [found] };
  },
  read: async ({ path, files, declared, backend }, page, options) => {
    if (declared.rawRead === true)
      return files.guard(path, options, () => backend.read(path, page.offset, page.limit, options));
    const got = await files.data(path, options);
    return "error" in got ? got : readFileData(path, got.data, page);
  },
  readRaw: async ({ path, files }, options) => {
    const got = await files.data(path, options);
    return "error" in got ? got : { data: got.data, version: contentVersion(got.data) };
  },
  glob: findFiles,
  grep: async (at, search) => {
    const { files, declared, backend } = at;
    const { pattern, path, glob, maxCount, options } = search;
    const { regex = false, caseSensitive = true, contextLines = 0, maxPerFile } = options;
    const isPlain = !regex && caseSensitive && contextLines === 0 && maxPerFile === undefined;
    const there = (filter: string | null | undefined, cap: number | null) =>
      searchThere(files, search, () => backend.grep(pattern, path, filter, cap, options));
    // The backend may search in any order and read filters differently, so it is asked for all matches.
    const result: port.GrepResult = await (declared.regexGrep === true
      ? there(glob, maxCount)
      : isPlain
        ? there(null, null)
        : searchHere(files, search, () => findFiles(at, "**", options)));
    if (result.matches?.length !== 0 || path === "/") return result;
    return (await files.find(path, options)) === undefined ? errors.pathNotFound(path) : result;
  },
  write: async ({ path, files, declared, backend }, content, options) => {
    if (declared.writeMode === true)
      return files.guard(path, options, () => backend.write(path, content, options));
    if (path === "/") return errors.isDirectory(path);
    const given = bytesToWrite(path, content, options.encoding);
    if (!given.ok) return { error: given.error, code: given.code };
    const got = await files.data(path, options);
    if ("error" in got && got.code !== "not_found") return got;
    const old = "data" in got ? got.data : undefined;
    const refused = refusedWrite(path, old, options);
    if (refused !== undefined) return refused;
    const isPlain = isTextType(mimeTypeOf(path)) && (options.encoding ?? "utf-8") === "utf-8";
    const text = isPlain && old === undefined ? content : undefined;
    return files.put(path, given.bytes, text, options);
  },
  edit: async ({ path, files, declared, backend }, edit) => {
    const { oldString, newString, replaceAll, ...options } = edit;
    const there = (): Promise<port.EditResult> =>
      files.guard(path, options, () => backend.edit(path, oldString, newString, replaceAll, options));
    if (declared.versions === true) return there();
    const old = await files.data(path, options);
    if ("error" in old) return old;
    const edited = editFileData(path, old.data, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    // A plain edit is left to the backend, which keeps other facts that it stores about the file.
    // It does not read bytes, which are text in UTF-16, and knows no cells of notebooks.
    const { content } = old.data;
    const text = Array.isArray(content) ? content.join("") : content;
    const isText = typeof text === "string" && !isNotebookPath(path);
    const isPlain = oldString !== "" && isText && !text.includes("\r");
    const written =
      isPlain || backend.uploadFiles === undefined
        ? await there()
        : await files.put(path, edited.bytes, undefined, options);
    if (written.error !== undefined) return written;
    return { ...written, path, occurrences: edited.occurrences, version: versionOfBytes(edited.bytes) };
  },
  delete: async ({ path, files, backend }, options) =>
    path === "/"
      ? errors.refusedToDelete(path)
      : files.guard(path, options, () => backend.delete?.(path, options) ?? errors.deletionUnavailable(path)),
  upload: async ({ path, files }, bytes, options) =>
    path === "/" ? errors.isDirectory(path) : files.put(path, bytes, undefined, options),
  download: async ({ path, files }, options) => {
    const got = await files.bytes(path, options);
    return "error" in got
      ? { path, content: null, error: operationError(got.code) }
      : { path, content: got.bytes, error: null };
  },
};

async function findFiles({ path, files, backend }: ForeignPath, pattern: string, options: port.CallOptions) {
  const compiled = compileGlob(pattern);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  // Such patterns mean the same in every dialect of globs.
  const isPlain = /^(?:[\w-][\w .-]*\/)*(?:\*\*\/)?\*?[\w. -]*$/.test(pattern);
  const asked = isPlain ? pattern : "**/*";
  const result: port.GlobResult = await files.guard(path, options, () => backend.glob(asked, path, options));
  if (result.files === undefined)
    return result.code === "not_found" ? errors.directoryNotFound(path) : result;
  // Sandboxes of deepagents return paths relative to the searched directory, some with a slash in front.
  const named = result.files.map((file) => {
    const isWhole = file.path.startsWith("/") && isAtOrBelow(file.path, path);
    return isWhole ? file : { ...file, path: joinPath(path, file.path.replace(/^\//, "")) };
  });
  if (named.some((file) => file.path === path)) return errors.notDirectory(path);
  const matching = named.filter(
    (file) => file.is_dir !== true && compiled.glob.matches(relativeTo(path, file.path)),
  );
  if (matching.length > 0 || path === "/") return { ...result, files: sortByPath(matching) };
  const found = await files.find(path, options);
  if (found === undefined) return errors.directoryNotFound(path);
  return found.is_dir === true ? { ...result, files: matching } : errors.notDirectory(path);
}
