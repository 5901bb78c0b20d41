import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { EmbeddingFailure } from "../../core/embedder.ts";
import { errorMessage, isTransient } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { EmbeddingIndex } from "./embedding-index.ts";
import { type EmbeddedItem, type UnembeddedItem, cutPassages } from "./passages.ts";

const PASSAGES = 64;

export interface EmbeddingWorkerOptions {
  index: EmbeddingIndex;
  log: Logger;
  /** Milliseconds between two looks at the queue. Default 2000. */
  lookMs?: number;
}

/**
 * Embeds the items of a store in the background, old ones and new ones. While the service fails, items stay in the
 * queue, and the pauses between tries get longer. Closing puts items under way back into the queue.
 */
export class EmbeddingWorker {
  readonly #index: EmbeddingIndex;
  readonly #log: Logger;
  readonly #lookMs: number;
  readonly #closed = new AbortController();
  readonly #ended: Promise<void>;
  #failures = 0;
  #told: string | undefined;

  constructor({ index, log, lookMs = 2000 }: EmbeddingWorkerOptions) {
    this.#index = index;
    this.#log = log;
    this.#lookMs = lookMs;
    this.#ended = this.#work();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#ended;
  }

  async #work(): Promise<void> {
    const { signal } = this.#closed;
    let touchAt = 0;
    // The first pause comes before any work, because a start has more urgent work to do.
    while (await delay(this.#pause(), true, { signal, ref: false }).catch(() => false)) {
      try {
        if (performance.now() >= touchAt) {
          // Interval between two marks of the model as in use, in ms.
          touchAt = performance.now() + 3_600_000;
          await this.#index.touch();
        }
        while (!signal.aborted && (await this.#embedSome()));
        if (this.#failures > 0) this.#log.info("memories.embedding_resumed", {});
        this.#failures = 0;
        this.#told = undefined;
      } catch (thrown) {
        if (!signal.aborted) this.#failed(thrown);
      }
    }
  }

  #pause(): number {
    if (this.#failures === 0) return this.#lookMs;
    // After a failure, in milliseconds; each pause is twice the one before.
    return Math.min(2000 * 2 ** (this.#failures - 1), 300_000);
  }

  /** Embeds some items; false when the queue is empty. */
  async #embedSome(): Promise<boolean> {
    const items = await this.#index.claim(16);
    if (items.length === 0) return false;
    try {
      await this.#embed(items);
    } catch (thrown) {
      await this.#index.release(items);
      throw thrown;
    }
    // A local service may answer within the same turn of the event loop.
    await nextTurn();
    return true;
  }

  /** Embeds all items at once, and one by one when the service refuses that. */
  async #embed(items: readonly UnembeddedItem[]): Promise<void> {
    try {
      await this.#index.store(await this.#embedded(items));
    } catch (thrown) {
      if (!(thrown instanceof EmbeddingFailure && thrown.refusesTexts)) throw thrown;
      if (items.length > 1) for (const item of items) await this.#embed([item]);
      else {
        // A service that refuses this too refuses everything, and no item is dropped for that.
        await this.#index.embedder.embed(["memory"], "documents", this.#closed.signal);
        await this.#index.giveUp(items);
        this.#log.warn("memories.embedding_refused", { items: items.length, error: thrown.message });
      }
    }
  }

  async #embedded(items: readonly UnembeddedItem[]): Promise<EmbeddedItem[]> {
    const passages = items.map(({ key, text }) => cutPassages(key, text));
    const all = passages.flat();
    const vectors: number[][] = [];
    for (let first = 0; first < all.length; first += PASSAGES) {
      const texts = all.slice(first, first + PASSAGES);
      vectors.push(...(await this.#index.embedder.embed(texts, "documents", this.#closed.signal)));
    }
    let taken = 0;
    return items.map((item, index) => {
      const own = vectors.slice(taken, taken + (passages[index]?.length ?? 0));
      taken += own.length;
      return { item, vectors: own };
    });
  }

  #failed(thrown: unknown): void {
    this.#failures += 1;
    const text = errorMessage(thrown);
    const pauseMs = this.#pause();
    // A repeated failure is logged once; a bug is logged with its stack.
    if (text === this.#told) return;
    this.#told = text;
    const isKnown = thrown instanceof EmbeddingFailure || isTransient(thrown);
    this.#log.warn("memories.embedding_failed", { error: isKnown ? text : thrown, pauseMs });
  }
}
