import { createHash } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Statement } from "better-sqlite3";
import { StorageError } from "../../../core/errors.ts";
import type { GroupCommit } from "../commit.ts";
import { type Database, databaseName } from "../database.ts";
import { type DeletePiece, preparePiece } from "../free-space.ts";

/** The rows that a configuration of LangGraph points to. */
export interface Address {
  threadId?: string;
  namespace: string;
  checkpointId?: string;
}

export function addressOf(config: RunnableConfig): Address {
  const { thread_id, checkpoint_ns, checkpoint_id }: Record<string, unknown> = config.configurable ?? {};
  return {
    ...(isName(thread_id) ? { threadId: String(thread_id) } : {}),
    namespace: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    ...(isName(checkpoint_id) ? { checkpointId: String(checkpoint_id) } : {}),
  };
}

const isName = (value: unknown): value is string | number =>
  (typeof value === "string" && value !== "") || typeof value === "number";

/** A checkpoint of a thread as one text. */
export const keyOf = (thread: string, namespace: string, checkpoint: string | undefined): string =>
  `${thread.length}:${thread}${namespace.length}:${namespace}${checkpoint ?? ""}`;

/** A graph at work on a thread as one text. */
export const graphKey = (thread: string, namespace: string): string => keyOf(thread, namespace, undefined);

/** The thread of a checkpoint named by `keyOf`. */
export function threadOf(key: string): string {
  const start = key.indexOf(":") + 1;
  return key.slice(start, start + Number.parseInt(key, 10));
}

/** Makes the error for an address that lacks a part. */
export const missing = (field: string): Error =>
  new Error(`Cannot store a checkpoint: config.configurable.${field} is missing.`);

/** Who refers to a blob, which is kept as long as anybody does. */
export interface BlobOwner {
  thread: string;
  namespace: string;
}

/** A text is stored once, however many threads and checkpoints it is part of. */
export const BLOB_TABLES = `
CREATE TABLE checkpoint_blobs (
  number INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE checkpoint_blob_uses (
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL,
  blob INTEGER NOT NULL,
  UNIQUE (thread_id, checkpoint_ns, blob)
) STRICT;
CREATE INDEX checkpoint_blob_uses_by_blob ON checkpoint_blob_uses (blob);
CREATE TRIGGER checkpoint_blobs_unused AFTER DELETE ON checkpoint_blob_uses
WHEN NOT EXISTS (SELECT 1 FROM checkpoint_blob_uses WHERE blob = old.blob)
BEGIN
  DELETE FROM checkpoint_blobs WHERE number = old.blob;
END;`;

const USES = "checkpoint_blob_uses";
const BYTES = `(SELECT octet_length(text) FROM checkpoint_blobs WHERE number = blob)`;
/** Selects graphs inside the thread's graph that have nothing stored any more. */
const ENDED = `thread_id = @thread AND checkpoint_ns > ''
  AND NOT EXISTS (SELECT 1 FROM checkpoints AS c
    WHERE c.thread_id = @thread AND c.checkpoint_ns = ${USES}.checkpoint_ns)
  AND NOT EXISTS (SELECT 1 FROM writes AS w
    WHERE w.thread_id = @thread AND w.checkpoint_ns = ${USES}.checkpoint_ns)`;

/** Deletes the references of a thread; its checkpoints must be deleted before. */
export const usesOfThread = (database: Database): DeletePiece =>
  preparePiece(database, USES, BYTES, "thread_id = @thread");

/** Deletes the references of graphs that have ended. */
export const usesOfEndedGraphs = (database: Database): DeletePiece =>
  preparePiece(database, USES, BYTES, ENDED);

/** Texts by the hash of their content. */
export class Blobs {
  readonly #database: Database;
  readonly #commits: GroupCommit;
  readonly #put: Statement<[{ hash: Buffer; text: string }]>;
  readonly #use: Statement<[BlobOwner & { hash: Buffer }]>;
  readonly #get: Statement<[Buffer], string>;

  constructor(database: Database, commits: GroupCommit) {
    this.#database = database;
    this.#commits = commits;
    this.#put = database.prepare("INSERT OR IGNORE INTO checkpoint_blobs (hash, text) VALUES (@hash, @text)");
    this.#use = database.prepare(`
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT @thread, @namespace, number FROM checkpoint_blobs WHERE hash = @hash`);
    this.#get = database
      .prepare<[Buffer], string>("SELECT text FROM checkpoint_blobs WHERE hash = ?")
      .pluck();
  }

  /** Stores the text; gives its name, and a promise of its commit. */
  put(owner: BlobOwner, text: string): { name: string; stored: Promise<void> } {
    const hash = createHash("sha256").update(text).digest();
    const source = graphKey(owner.thread, owner.namespace);
    const stored = this.#commits.run({ bytes: text.length, source }, () => {
      this.#put.run({ hash, text });
      this.#use.run({ ...owner, hash });
    });
    return { name: hash.toString("base64url"), stored };
  }

  get(name: string): string {
    const text = this.#get.get(Buffer.from(name, "base64url"));
    if (text !== undefined) return text;
    throw new StorageError(
      "storage_corrupt",
      `The database ${databaseName(this.#database.name)} lacks a part of a thread. ` +
        `Restore a backup copy, or start a new thread.`,
    );
  }
}
