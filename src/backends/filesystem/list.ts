import type { Dirent } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallOptions, FileInfo, LsResult } from "../backend.ts";
import type { DirectoryHandle } from "./directory-handles.ts";
import { isTemporaryName, statEntry } from "./file-writer.ts";
import type { FilesystemPath } from "./paths.ts";
import { sortByPath } from "../flat-files.ts";
import { codeOf, type Jail } from "./jail.ts";
import { joinPath } from "../paths.ts";
import { expressibleEntries } from "./tree-walker.ts";

/** Entries between two turns of the event loop. */
const SLICE = 500;

/** The entries of a directory, or the one file a path names. */
export async function listDirectory(
  jail: Jail,
  { segments, shownAs }: FilesystemPath,
  options: CallOptions | undefined,
): Promise<LsResult> {
  try {
    return await jail.inDirectory(segments, {}, (directory, real) =>
      listEntries({ jail, directory, segments: real, shownAs }, options),
    );
  } catch (thrown) {
    const stats = codeOf(thrown) === "ENOTDIR" ? jail.lookUp(segments) : undefined;
    if (stats === undefined || stats.isDirectory()) throw thrown;
    return { files: [{ path: shownAs, is_dir: false, ...sizeAndTime(stats) }] };
  }
}

interface Place {
  jail: Jail;
  directory: DirectoryHandle;
  segments: readonly string[];
  shownAs: string;
}

async function listEntries(place: Place, options: CallOptions | undefined): Promise<LsResult> {
  const files: FileInfo[] = [];
  const entries = await place.directory.entries();
  const expressible = expressibleEntries(place.directory, entries);
  let skipped = entries.length - expressible.length;
  for (const [index, entry] of expressible.entries()) {
    if (index % SLICE === SLICE - 1) await nextTurn();
    options?.signal?.throwIfAborted();
    if (isTemporaryName(entry.name)) continue;
    const info = describe(place, entry);
    if (info === "unreadable") skipped += 1;
    else if (info !== "gone") files.push(info);
  }
  return { files: sortByPath(files), skipped };
}

function describe(
  { jail, directory, segments, shownAs }: Place,
  entry: Dirent,
): FileInfo | "gone" | "unreadable" {
  const path = joinPath(shownAs, entry.name);
  if (entry.isSymbolicLink()) {
    // A link shows what it leads to inside the root; of one that leads elsewhere only the name is ours.
    const target = jail.lookUp([...segments, entry.name]);
    if (target?.isDirectory() === true) return { path: `${path}/`, is_dir: true };
    return { path, is_dir: false, ...(target === undefined ? {} : sizeAndTime(target)) };
  }
  try {
    const stats = statEntry(directory, entry.name);
    if (stats === undefined) return "gone";
    if (stats.isDirectory())
      return { path: `${path}/`, is_dir: true, modified_at: stats.mtime.toISOString() };
    return { path, is_dir: false, ...sizeAndTime(stats) };
  } catch {
    return "unreadable";
  }
}

const sizeAndTime = (stats: { size: bigint; mtime: Date }): Pick<FileInfo, "size" | "modified_at"> => ({
  size: Number(stats.size),
  modified_at: stats.mtime.toISOString(),
});
