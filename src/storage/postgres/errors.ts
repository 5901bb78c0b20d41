/** Turns errors of Postgres and its connections into ours, whose texts name the remedy. */
import { StorageError, type StorageErrorCode, codeOf } from "../../core/errors.ts";

/** Classes of SQLSTATE, or single codes, with our code and text. */
const KNOWN: ReadonlyArray<[state: RegExp, code: StorageErrorCode, text: string]> = [
  [
    /^(28|3D000)/,
    "storage_not_loaded",
    "Postgres refused the login or has no such database. Check the connection string.",
  ],
  [
    /^(53100|53200)/,
    "storage_full",
    "The Postgres server has no space or memory left. Free some and try again.",
  ],
  [
    /^53300/,
    "storage_busy",
    "The Postgres server has no connection left. Raise max_connections or start fewer servers.",
  ],
  [
    /^08P01/,
    "storage_not_loaded",
    "The server that answered is not Postgres, or is a pooler that refuses connection parameters. Connect to Postgres itself.",
  ],
  [
    /^25006/,
    "storage_readonly",
    "The Postgres server is read-only. Connect to the primary, or allow changes there; it is retried.",
  ],
  [
    /^(57P01|57P02|57P03)/,
    "storage_busy",
    "The Postgres server is starting or stopping, or ended the connection. It is retried.",
  ],
  [
    /^(57014|57P05|25P03)/,
    "storage_busy",
    "The Postgres server cancelled a statement that took too long. It is retried.",
  ],
  [
    /^(42501)/,
    "storage_readonly",
    "The Postgres role lacks permission. Grant it the rights listed in docs/scale.md.",
  ],
  [/^(40|55P03)/, "storage_busy", "Other servers kept changing the same run. Try again."],
  [/^(XX001|XX002)/, "storage_corrupt", "The Postgres server reports damaged data. Restore a backup."],
  [
    /^(08|58|ECONN|ENET|EHOST|EPIPE|ENOTFOUND|ETIMEDOUT|EAI_AGAIN)/,
    "storage_io",
    "The Postgres server cannot be reached. Check the network and the connection string; it is retried.",
  ],
];

/** True if the transaction was rolled back because of another one, and may be repeated. */
export const isRepeatable = (thrown: unknown): boolean => /^(40001|40P01|23505)$/.test(codeOf(thrown) ?? "");

export const isReadOnly = (thrown: unknown): thrown is Error => codeOf(thrown) === "25006";

/** Anything that is not a known failure of Postgres comes back as it is. */
export function postgresError(thrown: unknown): unknown {
  if (thrown instanceof SyntaxError) {
    const text =
      "A row of the database of runs is damaged and cannot be read. It was left untouched: restore a backup.";
    return new StorageError("storage_corrupt", text, { cause: thrown });
  }
  if (thrown instanceof Error && thrown.message.startsWith("Cannot use a pool after")) {
    const text = "This server is stopping and has closed its storage. Try again in a moment.";
    return new StorageError("storage_busy", text, { cause: thrown });
  }
  const code = codeOf(thrown) ?? (isBrokenOff(thrown) ? "08006" : "");
  const known = KNOWN.find(([state]) => state.test(code));
  return known === undefined ? thrown : new StorageError(known[1], known[2], { cause: thrown });
}

/** Recognizes `pg` errors of a connection that ended or fell silent in a query, or could not be had in time. */
export const isBrokenOff = (thrown: unknown): thrown is Error =>
  thrown instanceof Error &&
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered|was closed))/.test(
    thrown.message,
  );
