/** Turns errors of SQLite and the file system into ours, whose texts name the remedy. */
import { StorageError, type StorageErrorCode, errorMessage, codeOf } from "../../core/errors.ts";
import errors from "./errors.json" with { type: "json" };
import { isSqliteError, missingModule, repairCommand } from "./driver.ts";
import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/** The error for one of SQLite's primary result codes in the database `name`, if it has a remedy of its own. */
function knownError(result: string, name: string, options?: { cause: unknown }): StorageError | undefined {
  // Extended codes continue the primary one: SQLITE_IOERR_WRITE, SQLITE_BUSY_SNAPSHOT.
  const known = errors.find(({ sqlite }) => result === sqlite || result.startsWith(`${sqlite}_`));
  const text = known?.text.replaceAll("{name}", () => name);
  // The type checker knows no unions of JSON.
  return known && new StorageError(known.code as StorageErrorCode, text ?? "", options);
}

/** Makes the error for a file that lost a part which SQLite itself does not miss. */
export const damagedError = (name: string): unknown => knownError("SQLITE_CORRUPT", name);

/**
 * Turns an error of parsing a stored text into one about a damaged row; returns others unchanged.
 * SQLite does not notice this damage, because the page itself is intact. `database` completes "a row of …".
 */
export function unreadable(thrown: unknown, database: string): unknown {
  if (!(thrown instanceof SyntaxError)) return thrown;
  return new StorageError("storage_corrupt", fill(texts.damagedRow, database), { cause: thrown });
}

/** Makes the error for a driver that cannot be loaded; the first connection finds that out. */
function notLoaded(thrown: unknown): StorageError | undefined {
  const reason = missingModule(thrown);
  if (reason === undefined) return undefined;
  return new StorageError(
    "storage_not_loaded",
    fill(texts.noSqlite, reason, process.version, repairCommand(), process.platform, process.arch),
    { cause: thrown },
  );
}

/** Makes the error for a database of another program. */
export const foreignError = (name: string): StorageError =>
  new StorageError("storage_not_a_database", fill(texts.foreignDatabase, name));

/** Turns errors of SQLite about the database `name` into ours. Returns others unchanged. */
export function storageError(thrown: unknown, name: string): unknown {
  if (!isSqliteError(thrown)) return notLoaded(thrown) ?? thrown;
  // Every JSON in a file is our own.
  if (thrown.message === "malformed JSON") return unreadable(new SyntaxError(thrown.message), name);
  return knownError(thrown.code, name, { cause: thrown }) ?? thrown;
}

/** True if only another connection's lock is in the way. */
export const isBusy = (thrown: unknown): boolean =>
  isSqliteError(thrown) && /^SQLITE_(BUSY|LOCKED)/.test(thrown.code);

/** Makes the error for a directory that cannot hold the database. `hasLinks`: there are links on its path. */
export function directoryError(name: string, thrown: unknown, hasLinks: boolean): StorageError {
  const code = codeOf(thrown) ?? "";
  const reasons: Readonly<Record<string, string>> = texts.directoryErrors;
  const known = reasons[code === "ENOENT" && hasLinks ? "ENOENT by a link" : code];
  const message = fill(texts.unusableDirectory, name, known ?? (code === "" ? errorMessage(thrown) : code));
  return new StorageError("storage_directory", message, { cause: thrown });
}
