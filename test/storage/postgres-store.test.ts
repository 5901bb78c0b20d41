// @module-tag long
import { describe } from "vitest";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { memoriesInPostgres } from "../../src/storage/postgres/memories/database.ts";
import { EmbeddingIndex, forgetUnusedModels } from "../../src/storage/memories/embedding-index.ts";
import { type MemoryOptions, StoredMemories } from "../../src/storage/memories/store.ts";
import { embeddingsContract, type KeptVectors } from "./embeddings.contract.ts";
import { storedMemoriesContract } from "./memories/store.contract.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { storeContract } from "./store.contract.ts";

describe("memories in Postgres", { tags: "postgres" }, () => {
  const { url, newSchema, closeAtEnd } = postgresSuite();

  const open = async (options?: MemoryOptions): Promise<StoredMemories> => {
    const one = await openPool({ url: url(), schema: newSchema(), connections: 3 });
    closeAtEnd(() => one.access.pool.end());
    return new StoredMemories(memoriesInPostgres(one.access), options);
  };

  const keptIn = async (schema: string): Promise<KeptVectors> => {
    const { access } = await openPool({ url: url(), schema, connections: 3 });
    closeAtEnd(() => access.pool.end());
    const memories = memoriesInPostgres(access);
    return {
      store: new StoredMemories(memories),
      indexOf: (embedder, clock) => new EmbeddingIndex(memories, embedder, clock),
      forgetUnused: (options) => forgetUnusedModels(memories, options),
      again: () => keptIn(schema),
      count: async (table) =>
        (await access.pool.query<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)).rows[0]?.n ?? 0,
      keyOf: async (id) => {
        const { rows } = await access.pool.query<{ key: string }>(
          "SELECT key FROM store_items WHERE id = $1",
          [id],
        );
        return rows[0]?.key ?? "";
      },
    };
  };

  embeddingsContract("vectors in Postgres", () => keptIn(newSchema()));
  storeContract("as LangGraph's stores", open);
  memoryStoreContract("Postgres", open);
  storedMemoriesContract("Postgres", open);
});
