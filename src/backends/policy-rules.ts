/** The rules of a policy: which paths are hidden, and which may not be changed. */
import { ConfigurationError } from "../core/errors.ts";
import type { Backend } from "./backend.ts";
import { type Glob, compileGlob, literalStarts } from "./glob.ts";
import { addPrefix, isAtOrBelow, parentPaths, stripPrefix, validatePath } from "./paths.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

export interface PolicyOptions {
  /** Refuses every change. Default false. */
  readOnly?: boolean;
  /** Refuses changes at and below these directories, but allows reading. Letter case makes no difference. */
  denyPrefixes?: readonly string[];
  /**
   * Hides these files and everything below directories of such names: no access, no entry in listings and searches.
   * Patterns are written from the root, or without `/` for a name at any depth. Letter case makes no difference.
   */
  denyGlobs?: readonly string[];
  /** Only these directories and everything below them can be accessed. Default: everything. */
  allowPrefixes?: readonly string[];
}

/** Names that usually hold secrets: `secrets` directories and `.env` files. */
export const SENSITIVE_GLOBS: readonly string[] = ["secrets", ".env*"];

/** A method whose results leave out paths. */
export type LeavingOut = "ls" | "glob" | "grep";

/** Judges normalized paths by their names. Pure. */
export class PolicyRules {
  /**
   * The paths that refusing rules name: whole ones, and the beginning of a pattern up to its first wildcard. If there is
   * a link on such a path, the rule also holds for its target.
   */
  readonly named: readonly string[];
  readonly #readOnly: boolean;
  readonly #denyPrefixes: readonly string[];
  readonly #allowPrefixes: readonly string[] | undefined;
  readonly #denyGlobs: readonly Glob[];

  constructor({ readOnly, denyPrefixes = [], denyGlobs = [], allowPrefixes }: PolicyOptions) {
    const prefixes = denyPrefixes.map(prefixPath);
    this.named = [...prefixes, ...denyGlobs.flatMap((pattern) => literalStarts(denyGlob(pattern)))];
    this.#readOnly = readOnly === true;
    this.#denyPrefixes = prefixes.map(fold);
    this.#allowPrefixes = allowPrefixes?.map(prefixPath);
    this.#denyGlobs = denyGlobs.map((pattern) => denyGlob(fold(pattern)));
  }

  /** True for a path that cannot be accessed at all. */
  isHidden(path: string): boolean {
    if (this.#allowPrefixes?.some((prefix) => isAtOrBelow(path, prefix)) === false) return true;
    if (this.#denyGlobs.length === 0) return false;
    const folded = fold(path);
    return [...parentPaths(folded), folded].some((at) =>
      this.#denyGlobs.some((glob) => at !== "/" && glob.matches(at.slice(1))),
    );
  }

  /** True if something below a path may be seen, so that the path can be listed even if it is hidden. */
  isOnTheWay(path: string): boolean {
    return this.#allowPrefixes?.some((prefix) => prefix !== path && isAtOrBelow(prefix, path)) === true;
  }

  isReadOnly(path: string): boolean {
    return this.#readOnly || this.#denyPrefixes.some((prefix) => isAtOrBelow(fold(path), prefix));
  }

  /** True for a file that a person must allow to be read. */
  isAsked(_path: string): boolean {
    return false;
  }

  /** True for a path that is not in the results of a method, although it can be read. */
  isLeftOut(_path: string, _from: LeavingOut): boolean {
    return false;
  }

  /** False if commands are not kept from the files. Then a backend runs its commands also with these rules. */
  readonly bindsCommands: boolean = true;

  /** True if a directory that may not be changed lies at or below `path`. */
  hasReadOnlyBelow(path: string): boolean {
    return this.#denyPrefixes.some((prefix) => isAtOrBelow(prefix, fold(path)));
  }

  /** True if files below an accessible directory can be hidden. */
  get hidesNames(): boolean {
    return this.#denyGlobs.length > 0;
  }

  /** True if the rules hide some paths and not others. */
  get hides(): boolean {
    return this.hidesNames || this.#allowPrefixes !== undefined;
  }

  /** True if the rules hide or protect some paths and not others. */
  get distinguishes(): boolean {
    return this.hides || this.#denyPrefixes.length > 0;
  }
}

/** A path that a rule names, and the place that its links lead to. */
interface NamedPlace {
  named: string;
  real: string;
}

/** The paths that rules name and that are links now, so that the rules hold for their targets as well. */
export class NamedPlaces {
  readonly #places: readonly NamedPlace[];

  constructor(places: readonly NamedPlace[]) {
    this.#places = places;
  }

  static async in(backend: Backend, named: readonly string[]): Promise<NamedPlaces> {
    const places: NamedPlace[] = [];
    for (const path of named) {
      const real = (await backend.followLinks?.(path)) ?? path;
      if (real !== path) places.push({ named: path, real });
    }
    return new NamedPlaces(places);
  }

  /** The path itself, and the names that rules have for its place. */
  namesOf(path: string): string[] {
    if (this.#places.length === 0) return [path];
    const known = this.#places.filter(({ real }) => isAtOrBelow(path, real));
    return [path, ...known.map(({ named, real }) => addPrefix(named, stripPrefix(real, path)))];
  }

  /** The named paths that lead to places at or below a directory. */
  below(directory: string): string[] {
    return this.#places.filter(({ real }) => isAtOrBelow(real, directory)).map(({ named }) => named);
  }
}

/**
 * Makes spellings equal that some file systems take for the same file: letter case (which includes characters such
 * as `ſ`), composed characters, and invisible ones.
 */
export const fold = (path: string): string =>
  path
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFC");

function prefixPath(prefix: string): string {
  const valid = validatePath(prefix);
  if (valid.ok && prefix.startsWith("/")) return valid.path;
  throw new ConfigurationError("INVALID_POLICY", fill(texts.policyPrefix, prefix));
}

function denyGlob(pattern: string): Glob {
  const compiled = compileGlob(pattern, { fromRoot: true, nameAtAnyDepth: true });
  if (compiled.ok) return compiled.glob;
  throw new ConfigurationError("INVALID_POLICY", fill(texts.policyPattern, pattern, compiled.error));
}
