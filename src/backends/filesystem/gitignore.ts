import { closeSync, constants, fstatSync, readFileSync, readSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { filterInTurns } from "../../core/concurrency.ts";
import { orElse } from "../../core/errors.ts";
import { trimEndOf } from "../../core/text.ts";
import { type Glob, compileGlob } from "../glob.ts";
import { type DirectoryHandle, DirectoryTrail } from "./handles.ts";
import table from "./character-classes.json" with { type: "json" };

interface IgnoreRule {
  glob: Glob;
  directoriesOnly: boolean;
  /** False for a line that includes names again. */
  excludes: boolean;
}

/** The rules of the `.gitignore` file of a directory, followed by those of the directories above. */
export class GitignoreRules {
  readonly #rules: readonly IgnoreRule[];
  readonly #directory: string;
  readonly #above: GitignoreRules | undefined;

  /** `directory` is relative, without slashes around it. Skips lines without a pattern. */
  constructor(text: string, directory: string, above: GitignoreRules | undefined) {
    this.#rules = text
      .replace(/^\ufeff/, "")
      .split("\n")
      .flatMap((line) => parseRule(line.replace(/\r$/, "")) ?? [])
      .reverse();
    this.#directory = directory;
    // Most directories add no rules, and each file is judged.
    this.#above = above?.isEmpty === true ? undefined : above;
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0 && this.#above === undefined;
  }

  /** True for a path below the directory. */
  covers(path: string): boolean {
    return this.#directory === "" || path.startsWith(`${this.#directory}/`);
  }

  /** True if a path below the directory is excluded. Its parents must not be. Both are relative to the same folder. */
  exclude(path: string, isDirectory: boolean): boolean {
    const below = this.#directory === "" ? path : path.slice(this.#directory.length + 1);
    const rule = this.#rules.find(
      ({ glob, directoriesOnly }) => (isDirectory || !directoriesOnly) && glob.matches(below),
    );
    return rule?.excludes ?? this.#above?.exclude(path, isDirectory) ?? false;
  }
}

function parseRule(line: string): IgnoreRule | undefined {
  if (line.startsWith("#")) return undefined;
  // Spaces at the end do not count, but one after a backslash does.
  const bare = trimEndOf(line, " ");
  const backslashes = bare.length - trimEndOf(bare, "\\").length;
  const written = bare.length < line.length && backslashes % 2 === 1 ? `${bare} ` : bare;
  const excludes = !written.startsWith("!");
  const pattern = excludes ? written : written.slice(1);
  const directoriesOnly = pattern.endsWith("/");
  const body = directoriesOnly ? pattern.slice(0, -1) : pattern;
  const path = body.startsWith("/") ? body.slice(1) : body;
  if (path === "") return undefined;
  // Braces, commas, and `!` and `~` at the start are plain characters in `.gitignore`.
  const translated = path
    .replace(/\[:(\w+):\]/g, (whole, name: string) => CLASSES[name] ?? whole)
    .replace(/\\.|[{},]|^[!~]/gs, (found) => (found.startsWith("\\") ? found : `\\${found}`));
  const compiled = compileGlob(translated, { nameAtAnyDepth: !body.includes("/") });
  return compiled.ok ? { glob: compiled.glob, directoriesOnly, excludes } : undefined;
}

const CLASSES: Readonly<Record<string, string>> = table;

const isGit = (path: string): boolean => path.endsWith(".git") && /(?:^|\/)\.git$/.test(path);

const isLeftOut = (path: string, isDirectory: boolean, rules: GitignoreRules): boolean =>
  isGit(path) || rules.exclude(path, isDirectory);

/** The text of the excludes file that a user has for all repositories; empty if there is none. */
function globalExcludes(env: NodeJS.ProcessEnv = process.env): string {
  const home = env["HOME"] ?? homedir();
  const folder = join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "git");
  const configs = [env["GIT_CONFIG_GLOBAL"] ?? join(home, ".gitconfig"), join(folder, "config")];
  const named = configs.map((config) => {
    const [, core = ""] = /^[ \t]*\[core\]([^[]*)/im.exec(readSmallFile(config)) ?? [];
    const [, path = ""] = /^[ \t]*excludesfile[ \t]*=(.*)$/im.exec(core) ?? [];
    return path.trim().replace(/^"|"$/g, "");
  });
  const path = named.find((configured) => configured !== "")?.replace(/^~(?=\/)/, home);
  return readSmallFile(resolve(home, path ?? join(folder, "ignore")));
}

const readSmallFile = (path: string): string =>
  orElse(() => {
    const stats = statSync(path);
    return stats.isFile() && stats.size <= MAX_SIZE ? readFileSync(path, "utf8") : "";
  }, "");

/** Larger files are ignored. They take long to apply, because each name is compared with each line. */
const MAX_SIZE = 32 * 1024;

/**
 * Finds the files that git ignores in a tree, and `.git`. Reads each `.gitignore` file once, when it is first needed. A
 * directory that is searched by name is not ignored, even if it is excluded.
 */
export class GitignoreTree {
  readonly #trail: DirectoryTrail;
  readonly #prefix: string;
  readonly #without = new Set<string>();
  /** By path from the top with a slash at its end; undefined for an excluded directory. */
  readonly #known = new Map<string, GitignoreRules | undefined>();

  /** `top` stays open. Paths are relative to `searched`, a directory below it. */
  constructor(top: DirectoryHandle, searched: readonly string[]) {
    this.#trail = new DirectoryTrail(top);
    this.#prefix = searched.map((name) => `${name}/`).join("");
  }

  /** True if a path, or a directory on the way to it, is excluded. */
  excludes(path: string, isDirectory: boolean): boolean {
    const rules = this.#rulesFor(path);
    return rules === undefined || isLeftOut(this.#prefix + path, isDirectory, rules);
  }

  /** Chooses the files of one directory that are not excluded. */
  async kept(files: readonly string[]): Promise<readonly string[]> {
    const [first = ""] = files;
    const rules = this.#rulesFor(first);
    if (rules === undefined) return [];
    if (rules.isEmpty && !files.some(isGit)) return files;
    return filterInTurns(files, (path) => !isLeftOut(this.#prefix + path, false, rules));
  }

  /** Notes that a directory, with a slash at its end, has no `.gitignore` file. */
  addsNothing(directory: string): void {
    this.#without.add(this.#prefix + directory);
  }

  close(): void {
    this.#trail.close();
  }

  #rulesFor(path: string): GitignoreRules | undefined {
    return this.#rulesIn(this.#prefix + path.slice(0, path.lastIndexOf("/") + 1));
  }

  /** The rules for the entries of a directory, whose path ends in a slash. */
  #rulesIn(key: string): GitignoreRules | undefined {
    if (this.#known.has(key)) return this.#known.get(key);
    const path = key.slice(0, -1);
    // Above the top are the rules beside those of `.gitignore` files, which count before them.
    const above =
      key === ""
        ? new GitignoreRules(
            this.#read("", ".git/info/exclude"),
            "",
            new GitignoreRules(globalExcludes(), "", undefined),
          )
        : this.#rulesIn(key.slice(0, path.lastIndexOf("/") + 1));
    const isSearched = key.length > this.#prefix.length;
    const leftOut = isSearched && (above === undefined || isLeftOut(path, true, above));
    let rules = leftOut ? undefined : above;
    if (!leftOut && (above === undefined || !this.#without.has(key)))
      rules = new GitignoreRules(this.#read(path, ".gitignore"), path, above);
    this.#known.set(key, rules);
    return rules;
  }

  /** Reads a file with rules; empty if it cannot be read. Follows no link, like git. */
  #read(directory: string, name: string): string {
    let descriptor: number | undefined;
    try {
      descriptor = this.#trail.openFile(directory === "" ? name : `${directory}/${name}`, constants.O_RDONLY);
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
