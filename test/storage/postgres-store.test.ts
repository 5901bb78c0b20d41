// @module-tag long
import { describe } from "vitest";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { PostgresStore, type PostgresStoreOptions } from "../../src/storage/postgres/memories/store.ts";
import {
  PostgresEmbeddingIndex,
  forgetUnusedModels,
} from "../../src/storage/postgres/memories/embedding-index.ts";
import { embeddingsContract, type KeptVectors } from "./embeddings.contract.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { storeContract } from "./store.contract.ts";

describe("PostgresStore", { tags: "postgres" }, () => {
  const { url, newSchema, closeAtEnd } = postgresSuite();

  const open = async (options?: PostgresStoreOptions): Promise<PostgresStore> => {
    const one = await openPool({ url: url(), schema: newSchema(), connections: 3 });
    closeAtEnd(() => one.access.pool.end());
    return new PostgresStore(one.access, options);
  };

  const keptIn = async (schema: string): Promise<KeptVectors> => {
    const { access } = await openPool({ url: url(), schema, connections: 3 });
    closeAtEnd(() => access.pool.end());
    return {
      store: new PostgresStore(access),
      indexOf: (embedder, clock) => new PostgresEmbeddingIndex(access, embedder, clock),
      forgetUnused: (options) => forgetUnusedModels(access, options),
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
});
