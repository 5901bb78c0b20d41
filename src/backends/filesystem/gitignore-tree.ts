import { closeSync, constants, fstatSync, readSync } from "node:fs";
import type { DirectoryHandle } from "./directory-handles.ts";
import { DirectoryTrail } from "./directory-trail.ts";
import { GitignoreRules } from "./gitignore.ts";

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
