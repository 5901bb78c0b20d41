import { closeSync, constants, fstatSync, readSync } from "node:fs";
import { trimEndOf } from "../../core/text.ts";
import { type Glob, compileGlob } from "../glob.ts";
import { type DirectoryHandle, DirectoryTrail } from "./handles.ts";

/** A line of a `.gitignore` file. */
interface Rule {
  glob: Glob;
  directoriesOnly: boolean;
  /** False for a line that includes names again. */
  excludes: boolean;
}

/** The rules of the `.gitignore` file of a directory, followed by those of the directories above. */
export class GitignoreRules {
  readonly #rules: readonly Rule[];
  readonly #directory: string;
  readonly #above: GitignoreRules | undefined;

  /** `directory` is relative, without slashes around it. Skips lines that are no patterns. */
  constructor(text: string, directory: string, above: GitignoreRules | undefined) {
    this.#rules = text
      .replace(/^\ufeff/, "")
      .split("\n")
      .flatMap((line) => ruleOf(line.replace(/\r$/, "")) ?? [])
      .reverse();
    this.#directory = directory;
    this.#above = above;
  }

  /** Whether a path below the directory is excluded. Its parents must not be. Both are relative to the same folder. */
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

/** Removes spaces at the end, but not one after a backslash. */
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

/** Escapes characters that are plain in `.gitignore`: braces, commas, and `!` and `~` at the start. */
const toOurDialect = (pattern: string): string =>
  pattern
    .replace(/\[:(\w+):\]/g, (whole, name: string) => CLASSES[name] ?? whole)
    .replace(/\\.|[{},]|^[!~]/gs, (found) => (found.startsWith("\\") ? found : `\\${found}`));

/** Larger files are ignored. They take long to apply, because each name is compared with each line. */
const MAX_SIZE = 32 * 1024;

/**
 * Decides which files a search skips: those that the `.gitignore` files of a tree exclude, and `.git`. Reads each file
 * once, when it is first needed. A directory that is searched by name is not skipped, even if it is excluded.
 */
export class GitignoreTree {
  readonly #trail: DirectoryTrail;
  readonly #searched: readonly string[];
  /** By path from the top; undefined for an excluded directory. */
  readonly #known = new Map<string, GitignoreRules | undefined>();

  /** `top` stays open. Paths are relative to `searched`, a directory below it. */
  constructor(top: DirectoryHandle, searched: readonly string[]) {
    this.#trail = new DirectoryTrail(top);
    this.#searched = searched;
  }

  /** Whether a path, or a directory on the way to it, is excluded. */
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

  /** Reads a `.gitignore` file; empty if it cannot be read. Follows no link, like git. */
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
