import { createHash } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { type Database, databaseName } from "./database.ts";
import { StorageError, storageError } from "./errors.ts";

/**
 * One step of a component's schema. Once released it never changes; the next change is a new step. It is made in
 * a transaction: either all of it happens or nothing.
 */
export type Migration = {
  /** Counts from 1 without gaps. */
  version: number;
  name: string;
} & (
  | /** Statements. */ { sql: string }
  | Rewrite
  | /** What SQL alone cannot do. It yields between its pieces. */ {
      up(database: Database): Generator<void> | void;
    }
);

/** Of Node, what functions need that a thread has the sources of. */
export interface NodeParts {
  createHash: typeof createHash;
  inflateRawSync: typeof inflateRawSync;
  deflateRawSync: typeof deflateRawSync;
}

/** What is done to rows that are too large for one turn of the event loop. */
export interface Rewrite {
  rewrite(this: void, database: Database, node: NodeParts): void;
  /** The functions it calls: these, too, call no others. */
  uses: readonly ((...args: never[]) => unknown)[];
}

export const NODE: NodeParts = { createHash, inflateRawSync, deflateRawSync };

/** What a thread can do. */
export type Apart = Extract<Migration, { sql: string } | Rewrite>;

/** What a step that threw is told as. */
export function failure(
  database: Database,
  component: string,
  step: Migration,
  thrown: unknown,
): StorageError {
  const known = storageError(thrown, databaseName(database.name));
  if (known instanceof StorageError) return known;
  return new StorageError(
    "storage_migration",
    `The database ${databaseName(database.name)} could not be brought to version ${step.version} ` +
      `of ${component} (${step.name}). Nothing was changed; please report this.`,
    { cause: thrown },
  );
}
