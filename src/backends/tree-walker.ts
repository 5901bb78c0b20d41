import type { Dirent } from "node:fs";
import type { DirectoryHandle } from "./directory-handles.ts";
import { isTemporaryName } from "./file-writer.ts";
import type { Glob } from "./glob.ts";
import { comparePaths } from "./paths.ts";

export interface WalkRequest {
  /** Directories it does not reach are not read. */
  glob: Pick<Glob, "reaches">;
  /** Told about each directory that could not be read. */
  onUnreadable(directory: string): void;
}

/**
 * Regular files below a directory, as relative paths in path order. Links are not followed, hidden files
 * are included; names that no path can express are passed over. Never holds more than one directory a
 * level, and stops when it is left early.
 */
export function* walkFiles(directory: DirectoryHandle, request: WalkRequest, prefix = ""): Generator<string> {
  let entries: Dirent[];
  try {
    entries = directory.entries();
  } catch {
    request.onUnreadable(prefix.slice(0, -1));
    return;
  }
  for (const entry of inPathOrder(entries)) {
    const path = prefix + entry.name;
    if (entry.isFile()) {
      if (!isTemporaryName(entry.name)) yield path;
      continue;
    }
    if (!request.glob.reaches(path)) continue;
    let child: DirectoryHandle;
    try {
      child = directory.openDirectory(entry.name);
    } catch {
      request.onUnreadable(path);
      continue;
    }
    try {
      yield* walkFiles(child, request, `${path}/`);
    } finally {
      child.close();
    }
  }
}

/** As `directory/` a directory sorts where its files do among the whole paths. */
function inPathOrder(entries: readonly Dirent[]): Dirent[] {
  return entries
    .filter((entry) => (entry.isFile() || entry.isDirectory()) && isExpressible(entry.name))
    .map((entry) => ({ entry, key: entry.isDirectory() ? `${entry.name}/` : entry.name }))
    .sort((left, right) => comparePaths(left.key, right.key))
    .map(({ entry }) => entry);
}

/** A name with a backslash would be read as two segments; one that is not UTF-8 has lost its bytes. */
export const isExpressible = (name: string): boolean => !name.includes("\\") && !name.includes("\ufffd");
