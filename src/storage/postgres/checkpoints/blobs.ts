import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { StorageError } from "../../../core/errors.ts";
import type { GraphAddress } from "../../checkpoints/address.ts";
import type { BlobStore } from "../../checkpoints/large-values.ts";
import { query } from "../engine.ts";

const PUT_BLOB = `
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content)
SELECT @thread, @namespace, @hash::bytea, @content::bytea FROM quick ON CONFLICT DO NOTHING`;

/** Texts by the hash of their content. */
export class PostgresBlobs implements BlobStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  put({ thread, namespace }: GraphAddress, text: string): { name: string; stored: Promise<void> } {
    const content = Buffer.from(text);
    const hash = createHash("sha256").update(content).digest();
    const stored = query(this.#pool, PUT_BLOB, { thread, namespace, hash, content });
    return { name: hash.toString("base64url"), stored: stored.then(() => undefined) };
  }

  async get(name: string): Promise<string> {
    const hash = Buffer.from(name, "base64url");
    const sql = "SELECT content FROM checkpoint_blobs WHERE hash = @hash LIMIT 1";
    const [row] = await query<{ content: Uint8Array }>(this.#pool, sql, { hash });
    if (row !== undefined) return Buffer.from(row.content).toString();
    throw new StorageError(
      "storage_corrupt",
      "The Postgres schema lacks a part of a thread. Restore a backup, or start a new thread.",
    );
  }
}
