import { ConfigurationError } from "../../core/errors.ts";
import { compileGlob, type Glob } from "../glob/glob.ts";
import { isAtOrBelow, parentsOf, validatePath } from "../paths.ts";

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
