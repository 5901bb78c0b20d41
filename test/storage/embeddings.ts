import { onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import { type Embedder, EmbeddingFailure, type EmbeddingPurpose } from "../../src/core/embedder.ts";
import { EmbeddingWorker } from "../../src/storage/memories/embedding-worker.ts";
import type { EmbeddingIndex } from "../../src/storage/memories/embedding-index.ts";
import { meaningOf } from "../support/wire-server-embeddings.ts";

/** A service in this process, which the test can take down. */
export class TestEmbedder implements Embedder {
  readonly name: string;
  /** All texts of documents it was asked for. */
  readonly asked: string[] = [];
  failure: EmbeddingFailure | undefined;
  /** What of a text's meaning the vectors tell; more dimensions for another model. */
  vectorOf: (text: string) => number[] = meaningOf;
  /** Called before each answer. */
  before: (texts: readonly string[], purpose: EmbeddingPurpose) => Promise<void> | void = () => undefined;

  constructor(name = "test:meaning") {
    this.name = name;
  }

  async embed(texts: readonly string[], purpose: EmbeddingPurpose): Promise<number[][]> {
    if (purpose === "documents") this.asked.push(...texts);
    await this.before(texts, purpose);
    if (this.failure !== undefined) throw this.failure;
    return texts.map((text) => this.vectorOf(text));
  }
}

export const DOWN: EmbeddingFailure = new EmbeddingFailure("model_unavailable", "The service is down.");
export const REFUSED: EmbeddingFailure = new EmbeddingFailure("model_error", "This text is refused.", {
  refusesTexts: true,
});

/** A worker on `index` that the test's end closes. */
export function startWorker(index: EmbeddingIndex): EmbeddingWorker {
  const worker = new EmbeddingWorker({ index, log: silentLogger, lookMs: 5 });
  onTestFinished(() => worker.close());
  return worker;
}

/** Embeds all that waits. */
export async function embedAll(
  kept: { indexOf(embedder: Embedder): EmbeddingIndex },
  embedder: Embedder,
): Promise<EmbeddingIndex> {
  const index = kept.indexOf(embedder);
  const worker = startWorker(index);
  await untilEmbedded(index);
  await worker.close();
  return index;
}

export async function untilEmbedded(index: EmbeddingIndex): Promise<void> {
  while ((await index.waiting(1)) > 0) await new Promise((resolve) => setTimeout(resolve, 2));
}
