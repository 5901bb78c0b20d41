/** Content of single paths, read and changed inside one folder: no link leads out of it. */
import { closeSync, constants, fstatSync, readlinkSync, rmdirSync, symlinkSync } from "node:fs";
import { codeOf } from "../core/errors.ts";
import { hasDescriptorPaths } from "../backends/filesystem/handles.ts";
import { type FilesystemPath, type HiddenFiles, Jail, statEntry } from "../backends/filesystem/jail.ts";
import { type DiskTree, HiddenByPath } from "../backends/filesystem/list.ts";
import { deleteVersion, putPath, removeUnfinished, statVersion } from "../backends/filesystem/read-write.ts";
import { readBytes } from "../backends/pages.ts";
import type { PolicyRules } from "../backends/policy-rules.ts";
import table from "./file-errors.json" with { type: "json" };

export type Content =
  | { kind: "file"; bytes: Buffer; executable: boolean }
  | { kind: "link"; target: string }
  /** Nothing that can be proposed: a device, a file that cannot be read or is too large. */
  | { kind: "other"; why: string };

export interface Found {
  /** Undefined if there is nothing at the path, or a folder, or a link is on the way to it. */
  content: Content | undefined;
  /** For `put`. */
  version: string | undefined;
}

/** Largest file that is proposed. */
const MOST_BYTES = 64 * 1024 * 1024;

export const isSameContent = (a: Content | undefined, b: Content | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b;
  if (a.kind === "file" && b.kind === "file") return a.executable === b.executable && a.bytes.equals(b.bytes);
  return a.kind === "link" && b.kind === "link" && a.target === b.target;
};

/** Files of a workspace that agents must not read or change, by whatever name. */
export interface FileRules {
  /** Places that are hidden, wherever they are. */
  without: readonly string[];
  /** For paths from the workspace, which begin with `/`. */
  policy?: PolicyRules | undefined;
}

export const treeOf = (root: string, without: readonly string[]): DiskTree => ({
  jail: new Jail(root, hasDescriptorPaths(), without),
  topSegments: () => [],
  pathOf: (segments) => `/${segments.join("/")}`,
});

/** The files of a tree that one of these rules is about. */
export const filesRuled = (
  tree: DiskTree,
  { policy }: FileRules,
  ...rules: ("isHidden" | "isReadOnly")[]
): HiddenByPath | undefined =>
  policy && new HiddenByPath(tree, (path) => rules.some((rule) => policy[rule](path)));

export class Folder {
  readonly #jail: Jail;
  readonly #hidden: HiddenFiles | undefined;
  readonly #protected: HiddenFiles | undefined;

  constructor(root: string, rules: FileRules = { without: [] }) {
    const tree = treeOf(root, rules.without);
    this.#jail = tree.jail;
    this.#hidden = filesRuled(tree, rules, "isHidden");
    this.#protected = filesRuled(tree, rules, "isHidden", "isReadOnly");
  }

  /** Follows no link. */
  async read(path: string): Promise<Found> {
    try {
      return await this.#jail.atEntry(
        path.split("/"),
        ITSELF,
        async ({ directory, name }): Promise<Found> => {
          const stats = statEntry(directory, name);
          if (stats === undefined || stats.isDirectory()) return NOTHING;
          const version = statVersion(stats);
          const other = (why: string): Found => ({ content: { kind: "other", why }, version });
          if (stats.isSymbolicLink())
            return { content: { kind: "link", target: readlinkSync(directory.at(name)) }, version };
          if (!stats.isFile()) return other("not a regular file");
          if ((await this.#hidden?.has(stats)) === true) return other("another name of a hidden file");
          if (stats.size > BigInt(MOST_BYTES)) return other("larger than 64 MB");
          const descriptor = directory.openFile(name, constants.O_RDONLY);
          try {
            const bytes = Buffer.from(await readBytes(descriptor, Number(stats.size), MOST_BYTES));
            const executable = (fstatSync(descriptor).mode & 0o100) !== 0;
            return { content: { kind: "file", bytes, executable }, version };
          } finally {
            closeSync(descriptor);
          }
        },
      );
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP") return NOTHING;
      if (code === undefined) throw thrown;
      return { content: { kind: "other", why: "not readable" }, version: undefined };
    }
  }

  /** Replaces the found content. Returns the problem, if there is one; then nothing has changed. */
  async put(
    path: string,
    content: Content | undefined,
    found: Found,
    mark = "",
  ): Promise<string | undefined> {
    const at = this.#at(path);
    try {
      if ((await this.read(path)).version !== found.version)
        return `${path} changed while the change was applied`;
      const isReplaced = found.content !== undefined && found.content.kind !== content?.kind;
      if (found.content?.kind === "other") return `${path} is ${found.content.why}`;
      if (content?.kind === "other") return `${path} is ${content.why}`;
      // A link has no content to replace.
      if (found.version !== undefined && (isReplaced || content?.kind === "link")) {
        const { error } = await deleteVersion(at, found.version, mark);
        if (error !== undefined) return error;
      }
      if (content?.kind === "link")
        await this.#jail.atEntry(at.segments, { ...ITSELF, create: true }, ({ directory, name }) =>
          symlinkSync(content.target, directory.at(name)),
        );
      if (content?.kind !== "file") return undefined;
      const { content: old, version } = isReplaced ? NOTHING : found;
      const { bytes, executable } = content;
      const isNew = executable !== (old?.kind === "file" && old.executable);
      const { error } = await putPath(at, bytes, {
        mode: version === undefined ? "create" : "overwrite",
        ...(version === undefined ? {} : { expectedVersion: version }),
        ...(isNew ? { executable } : {}),
        evenReadOnly: true,
        mark,
      });
      return error;
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === undefined) throw thrown;
      return `${path} cannot be written (${REASONS[code] ?? code})`;
    }
  }

  /** Removes the folders above a path that are empty. */
  async removeEmpty(path: string): Promise<void> {
    const segments = path.split("/").slice(0, -1);
    for (; segments.length > 0; segments.pop()) {
      const isGone = await this.#jail
        .atEntry([...segments], ITSELF, ({ directory, name }) => {
          rmdirSync(directory.at(name));
          return true;
        })
        .catch(() => false);
      if (!isGone) return;
    }
  }

  /** Removes files with a mark that other processes were about to put at a path. */
  async removeUnfinished(path: string, mark: string): Promise<void> {
    await removeUnfinished(this.#at(path), mark).catch((thrown: unknown) => {
      if (codeOf(thrown) === undefined) throw thrown;
    });
  }

  #at(path: string): FilesystemPath {
    const at = { jail: this.#jail, path: `/${path}`, segments: path.split("/"), links: "none" } as const;
    return this.#protected === undefined ? at : { ...at, hidden: this.#protected };
  }
}

const ITSELF = { links: "none", lastLink: "itself" } as const;

const NOTHING: Found = { content: undefined, version: undefined };

const REASONS: Readonly<Record<string, string>> = table;
