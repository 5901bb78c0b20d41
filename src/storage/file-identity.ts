import { type Stats, statSync } from "node:fs";
import { StorageError } from "./errors.ts";

/**
 * What throws once the file that is at `path` now is not there any more. SQLite itself goes on writing to a file
 * that was deleted or moved while it is open, and nobody would ever find what is stored there.
 */
export function assertInPlace(path: string, name: string): () => void {
  const opened = statSync(path);
  return () => {
    if (isSame(opened, statSync(path, { throwIfNoEntry: false }))) return;
    throw new StorageError(
      "storage_directory",
      `The database ${name} is no longer where it was opened: it was deleted, moved or replaced. ` +
        `Put it back, or restart the server.`,
    );
  };
}

const isSame = (one: Stats, other: Stats | undefined): boolean =>
  other !== undefined && one.ino === other.ino && one.dev === other.dev;
