import type {
  Backend,
  BackendCapabilities,
  CallOptions,
  DeleteResult,
  EditResult,
  FileData,
  FileDownloadResponse,
  GlobResult,
  GrepMatch,
  GrepResult,
  LsResult,
  MaybePromise,
  ReadResult,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import {
  type Edit,
  type Located,
  type Method,
  type Operations,
  PARALLEL_TRANSFERS,
  type Search,
} from "../checked-backend.ts";
import {
  type BackendFailure,
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
import type { PageRequest } from "../pages.ts";
import { baseName, isAtOrBelow, joinPath, relativeTo, validatePath } from "../paths.ts";
import {
  type SearchFile,
  compileSearch,
  excerpt,
  refusedWrite,
  searchFiles,
  searchable,
  sortByPath,
} from "../search.ts";
import { ForeignFiles, failureOf } from "./files.ts";

type ForeignSearch = Search & Located;

/** The search of the backend itself; its matches are chosen, ordered and cut as everywhere. */
async function searchThere(
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
async function searchHere(
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

const CHANGES: ReadonlySet<Method> = new Set<Method>(["write", "edit", "delete", "upload"]);

/** The operations of the port over a backend that promises less, except for what it declares to do itself. */
export class Adapted implements Operations {
  readonly parallel = PARALLEL_TRANSFERS;
  readonly #backend: Backend;
  readonly #declared: Partial<BackendCapabilities>;
  readonly #files: ForeignFiles;
  readonly #lock: KeyedLock;

  constructor(backend: Backend, lock: KeyedLock) {
    this.#backend = backend;
    this.#declared = backend.capabilities ?? {};
    this.#files = new ForeignFiles(backend);
    this.#lock = lock;
  }

  locate(path: string) {
    return validatePath(path, { form: this.#declared.paths ?? "virtual" });
  }

  attempt<Result>({ path }: Located, { method }: { method: Method }, run: () => MaybePromise<Result>) {
    return CHANGES.has(method) ? this.#lock.run(path, async () => run()) : run();
  }

  async ls({ path }: Located, options: CallOptions): Promise<LsResult> {
    const result = await this.#files.list(path, options);
    if (result.files === undefined) return result.code === "not_found" ? directoryNotFound(path) : result;
    if (result.files.length > 0 || path === "/") return { ...result, files: sortByPath(result.files) };
    const found = await this.#files.find(path, options);
    if (found === undefined) return directoryNotFound(path);
    return found.is_dir === true ? result : { ...result, files: [found] };
  }

  async read({ path }: Located, page: PageRequest, options: CallOptions): Promise<ReadResult> {
    if (this.#declared.rawRead === true) {
      return this.#files.guard<ReadResult>(path, options, () =>
        this.#backend.read(path, page.offset, page.limit, options),
      );
    }
    const got = await this.#files.data(path, options);
    return "error" in got ? got : readFileData(path, got.data, page);
  }

  async readRaw({ path }: Located, options: CallOptions) {
    const got = await this.#files.data(path, options);
    return "error" in got ? got : { data: got.data, version: versionOf(got.data) };
  }

  async glob({ path }: Located, pattern: string, options: CallOptions): Promise<GlobResult> {
    const compiled = compileGlob(pattern);
    if (!compiled.ok) return { error: compiled.error, code: compiled.code };
    const asked = PLAIN_GLOB.test(pattern) ? pattern : "**/*";
    const result: GlobResult = await this.#files.guard<GlobResult>(path, options, () =>
      this.#backend.glob(asked, path, options),
    );
    if (result.files === undefined) return result.code === "not_found" ? directoryNotFound(path) : result;
    const named = result.files.map((file) => ({ ...file, path: foundBelow(path, file.path) }));
    if (named.some((file) => file.path === path)) return notDirectory(path);
    const files = named.filter(
      (file) => file.is_dir !== true && compiled.glob.matches(relativeTo(path, file.path)),
    );
    if (files.length > 0 || path === "/") return { ...result, files: sortByPath(files) };
    const found = await this.#files.find(path, options);
    if (found === undefined) return directoryNotFound(path);
    return found.is_dir === true ? { ...result, files } : notDirectory(path);
  }

  async grep(at: Located, given: Search): Promise<GrepResult> {
    const search = { ...given, path: at.path };
    const { pattern, path, glob, maxCount, options } = search;
    const { regex = false, caseSensitive = true, contextLines = 0, maxPerFile } = options;
    const isPlain = !regex && caseSensitive && contextLines === 0 && maxPerFile === undefined;
    const there = (filter: string | null | undefined, cap: number | null) =>
      searchThere(this.#files, search, () => this.#backend.grep(pattern, path, filter, cap, options));
    const here = () => searchHere(this.#files, search, () => this.glob(at, "**", options));
    // Of an unordered search the first matches are known when all are, and filters mean different things.
    const result: GrepResult = await (this.#declared.regexGrep === true
      ? there(glob, maxCount)
      : isPlain
        ? there(null, null)
        : here());
    if (result.matches?.length !== 0 || path === "/") return result;
    return (await this.#files.find(path, options)) === undefined ? pathNotFound(path) : result;
  }

  async write({ path }: Located, content: string, options: WriteOptions): Promise<WriteResult> {
    if (this.#declared.writeMode === true) {
      return this.#files.guard<WriteResult>(path, options, () => this.#backend.write(path, content, options));
    }
    if (path === "/") return isDirectory(path);
    const given = bytesToWrite(path, content);
    if (!given.ok) return { error: given.error, code: given.code };
    const got = await this.#files.data(path, options);
    if ("error" in got && got.code !== "not_found") return got;
    const old = "data" in got ? got.data : undefined;
    const refused = refusedWrite(path, old, options);
    if (refused !== undefined) return refused;
    const text = isTextType(mimeTypeOf(path)) ? content : undefined;
    return this.#files.put(path, given.bytes, old === undefined ? text : undefined, options);
  }

  async edit({ path }: Located, edit: Edit): Promise<EditResult> {
    const { oldString, newString, replaceAll, ...options } = edit;
    const there = (): Promise<EditResult> =>
      this.#files.guard<EditResult>(path, options, () =>
        this.#backend.edit(path, oldString, newString, replaceAll, options),
      );
    if (this.#declared.versions === true) return there();
    const old = await this.#files.data(path, options);
    if ("error" in old) return old;
    const edited = editFileData(path, old.data, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    // Where nothing but the strings matters it is done there, which keeps what else is known of the file.
    const isPlain = oldString !== "" && !hasCarriageReturn(old.data);
    const written =
      isPlain || this.#backend.uploadFiles === undefined
        ? await there()
        : await this.#files.put(path, edited.bytes, undefined, options);
    if (written.error !== undefined) return written;
    return { ...written, path, occurrences: edited.occurrences, version: versionOfBytes(edited.bytes) };
  }

  async delete({ path }: Located, options: CallOptions): Promise<DeleteResult> {
    if (path === "/") return refusedToDelete(path);
    return this.#files.guard<DeleteResult>(
      path,
      options,
      () => this.#backend.delete?.(path, options) ?? deletionUnavailable(path),
    );
  }

  async upload({ path }: Located, bytes: Uint8Array, options: CallOptions): Promise<WriteResult> {
    return path === "/" ? isDirectory(path) : this.#files.put(path, bytes, undefined, options);
  }

  async download({ path }: Located, options: CallOptions): Promise<FileDownloadResponse> {
    const got = await this.#files.bytes(path, options);
    return "error" in got
      ? { path, content: null, error: operationError(got.code) }
      : { path, content: got.bytes, error: null };
  }
}

const hasCarriageReturn = ({ content }: FileData): boolean =>
  typeof content === "string"
    ? content.includes("\r")
    : Array.isArray(content) && content.join("").includes("\r");

/** Sandboxes there name what they find from the searched directory on, some with a slash in front. */
const foundBelow = (directory: string, path: string): string =>
  path.startsWith("/") && isAtOrBelow(path, directory) ? path : joinPath(directory, path.replace(/^\//, ""));
