/** Marks a folder, so that machines know whether they see the same one. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { realPath } from "../core/real-path.ts";
import { statsAt } from "../core/stats.ts";

/**
 * Returns a mark that is equal on every machine that sees this folder, and differs elsewhere. It differs for a copy
 * of the folder too, and for an empty folder at an equal path. The mark combines the number of the folder in its file
 * system with a file in it, which is created if missing. In a read-only folder, only the number counts; likewise in a
 * folder whose links would lead to the file.
 */
export function folderMark(folder: string): string {
  const number = statsAt(folder)?.ino ?? 0;
  return `${number}/${readMark(folder) ?? ""}`;
}

function readMark(folder: string): string | undefined {
  const own = join(realPath(folder), ".deepagent");
  const file = join(own, "folder-id");
  // Fails if it exists, or if the folder is read-only.
  attempt(() => mkdirSync(own));
  if (realPath(file) !== file) return undefined;
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
