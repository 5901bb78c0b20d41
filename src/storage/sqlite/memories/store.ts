import { readOptions } from "../../../core/options.ts";
import { type MemoryOptions, StoredMemories } from "../../memories/store.ts";
import type { Database } from "../database.ts";
import { migrate } from "../migrations.ts";
import { memoriesInSqlite, STORE_MIGRATIONS } from "./database.ts";
import { type VectorIndexConfig, withVectors } from "./vectors.ts";

export interface StoreOptions extends MemoryOptions {
  /** Makes `search` with a query find items by their meaning instead of their words. */
  index?: VectorIndexConfig;
}

export type SqliteStore = StoredMemories;

/** Makes a store over `database`, and its tables when they are missing. The caller closes the database. */
export function createStore(database: Database, options: StoreOptions = {}): SqliteStore {
  const { index, ...given } = readOptions("createStore", options, {
    clock: "a function",
    ttl: "a plain object",
    index: "a plain object",
  });
  migrate(database, "store", STORE_MIGRATIONS);
  const memories = memoriesInSqlite(database);
  return new StoredMemories(index === undefined ? memories : withVectors(memories, index), given);
}
