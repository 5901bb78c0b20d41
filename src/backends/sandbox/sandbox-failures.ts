import * as errors from "../errors.ts";
import type { Found, Written } from "./sandbox-files.ts";

const READ_FAILURES: Record<
  Exclude<Found["result"], "file" | "large">,
  (path: string) => errors.BackendFailure
> = {
  missing: errors.fileNotFound,
  directory: errors.isDirectory,
  other: errors.notRegularFile,
  denied: errors.permissionDenied,
};

const WRITE_FAILURES: Record<Exclude<Written, "written">, (path: string) => errors.BackendFailure> = {
  exists: errors.alreadyExists,
  directory: errors.isDirectory,
  parent: errors.parentIsFile,
  denied: errors.permissionDenied,
  symlink: errors.writeToSymlink,
  changed: errors.changedSinceRead,
  failed: (path) => errors.ioFailure(path, "the file could not be put in its place"),
};

/** Why a file was not read; `limit`: bytes of the largest that is. */
export const readFailure = (
  path: string,
  found: Exclude<Found, { result: "file" }>,
  limit: number,
): errors.BackendFailure =>
  found.result === "large"
    ? errors.tooLargeToLoad(path, found.size, limit)
    : READ_FAILURES[found.result](path);

export const writeFailure = (path: string, result: Exclude<Written, "written">): errors.BackendFailure =>
  WRITE_FAILURES[result](path);
