import { DeepAgentError } from "./errors.ts";

/** A service that turns texts into vectors: texts of similar meaning have close vectors. */
export interface Embedder {
  /** `provider:model`. Vectors of different names are never compared. */
  readonly name: string;
  /**
   * One vector for each text, in their order and of one length.
   *
   * @throws {EmbeddingFailure} whatever went wrong
   */
  embed(texts: readonly string[], purpose: EmbeddingPurpose, signal: AbortSignal): Promise<number[][]>;
}

/** A query has somebody waiting for it. */
export type EmbeddingPurpose = "documents" | "query";

/** Texts could not be turned into vectors; the message has the reason and the remedy. */
export class EmbeddingFailure extends DeepAgentError {
  /** True if the service refused these texts; it may accept others. */
  readonly refusesTexts: boolean;

  constructor(code: string, message: string, options: { refusesTexts?: boolean; cause?: unknown } = {}) {
    super(code, message, { cause: options.cause });
    this.refusesTexts = options.refusesTexts ?? false;
  }
}
