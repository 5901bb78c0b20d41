import { isAbortError } from "../../core/errors.ts";
import * as errors from "../errors.ts";
import { codeOf } from "./jail.ts";

/** What a missing thing is called: the file asked for, or the directory. */
export type Expected = "file" | "directory" | "path";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; try again",
  ENFILE: "too many files are open; try again",
  ENAMETOOLONG: "the name is too long",
  EBUSY: "it changed while it was opened; try again",
  ENOTEMPTY: "files were added to it meanwhile; try again",
  EALIAS: "Windows takes this name for something else; choose another one",
  ENOROOT: "the root directory is no longer there; it must be made again",
  EIO: "the device reports an input/output error",
};

/** The failure value for what a file system call threw; what is not a file system error is thrown on. */
export function failureOf(thrown: unknown, path: string, expected: Expected): errors.BackendFailure {
  if (isAbortError(thrown)) return errors.operationAborted(path);
  const code = codeOf(thrown);
  switch (code) {
    case undefined:
      throw thrown;
    case "ENOENT":
    case "ENOTDIR":
    case "EHIDDEN":
      return missing(path, expected);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return errors.permissionDenied(path);
    case "EISDIR":
      return errors.isDirectory(path);
    case "EOUTSIDE":
      return errors.symlinkNotAllowed(path, "outside_root");
    case "ELOOP":
      return errors.symlinkNotAllowed(path, "symlink");
    case "ENXIO":
    case "ENODEV":
      return errors.notRegularFile(path);
    default:
      return errors.ioFailure(path, REASONS[code] ?? `the system reports ${code}`);
  }
}

/** As `failureOf`, for changes: a parent that is a file, or a hidden place, is the reason, not a missing file. */
export function writeFailureOf(thrown: unknown, path: string): errors.BackendFailure {
  const code = codeOf(thrown);
  if (code === "ENOTDIR") return errors.parentIsFile(path);
  return code === "EHIDDEN" ? errors.permissionDenied(path) : failureOf(thrown, path, "file");
}

function missing(path: string, expected: Expected): errors.BackendFailure {
  if (expected === "file") return errors.fileNotFound(path);
  return expected === "directory" ? errors.directoryNotFound(path) : errors.pathNotFound(path);
}
