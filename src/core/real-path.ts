import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { StorageError, orElse } from "./errors.ts";
import { linkStatsAt } from "./stats.ts";

/** The absolute path with links (40, as the system allows) resolved, also to places that do not exist yet. */
export const realPath = (path: string): string => followed(path, 40);

function followed(path: string, links: number): string {
  const absolute = resolve(path);
  // A missing entry is common, and exceptions are slow.
  const entry = linkStatsAt(absolute);
  const real = entry && orElse(() => realpathSync.native(absolute), undefined);
  const above = dirname(absolute);
  if (real !== undefined || above === absolute) return real ?? absolute;
  const folder = followed(above, links);
  const place = join(folder, basename(absolute));
  const isLink = links > 0 && entry?.isSymbolicLink() === true;
  const target = isLink ? orElse(() => readlinkSync(place), undefined) : undefined;
  return target === undefined ? place : followed(resolve(folder, target), links - 1);
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
