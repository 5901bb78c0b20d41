import type { Environment } from "../agent/models/choose.ts";
import { createEmbedder } from "../agent/models/embeddings.ts";
import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal } from "../runs/run.ts";
import type { MemorySearch } from "../runs/service.ts";
import type { Database } from "../storage/sqlite/database.ts";
import { EmbeddingIndex, forgetUnusedModels } from "../storage/sqlite/memories/embedding-index.ts";
import { EmbeddingWorker } from "../storage/sqlite/memories/embedding-worker.ts";
import { HybridSearch } from "../storage/sqlite/memories/hybrid-search.ts";
import type { SqliteStore } from "../storage/sqlite/memories/store.ts";
import { searchMemoriesTool } from "../tools/search-memories.ts";
import type { ToolSpec } from "../tools/tool.ts";
import { memoryNamespace } from "./file-tree.ts";
import { MEMORIES_MOUNT } from "./settings.ts";

/** The memories of all principals. */
export interface Memories {
  search(principal: Principal, query: string, limit: number): Promise<MemorySearch>;
  /** Tools with which the principal's agents find memories, besides the tools for files. */
  toolsOf(principal: Principal): ToolSpec[];
  /** Deletes expired items and the vectors of models no longer used; returns the number of items. */
  sweep(signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** Time after which the vectors of an unused model are deleted. */
const KEPT_VECTORS_MS = 30 * 86_400_000;

/** Searched by words and, as configured, by meaning. `keepsHouse`: whether this process embeds them. */
export function openMemories(
  { config, env, logger, keepsHouse = true }: MemorySettings,
  { store, database }: { store: SqliteStore; database: Database },
): Memories {
  const { embeddings: model } = config.memories;
  const index =
    model === undefined ? undefined : new EmbeddingIndex(database, createEmbedder({ model, env }));
  const worker = index && keepsHouse ? new EmbeddingWorker({ index, log: logger }) : undefined;
  const search = new HybridSearch(store, index);
  const closed = new AbortController();
  const find = async (principal: Principal, query: string, limit: number): Promise<MemorySearch> => {
    const found = await search.search(memoryNamespace(principal), query, limit, closed.signal);
    return {
      ...found,
      hits: found.hits.map(({ key, snippet, score }) => ({ path: MEMORIES_MOUNT + key, snippet, score })),
    };
  };
  return {
    search: find,
    // Without vectors, grep finds as much and needs no line in the prompt.
    toolsOf: (principal) =>
      index === undefined ? [] : [searchMemoriesTool((query, limit) => find(principal, query, limit))],
    async sweep(signal) {
      await forgetUnusedModels(database, { usedBefore: systemClock() - KEPT_VECTORS_MS, signal });
      return store.sweepExpiredItems(signal);
    },
    async close() {
      closed.abort();
      await worker?.close();
    },
  };
}

interface MemorySettings {
  config: Pick<Config, "memories">;
  env: Environment;
  logger: Logger;
  keepsHouse?: boolean;
}
