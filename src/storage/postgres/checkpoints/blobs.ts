import { createHash, randomUUID } from "node:crypto";
import { Semaphore } from "../../../core/concurrency.ts";
import { StorageError } from "../../../core/errors.ts";
import type { GraphAddress } from "../../checkpoints/address.ts";
import type { BlobStore } from "../../checkpoints/large-values.ts";
import type { Access } from "../access.ts";
import { query } from "../engine.ts";
import { type LargeObjects, NO_PLACE } from "./objects.ts";

/** Values of this size are objects in S3 if the server has a bucket, in bytes. */
const BYTES_OF_OBJECT = 64 * 1024;
/** Values of one thread that are read at the same time. */
export const AT_ONCE = 8;
/** Values that are looked up at the same time: others need connections, too. */
const LOOK_UPS = 4;

const PUT_BLOB = `
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
SELECT @thread, @namespace, @hash::bytea, @content::bytea, @object::uuid FROM quick ON CONFLICT DO NOTHING`;

/**
 * Refers to a value that the thread has already. Otherwise notes an object that will be made: before it is, and on the
 * disk, so that none is forgotten. Threads share no objects, so that one that was lost harms no later thread.
 */
const BEGIN_OBJECT = `
WITH known AS (
  INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
  SELECT @thread, @namespace, hash, content, object FROM checkpoint_blobs
  WHERE hash = @hash::bytea AND thread_id = @thread LIMIT 1 ON CONFLICT DO NOTHING
)
INSERT INTO checkpoint_objects (id, bytes)
SELECT @object::uuid, @bytes::bigint
WHERE NOT EXISTS (SELECT 1 FROM checkpoint_blobs WHERE hash = @hash::bytea AND thread_id = @thread)
RETURNING id`;

const GET = `
SELECT content, object, bytes FROM checkpoint_blobs LEFT JOIN checkpoint_objects ON id = object
WHERE hash = @hash ORDER BY made_at DESC NULLS FIRST LIMIT 1`;

interface BlobRow {
  content: Uint8Array | null;
  object: string | null;
  bytes: number | null;
}

/** Serialised values by the hash of their content. */
export class PostgresBlobs implements BlobStore {
  readonly #access: Access;
  readonly #objects: LargeObjects | undefined;
  readonly #lookUps = new Semaphore(LOOK_UPS);

  /** Without `objects` all values are rows. */
  constructor(access: Access, objects?: LargeObjects) {
    this.#access = access;
    this.#objects = objects;
  }

  async put({ thread, namespace }: GraphAddress, content: Uint8Array): Promise<Uint8Array> {
    const hash = createHash("sha256").update(content).digest();
    const blob = { thread, namespace, hash };
    await (this.#objects === undefined || content.length < BYTES_OF_OBJECT
      ? query(this.#access, PUT_BLOB, { ...blob, content })
      : this.#putObject(this.#objects, blob, content));
    return hash;
  }

  async #putObject(
    objects: LargeObjects,
    blob: GraphAddress & { hash: Uint8Array },
    content: Uint8Array,
  ): Promise<void> {
    await objects.assertOurs();
    const object = randomUUID();
    const made = await query(this.#access, BEGIN_OBJECT, { ...blob, object, bytes: content.length });
    if (made.length === 0) return;
    await objects.put(object, content);
    await query(this.#access, PUT_BLOB, { ...blob, object });
  }

  async get(hash: Uint8Array): Promise<Uint8Array> {
    const [row] = await this.#lookUps.run(() => query<BlobRow>(this.#access, GET, { hash }));
    if (row !== undefined) return row.content ?? this.#getObject(row, hash);
    throw new StorageError(
      "storage_corrupt",
      "The Postgres schema lacks a part of a thread. Restore a backup, or start a new thread.",
    );
  }

  async #getObject({ object, bytes }: BlobRow, hash: Uint8Array): Promise<Uint8Array> {
    if (this.#objects === undefined) throw new StorageError("storage_directory", NO_PLACE);
    await this.#objects.assertOurs();
    // A row without content has an object, and that a number of bytes.
    const content = await this.#objects.get(object ?? "", bytes ?? 0);
    if (content !== undefined && createHash("sha256").update(content).digest().equals(hash)) return content;
    throw new StorageError(
      "storage_corrupt",
      "A part of a thread is missing in the S3 bucket that storageS3 names, or was changed there. Restore a backup of the bucket, or start a new thread.",
    );
  }
}
