/** Finds memories by their words and by their meaning. */
import type { Clock } from "../../core/clock.ts";
import { type Embedder, EmbeddingFailure } from "../../core/embedder.ts";
import type { Logger } from "../../core/logger.ts";
import type { MemoryDatabase, TextHit } from "./contracts.ts";
import { EmbeddingIndex, forgetUnusedModels } from "./embedding-index.ts";
import { EmbeddingWorker } from "./embedding-worker.ts";
import type { NearPassage } from "./passages.ts";
import type { StoredMemories } from "./store.ts";

/** Returns the store for a namespace and those below it. */
type ScopedStore = (namespace: string[]) => Pick<StoredMemories, "searchText">;

export type Embeddings = ReturnType<typeof storeEmbeddings>;

export const storeEmbeddings = (memories: MemoryDatabase, storeIn: ScopedStore, clock?: Clock) => ({
  /** `worksOn`: true if this process embeds new items. */
  open(embedder: Embedder, { worksOn, logger }: { worksOn: boolean; logger: Logger }) {
    const index = new EmbeddingIndex(memories, embedder, clock);
    const worker = worksOn ? new EmbeddingWorker({ index, log: logger }) : undefined;
    return { search: hybridSearch(storeIn, index), close: async () => worker?.close() };
  },
  /** Deletes the vectors of models that were not used since. */
  forgetUnused: (options: { usedBefore: number; signal: AbortSignal }) =>
    forgetUnusedModels(memories, options),
});

/** Items are counted up to this number. */
const COUNTED = 1000;

/** Searches by words and by meaning. A failure of the embedding service leaves the search by words. */
export function hybridSearch(storeIn: ScopedStore, index: EmbeddingIndex) {
  let failure: { message: string; at: number } | undefined;
  /** Returns the reason if the service cannot be reached. */
  const nearest = async (
    ...query: Parameters<EmbeddingIndex["nearest"]>
  ): Promise<NearPassage[] | string> => {
    if (failure !== undefined && performance.now() - failure.at < 15_000) return failure.message;
    try {
      const near = await index.nearest(...query);
      failure = undefined;
      return near;
    } catch (thrown) {
      if (!(thrown instanceof EmbeddingFailure)) throw thrown;
      // The next query may succeed after a refused one.
      if (!thrown.refusesTexts) failure = { message: thrown.message, at: performance.now() };
      return thrown.message;
    }
  };
  return async (
    namespacePrefix: string[],
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ hits: TextHit[]; note?: string }> => {
    const store = storeIn(namespacePrefix);
    const near = await nearest(namespacePrefix, query, Math.max(limit, 50), signal);
    if (typeof near === "string") {
      const hits = await store.searchText(namespacePrefix, query, limit);
      return { hits, note: `Searched by words only, not by meaning: ${near}` };
    }
    const hits = await store.searchText(namespacePrefix, query, limit, near);
    const waiting = await index.waiting(COUNTED);
    if (waiting === 0) return { hits };
    const count = waiting === COUNTED ? `${COUNTED} or more` : `${waiting}`;
    return { hits, note: `Memories not yet embedded, which are searched by words only: ${count}.` };
  };
}
