/** Turns errors of Postgres and its connections into ours, whose texts name the remedy. */
import { StorageError, type StorageErrorCode, codeOf } from "../../core/errors.ts";
/** Classes of SQLSTATE, or single codes, with our code and text; the first match counts. */
import errors from "./errors.json" with { type: "json" };
import texts from "../texts.json" with { type: "json" };

/** True if the transaction was rolled back because of another one, and may be repeated. */
export const isRepeatable = (thrown: unknown): boolean => /^(40001|40P01|23505)$/.test(codeOf(thrown) ?? "");

export const isReadOnly = (thrown: unknown): thrown is Error => codeOf(thrown) === "25006";

/** Anything that is not a known failure of Postgres comes back as it is. */
export function postgresError(thrown: unknown): unknown {
  if (thrown instanceof SyntaxError) {
    return new StorageError("storage_corrupt", texts.damagedPostgresRow, { cause: thrown });
  }
  if (thrown instanceof Error && thrown.message.startsWith("Cannot use a pool after")) {
    return new StorageError("storage_busy", texts.closedStorage, { cause: thrown });
  }
  const code = codeOf(thrown) ?? (isBrokenOff(thrown) ? "08006" : "");
  const known = errors.find(({ states }) => states.split(" ").some((state) => code.startsWith(state)));
  // The type checker knows no unions of JSON.
  return known ? new StorageError(known.code as StorageErrorCode, known.text, { cause: thrown }) : thrown;
}

/** Recognizes `pg` errors of a connection that ended or fell silent in a query, or could not be had in time. */
export const isBrokenOff = (thrown: unknown): thrown is Error =>
  thrown instanceof Error &&
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered|was closed))/.test(
    thrown.message,
  );
