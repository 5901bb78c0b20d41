import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of the installed package: the nearest one above this file that has a `package.json`. */
export function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) throw new Error(`no package.json above ${start}`);
  }
}

export function packageVersion(): string {
  const { version } = manifest();
  return typeof version === "string" ? version : "0.0.0";
}

/** Whether npm has the package: until then its manifest is marked private, and `npx` cannot find it. */
export const isPublished = (): boolean => manifest()["private"] !== true;

function manifest(): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8"));
  return typeof parsed === "object" && parsed !== null ? { ...parsed } : {};
}
