/** Marks a folder, so that machines know whether they see the same one. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const MARK = ".deepagent/folder-id";

/**
 * Gives the same text on every machine that sees this folder, and another one elsewhere: also where a copy of the
 * folder is, or an empty one at the same path. It is made of the number of the folder in its file system and of a
 * file in it, which is made when it is missing. In a folder that cannot be written, only the number counts.
 */
export function folderMark(folder: string): string {
  const number = statSync(folder, { throwIfNoEntry: false })?.ino ?? 0;
  return `${number}/${markIn(folder) ?? ""}`;
}

function markIn(folder: string): string | undefined {
  const file = join(folder, MARK);
  // Fails when it is there already, or when the folder is read-only.
  attempt(() => mkdirSync(dirname(file)));
  attempt(() => writeFileSync(file, `${randomUUID()}\n`, { flag: "wx" }));
  try {
    const [mark] = /^[\w-]{36}/.exec(readFileSync(file, "utf8")) ?? [];
    return mark;
  } catch {
    return undefined;
  }
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {}
}
