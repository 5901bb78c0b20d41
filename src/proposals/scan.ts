/** Finds and copies the files of a workspace. */
import type { BigIntStats, Dirent } from "node:fs";
import { closeSync, constants, fstatSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import * as fs from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { GitignoreTree } from "../backends/filesystem/gitignore.ts";
import { type DirectoryHandle, hasDescriptorPaths, openRoot } from "../backends/filesystem/handles.ts";
import { isTemporaryName } from "../backends/filesystem/read-write.ts";
import { isPlaceholder } from "../backends/sandbox/placeholders.ts";
import { gitFolders } from "../backends/sandbox/starting-places.ts";
import { mapAtMost, ownTurn } from "../core/concurrency.ts";
import { ConfigurationError, codeOf, orElse } from "../core/errors.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { linkStatsAt } from "../core/stats.ts";
import { type FileRules, filesRuled, treeOf } from "./content.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

export interface ScannedFile {
  path: string;
  stamp: string;
  /** Git ignores it, but not the folder it is in. */
  ignored: boolean;
}

/** Another one once the file was replaced or written to. */
export const stampOf = ({ ino, size, mtimeNs, ctimeNs, mode }: BigIntStats): string =>
  [ino, size, mtimeNs, ctimeNs, mode].map((part) => part.toString(36)).join("-");

/** Most files of a workspace, without those in ignored folders. */
const MOST_FILES = 200_000;

/** Files and links of a folder in no order, without those in ignored folders, `.git` and unfinished writes. */
export async function scan(root: string): Promise<ScannedFile[]> {
  const top = openRoot(root, hasDescriptorPaths());
  const rules = new GitignoreTree(top, []);
  const found: ScannedFile[] = [];
  const folders = [""];
  try {
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const entries = await fs.readdir(join(root, folder), { withFileTypes: true }).catch(nothingThere);
      for (const [index, entry] of entries.entries()) {
        // Asking the system for one file at a time is much faster than handing each to another thread.
        if (index % 100 === 0) await ownTurn();
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
        if (entry.name === ".git" || isTemporaryName(entry.name)) continue;
        if (entry.isDirectory()) {
          if (!rules.excludes(path, true) && !isPlaceholder(join(root, path))) folders.push(path);
        } else if (entry.isFile() || entry.isSymbolicLink()) {
          const stats = lstatSync(join(root, path), { bigint: true, throwIfNoEntry: false });
          if (stats !== undefined)
            found.push({ path, stamp: stampOf(stats), ignored: rules.excludes(path, false) });
        }
      }
      if (found.length > MOST_FILES)
        throw tooMuch(
          `more than ${MOST_FILES.toLocaleString("en")} files`,
          "Let Git ignore what is generated",
        );
    }
  } finally {
    rules.close();
    top.close();
  }
  return found;
}

/** Throws unless a place is gone or another thing by now, or is closed to this user. */
export function nothingThere(thrown: unknown): [] {
  if (/^E(?:NOENT|NOTDIR|ISDIR|EXIST|INVAL|LOOP|ACCES|PERM|HIDDEN)$/.test(codeOf(thrown) ?? "")) return [];
  throw thrown;
}

const tooMuch = (what: string, remedy: string): ConfigurationError =>
  new ConfigurationError("proposals", fill(texts.notCopied, what, remedy));

/** Copies a folder with all that is in it, ignored folders too. Leaves out what cannot be read, or is hidden. */
export async function copyFolder(
  from: string,
  to: string,
  { maxBytes, ...rules }: FileRules & { maxBytes: number },
): Promise<void> {
  const tree = treeOf(from, rules.without);
  const root = realPath(from);
  const repositories = new Set(gitFolders(root).map((folder) => relative(root, folder)));
  const hidden = filesRuled(tree, rules, "isHidden");
  let bytes = 0;
  const copyOne = async (directory: DirectoryHandle, entry: Dirent, path: string): Promise<void> => {
    const target = join(to, path);
    if (entry.isSymbolicLink()) {
      const link = readlinkSync(directory.at(entry.name));
      // An absolute target inside the folder would lead from the copy into the folder itself.
      const isInFolder = isAbsolute(link) && isInside(from, link);
      return fs.symlink(isInFolder ? relative(dirname(path), relative(from, link)) || "." : link, target);
    }
    if (entry.isDirectory()) {
      const { mode } = lstatSync(directory.at(entry.name));
      await fs.mkdir(target);
      return fs.chmod(target, (mode & 0o777) | 0o700);
    }
    const descriptor = directory.openFile(entry.name, constants.O_RDONLY);
    try {
      const stats = fstatSync(descriptor, { bigint: true });
      if (!stats.isFile() || (await hidden?.has(stats)) === true) return;
      bytes += Number(stats.size);
      if (bytes > maxBytes)
        throw tooMuch(`more than ${Math.round(maxBytes / 1_048_576)} MB`, "Raise proposals.maxMegabytes");
      // The opened file, whatever has its name by now.
      const source = hasDescriptorPaths() ? `/proc/self/fd/${descriptor}` : join(from, path);
      await fs.copyFile(source, target, constants.COPYFILE_FICLONE);
      await fs.utimes(target, stats.atime, stats.mtime);
    } finally {
      closeSync(descriptor);
    }
  };
  const copyEntries = (folder: string): Promise<string[]> =>
    tree.jail.inDirectory(folder.split(sep).filter(Boolean), { links: "none" }, async (directory) => {
      const pathOf = ({ name }: Dirent): string => join(folder, name);
      const entries = (await directory.entries()).filter(
        (entry) => !isLeftOut(root, pathOf(entry), entry, repositories),
      );
      const copied = await mapAtMost(4, entries, async (entry) =>
        copyOne(directory, entry, pathOf(entry)).then(() => [entry], nothingThere),
      );
      return copied.flat().flatMap((entry) => (entry.isDirectory() ? [pathOf(entry)] : []));
    });
  await fs.mkdir(to, { recursive: true });
  for (let folders = [""]; folders.length > 0;)
    folders = (await mapAtMost(4, folders, (folder) => copyEntries(folder).catch(nothingThere))).flat();
  // A repository of the copy reads the objects of the original and writes its own.
  for (const path of repositories) {
    const [objects, git] = [join(root, path, "objects"), join(to, path)];
    if (linkStatsAt(git)?.isDirectory() !== true || linkStatsAt(objects)?.isDirectory() !== true) continue;
    await fs.mkdir(join(git, "objects", "info"), { recursive: true });
    await fs.writeFile(join(git, "objects", "info", "alternates"), `${objects}\n`);
  }
}

/** Parts of repositories that the copy does not need, and files that lead to repositories elsewhere. */
function isLeftOut(from: string, path: string, entry: Dirent, repositories: ReadonlySet<string>): boolean {
  if (isTemporaryName(entry.name)) return true;
  if (!(entry.isFile() || entry.isDirectory() || entry.isSymbolicLink())) return true;
  if (["objects", "worktrees", "lfs"].includes(entry.name)) return repositories.has(dirname(path));
  if (entry.name !== ".git") return false;
  if (entry.isDirectory()) return !repositories.has(path);
  // That of a submodule leads into the copy, too, if it is relative.
  const text = entry.isFile() ? orElse(() => readFileSync(join(from, path), "utf8"), "") : "";
  const target = /^gitdir: ([^/\n].*)$/m.exec(text)?.[1];
  return target === undefined || !repositories.has(join(dirname(path), target));
}

/** The folders with the objects of a workspace's repository, of its submodules and of repositories inside it. */
export const sharedObjects = (workspace: string): string[] =>
  gitFolders(workspace)
    .map((folder) => join(folder, "objects"))
    .filter((path) => linkStatsAt(path)?.isDirectory() === true);
