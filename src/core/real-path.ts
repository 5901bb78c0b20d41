import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { StorageError, orElse } from "./errors.ts";

/** The absolute path with links (40, as the system allows) resolved, also to places that do not exist yet. */
export const realPath = (path: string): string => followed(path, 40);

function followed(path: string, links: number): string {
  const absolute = resolve(path);
  try {
    return realpathSync.native(absolute);
  } catch {
    const above = dirname(absolute);
    if (above === absolute) return absolute;
    const folder = followed(above, links);
    const place = join(folder, basename(absolute));
    const target = links === 0 ? undefined : orElse(() => readlinkSync(place), undefined);
    return target === undefined ? place : followed(resolve(folder, target), links - 1);
  }
}

/** Returns a function that throws `StorageError` once a link on the way to `path` leads elsewhere than now. */
export function linkGuard(path: string, name: string): () => void {
  const place = realPath(path);
  return () => {
    if (realPath(path) === place) return;
    throw new StorageError(
      "storage_directory",
      `A link on the path of ${name} has changed its target since the server started. Point it back, or restart the ` +
        `server to use the files at the new target.`,
    );
  };
}

/** True if `path` is `folder` or lies below it; names only. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
