import { createHash, randomUUID } from "node:crypto";
import { Semaphore } from "../../../core/concurrency.ts";
import { StorageError } from "../../../core/errors.ts";
import type { BlobStore } from "../../checkpoints/large-values.ts";
import { type Access, query } from "../engine.ts";
import { type LargeObjects, NO_PLACE } from "./objects.ts";
import { sql } from "./queries.ts";
import texts from "../../texts.json" with { type: "json" };

/** Values of this size are objects in S3 if the server has a bucket, in bytes. */
const BYTES_OF_OBJECT = 64 * 1024;
/** Values of one thread that are read at the same time. */
export const PARALLEL_READS = 8;

type BlobRow = { content: Uint8Array | null; object: string | null; bytes: number | null };

const sha256 = (content: Uint8Array): Buffer => createHash("sha256").update(content).digest();

/** Serialised values by the hash of their content. Without `objects` all of them are rows. */
export function postgresBlobs(access: Access, objects?: LargeObjects): BlobStore {
  // Values that are looked up at the same time: others need connections, too.
  const lookUps = new Semaphore(4);
  return {
    put: async ({ thread, namespace }, content) => {
      const hash = sha256(content);
      const blob = { thread, namespace, hash };
      if (objects === undefined || content.length < BYTES_OF_OBJECT) {
        await query(access, sql("put blob"), { ...blob, content });
        return hash;
      }
      await objects.assertOurs();
      const object = randomUUID();
      const made = await query(access, sql("begin object"), { ...blob, object, bytes: content.length });
      if (made.length === 0) return hash;
      await objects.put(object, content);
      await query(access, sql("put blob"), { ...blob, object });
      return hash;
    },
    get: async (hash) => {
      const [row] = await lookUps.run(() => query<BlobRow>(access, sql("blob"), { hash }));
      if (row === undefined) throw new StorageError("storage_corrupt", texts.missingValue);
      if (row.content !== null) return row.content;
      if (objects === undefined) throw new StorageError("storage_directory", NO_PLACE);
      await objects.assertOurs();
      // A row without content has an object, and that a number of bytes.
      const content = await objects.get(row.object ?? "", row.bytes ?? 0);
      if (content !== undefined && sha256(content).equals(hash)) return content;
      throw new StorageError("storage_corrupt", texts.missingPart);
    },
  };
}
