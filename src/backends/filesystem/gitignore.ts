import { closeSync, constants, fstatSync, readSync } from "node:fs";
import { trimEndOf } from "../../core/text.ts";
import { type Glob, compileGlob } from "../glob.ts";
import { type DirectoryHandle, DirectoryTrail } from "./handles.ts";

/** A line of a `.gitignore` file. */
interface Rule {
  glob: Glob;
  directoriesOnly: boolean;
  /** False for a line that takes names back in. */
  excludes: boolean;
}

/** What the `.gitignore` file of one directory says, and after it those of the directories above. */
export class GitignoreRules {
  readonly #rules: readonly Rule[];
  readonly #directory: string;
  readonly #above: GitignoreRules | undefined;

  /** `directory` is relative, without slashes around it. Lines that are no patterns are passed over. */
  constructor(text: string, directory: string, above: GitignoreRules | undefined) {
    this.#rules = text
      .replace(/^\ufeff/, "")
      .split("\n")
      .flatMap((line) => ruleOf(line.replace(/\r$/, "")) ?? [])
      .reverse();
    this.#directory = directory;
    this.#above = above;
  }

  /** Whether a path below the directory, relative to the same one as it, is left out; its parents are not. */
  exclude(path: string, isDirectory: boolean): boolean {
    const below = this.#directory === "" ? path : path.slice(this.#directory.length + 1);
    const rule = this.#rules.find(
      ({ glob, directoriesOnly }) => (isDirectory || !directoriesOnly) && glob.matches(below),
    );
    return rule?.excludes ?? this.#above?.exclude(path, isDirectory) ?? false;
  }
}

function ruleOf(line: string): Rule | undefined {
  if (line.startsWith("#")) return undefined;
  const written = withoutSpacesAtEnd(line);
  const excludes = !written.startsWith("!");
  const pattern = excludes ? written : written.slice(1);
  const directoriesOnly = pattern.endsWith("/");
  const body = directoriesOnly ? pattern.slice(0, -1) : pattern;
  const path = body.startsWith("/") ? body.slice(1) : body;
  if (path === "") return undefined;
  const compiled = compileGlob(toOurDialect(path), { nameAtAnyDepth: !body.includes("/") });
  return compiled.ok ? { glob: compiled.glob, directoriesOnly, excludes } : undefined;
}

/** Spaces after a backslash stay. */
function withoutSpacesAtEnd(line: string): string {
  const bare = trimEndOf(line, " ");
  const backslashes = bare.length - trimEndOf(bare, "\\").length;
  return bare.length < line.length && backslashes % 2 === 1 ? `${bare} ` : bare;
}

const CLASSES: Readonly<Record<string, string>> = {
  alnum: "a-zA-Z0-9",
  alpha: "a-zA-Z",
  digit: "0-9",
  lower: "a-z",
  upper: "A-Z",
  space: " \t",
  xdigit: "0-9a-fA-F",
};

/** Braces and commas are plain characters here, as are `!` and `~` at the start. */
const toOurDialect = (pattern: string): string =>
  pattern
    .replace(/\[:(\w+):\]/g, (whole, name: string) => CLASSES[name] ?? whole)
    .replace(/\\.|[{},]|^[!~]/gs, (found) => (found.startsWith("\\") ? found : `\\${found}`));

/** A larger file is none that was written for git, and takes long to apply: each name is held against each line. */
const MAX_SIZE = 32 * 1024;

/**
 * What the `.gitignore` files of a tree leave out of a search: what they exclude, and `.git`. They are read
 * when they are first asked about, once. A directory that is searched by name is searched, even when it is
 * left out of the search above it.
 */
export class GitignoreTree {
  readonly #trail: DirectoryTrail;
  readonly #searched: readonly string[];
  /** By path from the top; undefined for a directory that is left out. */
  readonly #known = new Map<string, GitignoreRules | undefined>();

  /** `top` stays open. `searched` is the directory below it that paths are given from. */
  constructor(top: DirectoryHandle, searched: readonly string[]) {
    this.#trail = new DirectoryTrail(top);
    this.#searched = searched;
  }

  /** Whether a path, or a directory on the way to it, is left out. */
  excludes(path: string, isDirectory: boolean): boolean {
    const names = path.split("/");
    const rules = this.#rulesIn([...this.#searched, ...names.slice(0, -1)]);
    return rules === undefined || this.#isLeftOut([...this.#searched, ...names], isDirectory, rules);
  }

  close(): void {
    this.#trail.close();
  }

  #rulesIn(directory: readonly string[]): GitignoreRules | undefined {
    const path = directory.join("/");
    if (this.#known.has(path)) return this.#known.get(path);
    const above = directory.length === 0 ? undefined : this.#rulesIn(directory.slice(0, -1));
    const isSearched = directory.length > this.#searched.length;
    const leftOut = isSearched && (above === undefined || this.#isLeftOut(directory, true, above));
    const rules = leftOut ? undefined : new GitignoreRules(this.#read(path), path, above);
    this.#known.set(path, rules);
    return rules;
  }

  #isLeftOut(names: readonly string[], isDirectory: boolean, rules: GitignoreRules): boolean {
    return names.at(-1) === ".git" || rules.exclude(names.join("/"), isDirectory);
  }

  /** Empty where there is none that can be read; links are not followed, as git does not. */
  #read(directory: string): string {
    let descriptor: number | undefined;
    try {
      const path = directory === "" ? ".gitignore" : `${directory}/.gitignore`;
      descriptor = this.#trail.openFile(path, constants.O_RDONLY);
      const stats = fstatSync(descriptor);
      if (!stats.isFile() || stats.size > MAX_SIZE) return "";
      const bytes = Buffer.alloc(stats.size);
      return bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, bytes.length, 0));
    } catch {
      return "";
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
}
