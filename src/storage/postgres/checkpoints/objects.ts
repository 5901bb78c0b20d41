/** Large texts of checkpoints as objects of an S3 bucket. */
import { randomUUID } from "node:crypto";
import { Semaphore, mapAtMost, memoized } from "../../../core/concurrency.ts";
import { ConfigurationError, StorageError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/logger.ts";
import { S3Connection, s3ErrorName, s3Problem } from "../../../core/s3.ts";
import type { S3Address } from "../../../core/s3-address.ts";
import { type Access, query, translated, unhurried } from "../engine.ts";
import { secret } from "../streams.ts";
import { sql } from "./queries.ts";
import texts from "../../texts.json" with { type: "json" };

export interface ObjectPlace extends S3Address {
  /** Beginning of the keys. Default: none. */
  prefix?: string | undefined;
}

/** Requests at the same time; the SDK has 50 connections. */
const PARALLEL_REQUESTS = 16;
/** The object that names the Postgres that the others belong to. */
const OWNER_MARK = "deepagent-storage-id";

/**
 * The bucket that belongs to a Postgres. An object has a random id of its own, which is never reused. Deleting an
 * unreferenced object therefore cannot hit another writer of the same text, however late the request arrives.
 *
 * Throws StorageError: every failure may pass or be fixed, so runs wait.
 */
export class LargeObjects {
  readonly #access: Access;
  readonly #prefix: string;
  readonly #bucket: string;
  readonly #connection: S3Connection;
  readonly #slots = new Semaphore(PARALLEL_REQUESTS);

  constructor(access: Access, { prefix = "", ...address }: ObjectPlace) {
    this.#access = access;
    this.#prefix = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
    this.#bucket = address.bucket;
    this.#connection = new S3Connection("storageS3", address);
  }

  async put(id: string, content: Uint8Array): Promise<void> {
    const object = { Body: content, ContentLength: content.byteLength, ContentType: "application/json" };
    await this.#send(id, ({ client, sdk }, at, options) =>
      client.send(new sdk.PutObjectCommand({ ...at, ...object }), options),
    );
  }

  /** `undefined` when it is missing or has another length. */
  async get(id: string, bytes: number): Promise<Uint8Array | undefined> {
    return this.#send(id, async ({ client, sdk }, at, options) => {
      try {
        const { ContentLength, Body } = await client.send(new sdk.GetObjectCommand(at), options);
        if (ContentLength === bytes) return await Body?.transformToByteArray();
        // Ends the transfer. The body is a stream of Node.
        if (Body !== undefined && "destroy" in Body) Body.destroy();
        return undefined;
      } catch (thrown) {
        if (s3ErrorName(thrown) === "NoSuchKey") return undefined;
        throw thrown;
      }
    });
  }

  async delete(id: string): Promise<void> {
    await this.#send(id, ({ client, sdk }, at, options) =>
      client.send(new sdk.DeleteObjectCommand(at), options),
    );
  }

  /** Makes sure, once, that the bucket belongs to this Postgres. */
  readonly assertOurs = memoized(() => this.#check());

  async #check(): Promise<void> {
    const own = Buffer.from(await secret(this.#access, OWNER_MARK)).toString("base64url");
    const isUsed = await hasObjects(this.#access);
    const found = await this.get(OWNER_MARK, own.length).catch((error: unknown) => {
      // Without the right to list, S3 denies that an object is missing: writing the mark then shows more.
      if (isUsed || !(error instanceof StorageError) || error.code === "storage_io") throw error;
      return undefined;
    });
    const mark = found && Buffer.from(found).toString();
    if (mark === own) return;
    if (isUsed) throw new StorageError("storage_directory", texts.otherBucket);
    if (mark !== undefined) throw new StorageError("storage_directory", texts.bucketTaken);
    await this.put(OWNER_MARK, Buffer.from(own));
  }

  /** Writes, reads and deletes an object. */
  async tryOut(): Promise<void> {
    const id = randomUUID();
    const content = Buffer.from(id);
    await this.put(id, content);
    const found = await this.get(id, content.length);
    await this.delete(id);
    if (found === undefined || !content.equals(found))
      throw new StorageError("storage_directory", texts.bucketLosesValues);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #send<T>(
    id: string,
    request: (
      connection: Awaited<ReturnType<S3Connection["open"]>>,
      at: { Bucket: string; Key: string },
      options: { abortSignal: AbortSignal },
    ) => Promise<T>,
  ): Promise<T> {
    return this.#slots.run(async () => {
      const at = { Bucket: this.#bucket, Key: this.#prefix + id };
      try {
        const connection = await this.#connection.open();
        return await request(connection, at, { abortSignal: AbortSignal.timeout(15_000) });
      } catch (thrown) {
        if (thrown instanceof ConfigurationError) throw thrown;
        const { text, isOutage } = s3Problem(thrown);
        const message = `Large values cannot be kept in the S3 bucket that storageS3 names: ${text}. It is retried.`;
        throw new StorageError(isOutage ? "storage_io" : "storage_directory", message, { cause: thrown });
      }
    });
  }
}

async function hasObjects(access: Access): Promise<boolean> {
  const any = "SELECT 1 FROM checkpoint_objects UNION ALL SELECT 1 FROM deleted_objects LIMIT 1";
  return (await query(access, any)).length > 0;
}

/** @throws ConfigurationError when large values are or would be in another place than the configured one */
export async function assertPlace(access: Access, objects: LargeObjects | undefined, logger: Logger) {
  if (objects === undefined) {
    if (await hasObjects(access)) throw new ConfigurationError("STORAGE_S3", NO_PLACE);
    return;
  }
  try {
    await objects.assertOurs();
  } catch (thrown) {
    if (!(thrown instanceof StorageError)) throw thrown;
    if (thrown.code === "storage_directory") throw new ConfigurationError("STORAGE_S3", thrown.message);
    // The first value that is stored there or read finds out.
    logger.warn("storage.s3_not_checked", { error: thrown });
  }
}

/** Bytes of the objects that something refers to. */
export const BYTES_IN_OBJECTS = `(
  SELECT coalesce(sum(bytes), 0)::bigint FROM checkpoint_objects AS o
  WHERE EXISTS (SELECT 1 FROM checkpoint_blobs WHERE object = o.id))`;

/** Deletes objects that nothing has referred to for a day. */
export async function sweepObjects(access: Access, objects: LargeObjects, signal: AbortSignal) {
  await translated(() => access.pool.query(unhurried(sql("mark unused objects"))));
  await translated(() => access.pool.query(unhurried(sql("give objects up"))));
  while (!signal.aborted) {
    const rows = await query<{ id: string }>(access, "SELECT id FROM deleted_objects LIMIT 100");
    if (rows.length === 0) return;
    await objects.assertOurs();
    const ids = rows.map(({ id }) => id);
    await mapAtMost(PARALLEL_REQUESTS, ids, (id) => objects.delete(id));
    await query(access, "DELETE FROM deleted_objects WHERE id = ANY(@ids::uuid[])", { ids });
  }
}

export const NO_PLACE = texts.noBucket;
