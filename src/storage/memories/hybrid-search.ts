/** Finds memories by their words and by their meaning. */
import { type Embedder, EmbeddingFailure } from "../../core/embedder.ts";
import type { Embeddings, MemoryFinder, TextHit } from "./contracts.ts";
import { EmbeddingWorker } from "./embedding-worker.ts";
import type { NearPassage, PassageIndex } from "./passages.ts";

/** A store that is searched by words, and together with what is near in meaning by reciprocal rank fusion. */
export interface HybridStore {
  searchText(
    namespacePrefix: string[],
    query: string,
    limit: number,
    near?: readonly NearPassage[],
  ): Promise<TextHit[]>;
}

export interface HybridHits {
  hits: TextHit[];
  /** Says which items were not searched by their meaning, and why. */
  note?: string;
}

/** Gives the store for what is at and below a namespace. */
type StoreIn = (namespace: string[]) => HybridStore;

/** The vectors of a store. `indexOf`: those of one model. */
export const storeEmbeddings = (
  storeIn: StoreIn,
  indexOf: (embedder: Embedder) => PassageIndex,
  forgetUnused: Embeddings["forgetUnused"],
): Embeddings => ({
  open(embedder, { worksOn, logger }): MemoryFinder {
    const index = indexOf(embedder);
    const worker = worksOn ? new EmbeddingWorker({ index, log: logger }) : undefined;
    const search = new HybridSearch(storeIn, index);
    return {
      search: (...query) => search.search(...query),
      close: async () => worker?.close(),
    };
  },
  forgetUnused,
});

/** Items that are near in meaning, of which the best are shown. */
const NEAREST = 50;
/** Pause after a failure of the service, in ms. */
const REST_MS = 15_000;

/**
 * Searches a store by words and by meaning. A failure of the embedding
 * service leaves the search by words.
 */
export class HybridSearch {
  readonly #storeIn: StoreIn;
  readonly #index: PassageIndex;
  #failure: { message: string; at: number } | undefined;

  constructor(storeIn: StoreIn, index: PassageIndex) {
    this.#storeIn = storeIn;
    this.#index = index;
  }

  async search(
    namespacePrefix: string[],
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<HybridHits> {
    const store = this.#storeIn(namespacePrefix);
    const near = await this.#nearest(namespacePrefix, query, Math.max(limit, NEAREST), signal);
    if (typeof near === "string") {
      const hits = await store.searchText(namespacePrefix, query, limit);
      return { hits, note: `Searched by words only, not by meaning: ${near}` };
    }
    const hits = await store.searchText(namespacePrefix, query, limit, near);
    const waiting = await this.#index.waiting(COUNTED);
    if (waiting === 0) return { hits };
    const count = waiting === COUNTED ? `${COUNTED} or more` : `${waiting}`;
    return { hits, note: `Memories not yet embedded, which are searched by words only: ${count}.` };
  }

  /** Why there is none, when the service cannot be asked. */
  async #nearest(
    ...[prefix, query, limit, signal]: Parameters<PassageIndex["nearest"]>
  ): Promise<NearPassage[] | string> {
    if (this.#failure !== undefined && performance.now() - this.#failure.at < REST_MS) {
      return this.#failure.message;
    }
    try {
      const near = await this.#index.nearest(prefix, query, limit, signal);
      this.#failure = undefined;
      return near;
    } catch (thrown) {
      if (!(thrown instanceof EmbeddingFailure)) throw thrown;
      // A refused query says nothing about the next one.
      if (!thrown.refusesTexts) this.#failure = { message: thrown.message, at: performance.now() };
      return thrown.message;
    }
  }
}

/** Items are counted up to this number. */
const COUNTED = 1000;
