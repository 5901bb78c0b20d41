import type {
  Backend,
  BackendCapabilities,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  Failure,
  FileData,
  FileDownloadResponse,
  FileUploadResponse,
  GlobResult,
  GrepMatch,
  GrepOptions,
  GrepResult,
  LsResult,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import {
  type BackendFailure,
  alreadyExists,
  changedSinceRead,
  deletionUnavailable,
  directoryNotFound,
  isDirectory,
  notDirectory,
  operationError,
  pathNotFound,
  refusedToDelete,
} from "../errors.ts";
import { bytesToWrite, editFileData, readFileData, versionOf, versionOfBytes } from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import type { KeyedLock } from "../keyed-lock.ts";
import { isTextType, mimeTypeOf } from "../mime.ts";
import { pageRequest } from "../pages.ts";
import { baseName, isAtOrBelow, joinPath, relativeTo, validatePath } from "../paths.ts";
import {
  DEFAULT_MAX_COUNT,
  type SearchFile,
  compileSearch,
  excerpt,
  searchFiles,
  searchable,
  sortByPath,
} from "../search.ts";
import { type ForeignFiles, failureOf } from "./files.ts";

export interface ForeignSearch {
  pattern: string;
  /** A directory, or the one file to search. */
  path: string;
  glob: string | null | undefined;
  maxCount: number;
  options: GrepOptions;
}

/** The search of the backend itself; its matches are chosen, ordered and cut as everywhere. */
export async function searchThere(
  files: ForeignFiles,
  search: ForeignSearch,
  grep: () => MaybePromise<GrepResult>,
): Promise<GrepResult> {
  const { pattern, path, maxCount, options } = search;
  const compiled = compileSearch(pattern, options);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const result: GrepResult = await files.guard<GrepResult>(path, options, grep);
  if (result.matches === undefined) return result.code === "not_found" ? pathNotFound(path) : result;
  const cut = (match: GrepMatch): GrepMatch => {
    const range = compiled.matcher(match.text);
    return range === undefined ? match : { ...match, text: excerpt(match.text, range.start, range.end) };
  };
  const matches = sortByPath(result.matches.filter((match) => chosen(match.path)));
  return {
    ...result,
    matches: matches.slice(0, maxCount).map(cut),
    truncated: result.truncated === true || matches.length > maxCount,
    skipped: result.skipped ?? 0,
  };
}

/** A search of which the backend knows nothing: every file is read. */
export async function searchHere(
  files: ForeignFiles,
  search: ForeignSearch,
  listAll: () => Promise<GlobResult>,
): Promise<GrepResult> {
  const { path, options } = search;
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const one = await files.data(path, options);
  if ("data" in one) {
    const load = () => searchable(path, one.data);
    return searchFiles(chosen(path) ? [{ path, load }] : [], search);
  }
  const listed = await listAll();
  if (listed.files === undefined) return failureOf(path, listed);
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

/** Which files a search is about: text, under a name that the filter accepts. */
function chooser({ path, glob }: ForeignSearch): ((file: string) => boolean) | BackendFailure {
  const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
  if (!filter.ok) return { error: filter.error, code: filter.code };
  return (file) =>
    isTextType(mimeTypeOf(file)) &&
    filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file));
}

/** Patterns that mean the same wherever they are matched. */
const PLAIN_GLOB = /^(?:[\w-][\w .-]*\/)*(?:\*\*\/)?\*?[\w. -]*$/;

/** The methods of the port over a backend that promises less, except for what it declares to do itself. */
export class Adapted {
  readonly #backend: Backend;
  readonly #declared: Partial<BackendCapabilities>;
  readonly #files: ForeignFiles;
  readonly #lock: KeyedLock;

  constructor(backend: Backend, files: ForeignFiles, lock: KeyedLock) {
    this.#backend = backend;
    this.#declared = backend.capabilities ?? {};
    this.#files = files;
    this.#lock = lock;
  }

  ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, async (path): Promise<LsResult> => {
      const result = await this.#files.list(path, options);
      if (result.files === undefined) {
        return result.code === "not_found" ? directoryNotFound(path) : result;
      }
      if (result.files.length > 0 || path === "/") return { ...result, files: sortByPath(result.files) };
      const found = await this.#files.find(path, options);
      if (found === undefined) return directoryNotFound(path);
      return found.is_dir === true ? result : { ...result, files: [found] };
    });
  }

  read(path: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#at(path, async (path): Promise<ReadResult> => {
      const request = pageRequest(offset, limit);
      if (this.#declared.rawRead === true) {
        return this.#files.guard<ReadResult>(path, options, () =>
          this.#backend.read(path, request.offset, request.limit, options),
        );
      }
      const got = await this.#files.data(path, options);
      return "error" in got ? got : readFileData(path, got.data, request);
    });
  }

  readRaw(path: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#at(path, async (path): Promise<ReadRawResult> => {
      const got = await this.#files.data(path, options);
      return "error" in got ? got : { data: got.data, version: versionOf(got.data) };
    });
  }

  glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(path, async (path): Promise<GlobResult> => {
      const compiled = compileGlob(pattern);
      if (!compiled.ok) return { error: compiled.error, code: compiled.code };
      const asked = PLAIN_GLOB.test(pattern) ? pattern : "**/*";
      const result: GlobResult = await this.#files.guard<GlobResult>(path, options, () =>
        this.#backend.glob(asked, path, options),
      );
      if (result.files === undefined) {
        return result.code === "not_found" ? directoryNotFound(path) : result;
      }
      const named = result.files.map((file) => ({ ...file, path: foundBelow(path, file.path) }));
      if (named.some((file) => file.path === path)) return notDirectory(path);
      const files = named.filter(
        (file) => file.is_dir !== true && compiled.glob.matches(relativeTo(path, file.path)),
      );
      if (files.length > 0 || path === "/") return { ...result, files: sortByPath(files) };
      const found = await this.#files.find(path, options);
      if (found === undefined) return directoryNotFound(path);
      return found.is_dir === true ? { ...result, files } : notDirectory(path);
    });
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options: GrepOptions = {},
  ): Promise<GrepResult> {
    const { regex = false, caseSensitive = true, contextLines = 0, maxPerFile } = options;
    const isPlain = !regex && caseSensitive && contextLines === 0 && maxPerFile === undefined;
    const canSearch = this.#declared.regexGrep === true;
    return this.#at(path ?? "/", async (path): Promise<GrepResult> => {
      const search = { pattern, path, glob, maxCount: maxCount ?? DEFAULT_MAX_COUNT, options };
      const there = (filter: string | null | undefined, cap: number | null) =>
        searchThere(this.#files, search, () => this.#backend.grep(pattern, path, filter, cap, options));
      const here = () => searchHere(this.#files, search, () => this.glob("**", path, options));
      // Of an unordered search the first matches are known when all are, and filters mean different things.
      const result: GrepResult = await (canSearch
        ? there(glob, search.maxCount)
        : isPlain
          ? there(null, null)
          : here());
      if (result.matches?.length !== 0 || path === "/") return result;
      return (await this.#files.find(path, options)) === undefined ? pathNotFound(path) : result;
    });
  }

  write(path: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    return this.#exclusively(path, async (path): Promise<WriteResult> => {
      if (this.#declared.writeMode === true) {
        return this.#files.guard<WriteResult>(path, options, () =>
          this.#backend.write(path, content, options),
        );
      }
      if (path === "/") return isDirectory(path);
      const given = bytesToWrite(path, content);
      if (!given.ok) return { error: given.error, code: given.code };
      const old = await this.#files.data(path, options);
      const isThere = "data" in old;
      if (!isThere && old.code !== "not_found") return old;
      if (isThere && options.mode !== "overwrite") return alreadyExists(path);
      const { expectedVersion } = options;
      if (expectedVersion !== undefined && (!isThere || versionOf(old.data) !== expectedVersion)) {
        return changedSinceRead(path);
      }
      const text = isTextType(mimeTypeOf(path)) ? content : undefined;
      const written = await this.#files.put(path, given.bytes, { replaces: isThere, content: text }, options);
      return written.error === undefined ? { ...written, path } : written;
    });
  }

  edit(
    path: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: EditOptions = {},
  ): Promise<EditResult> {
    return this.#exclusively(path, async (path): Promise<EditResult> => {
      const there = (): Promise<EditResult> =>
        this.#files.guard<EditResult>(path, options, () =>
          this.#backend.edit(path, oldString, newString, replaceAll, options),
        );
      if (this.#declared.versions === true) return there();
      const old = await this.#files.data(path, options);
      if ("error" in old) return old;
      const { expectedVersion } = options;
      const edited = editFileData(path, old.data, {
        oldString,
        newString,
        replaceAll,
        ...(expectedVersion === undefined ? {} : { expectedVersion }),
      });
      if (!edited.ok) return { error: edited.error, code: edited.code };
      // Where nothing but the strings matters it is done there, which keeps what else is known of the file.
      const isPlain = oldString !== "" && !hasCarriageReturn(old.data);
      const how = { replaces: true, content: undefined };
      const written =
        isPlain || this.#backend.uploadFiles === undefined
          ? await there()
          : await this.#files.put(path, edited.bytes, how, options);
      if (written.error !== undefined) return written;
      return { ...written, path, occurrences: edited.occurrences, version: versionOfBytes(edited.bytes) };
    });
  }

  delete(path: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#exclusively(path, async (path): Promise<DeleteResult> => {
      if (path === "/") return refusedToDelete(path);
      return this.#files.guard<DeleteResult>(
        path,
        options,
        () => this.#backend.delete?.(path, options) ?? deletionUnavailable(path),
      );
    });
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: CallOptions,
  ): Promise<FileUploadResponse[]> {
    const answers: FileUploadResponse[] = [];
    for (const [path, bytes] of files) {
      const how = { replaces: true, content: undefined };
      const result: WriteResult = await this.#exclusively(path, async (valid): Promise<WriteResult> =>
        valid === "/" ? isDirectory(valid) : this.#files.put(valid, bytes, how, options),
      );
      const { filesUpdate } = result;
      answers.push({
        path,
        error: operationError(result.code),
        ...(filesUpdate === undefined ? {} : { filesUpdate }),
      });
    }
    return answers;
  }

  async downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return Promise.all(
      paths.map(async (path): Promise<FileDownloadResponse> => {
        const result: Failure & { bytes?: Uint8Array } = await this.#at(path, (valid) =>
          this.#files.bytes(valid, options),
        );
        if (result.bytes !== undefined) return { path, content: result.bytes, error: null };
        return { path, content: null, error: operationError(result.code) ?? "invalid_path" };
      }),
    );
  }

  async #at<Result extends object>(
    path: string,
    run: (path: string) => Promise<Result>,
  ): Promise<Result | BackendFailure> {
    const form = this.#declared.paths ?? "virtual";
    const valid = validatePath(path, { form });
    return valid.ok ? run(valid.path) : { error: valid.error, code: valid.code };
  }

  #exclusively<Result extends object>(
    path: string,
    run: (path: string) => Promise<Result>,
  ): Promise<Result | BackendFailure> {
    return this.#at(path, (valid) => this.#lock.run(valid, () => run(valid)));
  }
}

const hasCarriageReturn = ({ content }: FileData): boolean =>
  typeof content === "string"
    ? content.includes("\r")
    : Array.isArray(content) && content.join("").includes("\r");

/** Sandboxes there name what they find from the searched directory on, some with a slash in front. */
const foundBelow = (directory: string, path: string): string =>
  path.startsWith("/") && isAtOrBelow(path, directory) ? path : joinPath(directory, path.replace(/^\//, ""));
