import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** The absolute path with links resolved as far as it exists. */
export function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync.native(absolute);
  } catch {
    const above = dirname(absolute);
    return above === absolute ? absolute : join(realPath(above), basename(absolute));
  }
}

/** Whether `path` is `folder` or lies below it; names only. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
