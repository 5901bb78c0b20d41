import { ConfigurationError } from "../core/errors.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  FileRoot,
  MaybePromise,
  ResolveOptions,
  WriteOptions,
} from "./backend.ts";
import {
  CheckedBackend,
  type Edit,
  type Located,
  type Method,
  type Operations,
  PARALLEL_TRANSFERS,
  type Search,
  uploadTo,
} from "./checked-backend.ts";
import * as errors from "./errors.ts";
import { type Glob, compileGlob } from "./glob.ts";
import type { PageRequest } from "./pages.ts";
import { isAtOrBelow, parentsOf, validatePath, withSlash, withoutSlash } from "./paths.ts";
import { bindRuntime, checkBackend, lifetimeAt, obtainBackend, rootsOf } from "./runtime.ts";
import { grepShown } from "./search.ts";

export interface PolicyOptions {
  /** Refuses every change. Default false. */
  readOnly?: boolean;
  /** Refuses changes at and below these directories, but allows reading. Letter case makes no difference. */
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

/** Decides about normalized paths. Pure. */
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

  /** Whether a path cannot be accessed at all. */
  isHidden(path: string): boolean {
    if (this.#allowPrefixes?.some((prefix) => isAtOrBelow(path, prefix)) === false) return true;
    if (this.#denyGlobs.length === 0) return false;
    const folded = fold(path);
    return [...parentsOf(folded), folded].some((at) =>
      this.#denyGlobs.some((glob) => at !== "/" && glob.matches(at.slice(1))),
    );
  }

  /** Whether something below the path may be seen, so that the path can be listed even if it is hidden. */
  isOnTheWay(path: string): boolean {
    return this.#allowPrefixes?.some((prefix) => prefix !== path && isAtOrBelow(prefix, path)) === true;
  }

  /** Whether a path can be read but not changed. */
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
 * Makes spellings equal that some file systems take for the same file: letter case (which includes characters such
 * as `ſ`), composed characters, and invisible ones.
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

interface PolicyPath extends Located {
  /** The path as it was checked; undefined for an invalid one, which the inner backend refuses. */
  at: string | undefined;
}

/** Methods that work in a directory above visible files, too. */
const SEARCHES: ReadonlySet<Method> = new Set<Method>(["ls", "glob", "grep"]);

const REFUSALS: Partial<Record<Method, (path: string) => errors.BackendFailure>> = {
  write: errors.writesNotAllowed,
  upload: errors.writesNotAllowed,
  edit: errors.editsNotAllowed,
  delete: errors.deletesNotAllowed,
};

class PolicyOperations implements Operations {
  readonly parallel = PARALLEL_TRANSFERS;
  readonly #rules: PolicyRules;
  readonly #inner: () => Promise<Backend>;

  constructor(rules: PolicyRules, inner: () => Promise<Backend>) {
    this.#rules = rules;
    this.#inner = inner;
  }

  locate(path: string) {
    const valid = validatePath(path);
    return { ok: true as const, path, at: valid.ok ? valid.path : undefined };
  }

  attempt<Result>(
    { at }: PolicyPath,
    { method }: { method: Method },
    run: () => MaybePromise<Result>,
  ): MaybePromise<Result | errors.BackendFailure> {
    if (at === undefined) return run();
    const isWay = SEARCHES.has(method) && this.#rules.isOnTheWay(at);
    if (!isWay && this.#rules.isHidden(at)) return errors.sensitivePath();
    const refusal = REFUSALS[method];
    return refusal !== undefined && this.#rules.isReadOnly(at) ? refusal(at) : run();
  }

  async ls({ path }: Located, options: CallOptions) {
    const rules = this.#rules;
    const result = await (await this.#inner()).ls(path, options);
    const files = result.files?.filter((entry) => {
      const at = withoutSlash(entry.path);
      return !rules.isHidden(at) || rules.isOnTheWay(at);
    });
    return files === undefined ? result : { ...result, files };
  }

  async read({ path }: Located, { offset, limit }: PageRequest, options: CallOptions) {
    return (await this.#inner()).read(path, offset, limit, options);
  }

  async readRaw({ path }: Located, options: CallOptions) {
    return (await this.#inner()).readRaw(path, options);
  }

  async glob({ path }: Located, pattern: string, options: CallOptions) {
    const result = await (await this.#inner()).glob(pattern, path, options);
    const files = result.files?.filter((file) => !this.#rules.isHidden(withoutSlash(file.path)));
    return files === undefined ? result : { ...result, files };
  }

  async grep({ path }: Located, { pattern, glob, maxCount, options }: Search) {
    const inner = await this.#inner();
    const result = await grepShown(
      (cap) => inner.grep(pattern, path, glob, cap, options),
      maxCount,
      (match) => !this.#rules.isHidden(match),
    );
    if (result.matches === undefined) return result;
    const truncated = result.truncated === true || result.matches.length > maxCount;
    return { ...result, matches: result.matches.slice(0, maxCount), truncated };
  }

  async write({ path }: Located, content: string, options: WriteOptions) {
    return (await this.#inner()).write(path, content, options);
  }

  async upload({ path }: Located, bytes: Uint8Array, options: CallOptions) {
    return uploadTo(await this.#inner(), path, bytes, options);
  }

  async edit({ path }: Located, { oldString, newString, replaceAll, ...options }: Edit) {
    return (await this.#inner()).edit(path, oldString, newString, replaceAll, options);
  }

  async delete({ path, at }: PolicyPath, options: CallOptions) {
    const inner = await this.#inner();
    if (inner.delete === undefined) return errors.deletionUnavailable(at ?? path);
    // The inner backend refuses invalid paths, and the root.
    const isProtected = at !== undefined && at !== "/" && (await this.#protectsBelow(inner, at, options));
    return isProtected ? errors.deletesNotAllowed(at) : inner.delete(path, options);
  }

  /** Whether a directory contains a hidden or read-only path. */
  async #protectsBelow(inner: Backend, path: string, options: CallOptions): Promise<boolean> {
    if (this.#rules.hasReadOnlyBelow(path)) return true;
    if (!this.#rules.hidesNames) return false;
    const { files = [], truncated } = await inner.glob("**", path, options);
    return truncated === true || files.some((file) => this.#rules.isHidden(file.path));
  }
}

/**
 * Makes paths of a backend hidden or read-only. Paths are those of the inner backend. The policy decides by name:
 * a link that the inner backend follows can give a file a second name. Runs no commands.
 */
export class PolicyBackend extends CheckedBackend {
  readonly #source: BackendSource;
  readonly #rules: PolicyRules;
  readonly #inner: () => Promise<Backend>;

  constructor(inner: BackendSource, options: PolicyOptions | PolicyRules, runtime?: BackendRuntime) {
    checkBackend("The first argument of PolicyBackend", inner);
    const rules =
      options instanceof PolicyRules
        ? options
        : new PolicyRules(readOptions("PolicyBackend", options, OPTIONS));
    let bound: Promise<Backend> | undefined;
    const open = (): Promise<Backend> => (bound ??= obtainBackend(inner, runtime));
    super(new PolicyOperations(rules, open));
    this.#source = inner;
    this.#rules = rules;
    this.#inner = open;
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
}
