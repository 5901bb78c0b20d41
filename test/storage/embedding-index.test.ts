import { join } from "node:path";
import { EmbeddingIndex, forgetUnusedModels } from "../../src/storage/memories/embedding-index.ts";
import { memoriesInSqlite } from "../../src/storage/sqlite/memories/database.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { embeddingsContract, type KeptVectors } from "./embeddings.contract.ts";
import { opened, temporaryFolder } from "./support.ts";

function keptIn(file: string): KeptVectors {
  const database = opened(file);
  const store = createStore(database);
  const memories = memoriesInSqlite(database);
  const key = database.prepare<[number], string>("SELECT key FROM store_items WHERE id = ?").pluck();
  return {
    store,
    indexOf: (embedder, clock) => new EmbeddingIndex(memories, embedder, clock),
    forgetUnused: (options) => forgetUnusedModels(memories, options),
    again: async () => keptIn(file),
    count: async (table) => database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0,
    keyOf: async (id) => key.get(id) ?? "",
  };
}

embeddingsContract("vectors in SQLite", async () => keptIn(join(temporaryFolder(), "store.db")));
