import { join } from "node:path";
import { EmbeddingIndex, forgetUnusedModels } from "../../src/storage/sqlite/memories/embedding-index.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { embeddingsContract, type KeptVectors } from "./embeddings.contract.ts";
import { opened, temporaryFolder } from "./support.ts";

function keptIn(file: string): KeptVectors {
  const database = opened(file);
  const store = createStore(database);
  const key = database.prepare<[number], string>("SELECT key FROM store_items WHERE id = ?").pluck();
  return {
    store,
    indexOf: (embedder, clock) => new EmbeddingIndex(database, embedder, clock),
    forgetUnused: (options) => forgetUnusedModels(database, options),
    again: async () => keptIn(file),
    count: async (table) => database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0,
    keyOf: async (id) => key.get(id) ?? "",
  };
}

embeddingsContract("vectors in SQLite", async () => keptIn(join(temporaryFolder(), "store.db")));
