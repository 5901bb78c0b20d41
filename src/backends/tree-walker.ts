import type { DirectoryHandle } from "./directory-handles.ts";
import { isTemporaryName } from "./file-writer.ts";
import type { Glob } from "./glob.ts";

export interface WalkRequest {
  /** Directories it does not reach are not read. */
  glob: Pick<Glob, "reaches">;
  /** Told about each directory that could not be read. */
  onUnreadable(directory: string): void;
}

/** A directory being walked, and how far that is. */
interface Level {
  directory: DirectoryHandle;
  /** Path of its entries up to their names. */
  prefix: string;
  names: readonly string[];
  next: number;
}

/**
 * Regular files below a directory, as relative paths in path order. Links are not followed, hidden files
 * are included; names that no path can express are passed over. Never holds more than one directory a
 * level open, and closes them when it is left early. `directory` itself stays open.
 */
export function* walkFiles(directory: DirectoryHandle, request: WalkRequest): Generator<string> {
  const levels: Level[] = [];
  descend(levels, directory, "", request);
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const name = level.names[level.next++];
      if (name === undefined) {
        levels.pop();
        if (level.directory !== directory) level.directory.close();
      } else if (name.endsWith("/")) {
        enter(levels, level, name.slice(0, -1), request);
      } else {
        yield level.prefix + name;
      }
    }
  } finally {
    for (const level of levels) if (level.directory !== directory) level.directory.close();
  }
}

function enter(levels: Level[], { directory, prefix }: Level, name: string, request: WalkRequest): void {
  const path = prefix + name;
  if (!request.glob.reaches(path)) return;
  let child: DirectoryHandle;
  try {
    child = directory.openDirectory(name);
  } catch {
    request.onUnreadable(path);
    return;
  }
  if (!descend(levels, child, `${path}/`, request)) child.close();
}

function descend(levels: Level[], directory: DirectoryHandle, prefix: string, request: WalkRequest): boolean {
  try {
    levels.push({ directory, prefix, names: namesOf(directory), next: 0 });
    return true;
  } catch {
    request.onUnreadable(prefix.slice(0, -1));
    return false;
  }
}

/** Names in path order. With its slash a directory sorts where its files do among whole paths. */
function namesOf(directory: DirectoryHandle): string[] {
  const names: string[] = [];
  for (const entry of directory.entries()) {
    if (!isExpressible(entry.name)) continue;
    if (entry.isDirectory()) names.push(`${entry.name}/`);
    else if (entry.isFile() && !isTemporaryName(entry.name)) names.push(entry.name);
  }
  return names.sort();
}

/** A name with a backslash would be read as two segments; one that is not UTF-8 has lost its bytes. */
export const isExpressible = (name: string): boolean => !name.includes("\\") && !name.includes("\ufffd");
