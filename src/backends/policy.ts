import { ConfigurationError } from "../core/errors.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  FileDownloadResponse,
  FileRoot,
  FileUploadResponse,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
  ResolveOptions,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import { lifetimeAt, rootsOf } from "./capabilities.ts";
import * as errors from "./errors.ts";
import { bytesOf } from "./file-data.ts";
import { type Glob, compileGlob } from "./glob.ts";
import { isAtOrBelow, parentsOf, validatePath, withSlash, withoutSlash } from "./paths.ts";
import { checkBackend, obtainBackend } from "./resolve.ts";
import { bindRuntime } from "./runtime.ts";
import { DEFAULT_MAX_COUNT } from "./search.ts";

export interface PolicyOptions {
  /** Refuses every change. Default false. */
  readOnly?: boolean;
  /** Refuses changes at and below these directories; reading passes. Letter case makes no difference. */
  denyPrefixes?: readonly string[];
  /**
   * Hides these files and everything below directories of such names: no access, no entry in listings and
   * searches. Patterns are written from the root, or without `/` for a name at any depth. Letter case
   * makes no difference.
   */
  denyGlobs?: readonly string[];
  /** Only these and what lies below them can be accessed. Default: everything. */
  allowPrefixes?: readonly string[];
}

/** Names that usually hold secrets: `secrets` directories and `.env` files. */
export const SENSITIVE_GLOBS: readonly string[] = ["secrets", ".env*"];

/** What a policy decides about normalized paths. Pure. */
export class PolicyRules {
  readonly #readOnly: boolean;
  readonly #denyPrefixes: readonly string[];
  readonly #allowPrefixes: readonly string[] | undefined;
  readonly #denyGlobs: readonly Glob[];

  constructor(options: PolicyOptions) {
    this.#readOnly = options.readOnly === true;
    this.#denyPrefixes = (options.denyPrefixes ?? []).map((prefix) => fold(prefixPath(prefix)));
    this.#allowPrefixes = options.allowPrefixes?.map(prefixPath);
    this.#denyGlobs = (options.denyGlobs ?? []).map(denyGlob);
  }

  /** No access at all. */
  isHidden(path: string): boolean {
    if (this.#allowPrefixes?.some((prefix) => isAtOrBelow(path, prefix)) === false) return true;
    if (this.#denyGlobs.length === 0) return false;
    const folded = fold(path);
    return [...parentsOf(folded), folded].some((at) =>
      this.#denyGlobs.some((glob) => at !== "/" && glob.matches(at.slice(1))),
    );
  }

  /** Hidden itself, but on the way to something that may be seen, so that it can be listed. */
  isOnTheWay(path: string): boolean {
    return this.#allowPrefixes?.some((prefix) => prefix !== path && isAtOrBelow(prefix, path)) === true;
  }

  /** Can be read, not changed. */
  isReadOnly(path: string): boolean {
    return this.#readOnly || this.#denyPrefixes.some((prefix) => isAtOrBelow(fold(path), prefix));
  }

  /** Whether a directory that may not be changed lies below `path`. */
  hasReadOnlyBelow(path: string): boolean {
    return this.#denyPrefixes.some((prefix) => isAtOrBelow(prefix, fold(path)));
  }

  /** Whether files below an accessible directory can be hidden. */
  get hidesNames(): boolean {
    return this.#denyGlobs.length > 0;
  }
}

/**
 * On some file systems another spelling is the same file: in other letter case (which includes characters
 * such as `ſ`), composed or not, with invisible characters. A policy must not depend on it.
 */
const fold = (path: string): string =>
  path
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFC");

function prefixPath(prefix: string): string {
  const valid = validatePath(prefix);
  if (valid.ok && prefix.startsWith("/")) return valid.path;
  throw new ConfigurationError(
    "INVALID_POLICY",
    `The policy prefix '${prefix}' is not usable: give an absolute directory such as '/private/'`,
  );
}

function denyGlob(pattern: string): Glob {
  const compiled = compileGlob(fold(pattern), { fromRoot: true, nameAtAnyDepth: true });
  if (compiled.ok) return compiled.glob;
  throw new ConfigurationError(
    "INVALID_POLICY",
    `The policy pattern '${pattern}' is not usable: ${compiled.error}`,
  );
}

const OPTIONS: OptionTable<PolicyOptions> = {
  readOnly: "true or false",
  denyPrefixes: "a list of non-empty texts",
  denyGlobs: "a list of non-empty texts",
  allowPrefixes: "a list of non-empty texts",
};

/**
 * Any backend, with paths that may not be changed or not be seen. Paths are those the inner backend knows.
 * It decides by name: a link the inner backend follows can give a file a second name. It runs no commands.
 */
export class PolicyBackend implements Backend {
  readonly #source: BackendSource;
  readonly #rules: PolicyRules;
  readonly #runtime: BackendRuntime | undefined;
  #bound: Promise<Backend> | undefined;

  constructor(inner: BackendSource, options: PolicyOptions | PolicyRules, runtime?: BackendRuntime) {
    checkBackend("The first argument of PolicyBackend", inner);
    this.#source = inner;
    this.#rules =
      options instanceof PolicyRules
        ? options
        : new PolicyRules(readOptions("PolicyBackend", options, OPTIONS));
    this.#runtime = runtime;
  }

  get capabilities(): Partial<BackendCapabilities> | undefined {
    return typeof this.#source === "function" ? undefined : this.#source.capabilities;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return new PolicyBackend(this.#source, this.#rules, runtime);
  }

  async lifetimeOf(path: string): Promise<BackendCapabilities["lifetime"]> {
    return lifetimeAt(await this.#inner(), path);
  }

  async roots(): Promise<FileRoot[]> {
    const roots = await rootsOf(await this.#inner());
    return roots
      .filter(({ path }) => !this.#rules.isHidden(path))
      .map((root) =>
        this.#rules.isReadOnly(`${withSlash(root.path)}file`) ? { ...root, readOnly: true } : root,
      );
  }

  async followLinks(path: string, options?: ResolveOptions): Promise<string | undefined> {
    const inner = await this.#inner();
    return inner.followLinks === undefined ? path : inner.followLinks(path, options);
  }

  async ls(path: string, options?: CallOptions): Promise<LsResult> {
    const rules = this.#rules;
    const valid = validatePath(path);
    if (valid.ok && rules.isHidden(valid.path) && !rules.isOnTheWay(valid.path))
      return errors.sensitivePath();
    const result = await (await this.#inner()).ls(path, options);
    const files = result.files?.filter((entry) => {
      const at = withoutSlash(entry.path);
      return !rules.isHidden(at) || rules.isOnTheWay(at);
    });
    return files === undefined ? result : { ...result, files };
  }

  async read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#hidden(filePath) ?? (await this.#inner()).read(filePath, offset, limit, options);
  }

  async readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#hidden(filePath) ?? (await this.#inner()).readRaw(filePath, options);
  }

  async glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    const hidden = this.#hiddenTree(path);
    if (hidden !== undefined) return hidden;
    const result = await (await this.#inner()).glob(pattern, path, options);
    const files = result.files?.filter((file) => !this.#rules.isHidden(withoutSlash(file.path)));
    return files === undefined ? result : { ...result, files };
  }

  async grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    const hidden = this.#hiddenTree(path ?? "/");
    if (hidden !== undefined) return hidden;
    const inner = await this.#inner();
    const wanted = maxCount ?? DEFAULT_MAX_COUNT;
    // Hidden matches use up the inner cap, so a capped result may need a larger one.
    for (let cap = wanted; ; cap *= 4) {
      const result = await inner.grep(pattern, path, glob, cap, options);
      const matches = result.matches?.filter((match) => !this.#rules.isHidden(match.path));
      if (matches === undefined) return result;
      // Fewer than the cap: it is the time that was up.
      const isCapped = result.truncated === true && (result.matches?.length ?? 0) >= cap;
      const enough = matches.length >= wanted || !isCapped || cap > wanted * MAX_GROWTH;
      if (!enough) continue;
      const truncated = result.truncated === true || matches.length > wanted;
      return { ...result, matches: matches.slice(0, wanted), truncated };
    }
  }

  async write(filePath: string, content: string, options?: WriteOptions): Promise<WriteResult> {
    return (
      this.#refused(filePath, errors.writesNotAllowed) ??
      (await this.#inner()).write(filePath, content, options)
    );
  }

  async edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
    options?: EditOptions,
  ): Promise<EditResult> {
    return (
      this.#refused(filePath, errors.editsNotAllowed) ??
      (await this.#inner()).edit(filePath, oldString, newString, replaceAll, options)
    );
  }

  async delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    const refused = this.#refused(filePath, errors.deletesNotAllowed);
    if (refused !== undefined) return refused;
    const inner = await this.#inner();
    const valid = validatePath(filePath);
    const path = valid.ok ? valid.path : filePath;
    if (inner.delete === undefined) return errors.deletionUnavailable(path);
    // What is no path, or the root, the inner backend refuses.
    if (valid.ok && path !== "/" && (await this.#protectsBelow(inner, path, options))) {
      return errors.deletesNotAllowed(path);
    }
    return inner.delete(filePath, options);
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: CallOptions,
  ): Promise<FileUploadResponse[]> {
    const inner = await this.#inner();
    const passed = files.filter(([path]) => this.#refused(path, errors.writesNotAllowed) === undefined);
    const answers = inner.uploadFiles === undefined ? [] : await inner.uploadFiles(passed, options);
    let next = 0;
    return files.map((file): FileUploadResponse => {
      const answer = file === passed[next] ? answers[next++] : undefined;
      return answer ?? { path: file[0], error: "permission_denied" };
    });
  }

  async downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return Promise.all(
      paths.map(async (path): Promise<FileDownloadResponse> => {
        const { data, code } = await this.readRaw(path, options);
        return data === undefined
          ? { path, content: null, error: errors.operationError(code) ?? "file_not_found" }
          : { path, content: bytesOf(data), error: null };
      }),
    );
  }

  /** Whether a directory holds something that may not be changed or not be seen. */
  async #protectsBelow(inner: Backend, path: string, options: CallOptions | undefined): Promise<boolean> {
    if (this.#rules.hasReadOnlyBelow(path)) return true;
    if (!this.#rules.hidesNames) return false;
    const { files = [], truncated } = await inner.glob("**", path, options);
    return truncated === true || files.some((file) => this.#rules.isHidden(file.path));
  }

  #inner(): Promise<Backend> {
    this.#bound ??= obtainBackend(this.#source, this.#runtime);
    return this.#bound;
  }

  /** An invalid path is left to the inner backend, which says what is wrong with it. */
  #hidden(path: string): errors.BackendFailure | undefined {
    const valid = validatePath(path);
    return valid.ok && this.#rules.isHidden(valid.path) ? errors.sensitivePath() : undefined;
  }

  #hiddenTree(path: string): errors.BackendFailure | undefined {
    const valid = validatePath(path);
    return valid.ok && this.#rules.isOnTheWay(valid.path) ? undefined : this.#hidden(path);
  }

  #refused(
    path: string,
    refusal: (path: string) => errors.BackendFailure,
  ): errors.BackendFailure | undefined {
    const valid = validatePath(path);
    if (!valid.ok) return undefined;
    return this.#hidden(path) ?? (this.#rules.isReadOnly(valid.path) ? refusal(valid.path) : undefined);
  }
}

/** How many times its cap a search may ask for to make up for hidden matches. */
const MAX_GROWTH = 256;
