import { createHash } from "node:crypto";
import type { Statement } from "../api.ts";
import { StorageError } from "../../../core/errors.ts";
import type { GroupCommit } from "../commit.ts";
import { type Database, databaseName } from "../database.ts";
import { type GraphAddress, graphKey } from "../../checkpoints/address.ts";
import type { BlobStore } from "../../checkpoints/large-values.ts";
import { type DeletePiece, preparePiece } from "../free-space.ts";

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
export class Blobs implements BlobStore {
  readonly atOnce = 1;
  readonly #database: Database;
  readonly #commits: GroupCommit;
  readonly #put: Statement<[{ hash: Buffer; text: string }]>;
  readonly #use: Statement<[GraphAddress & { hash: Buffer }]>;
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

  put(owner: GraphAddress, text: string): { name: string; stored: Promise<void> } {
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
