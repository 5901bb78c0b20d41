/** Ends answers of models that fall silent. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { STREAM_BROKEN } from "./failure.ts";

/** Limits on waiting for an answer, in milliseconds. */
export interface WaitingLimits {
  /** For its beginning. */
  requestMs: number;
  /** For each further piece. */
  idleMs: number;
}

/** A streamed answer ended before it was complete. */
export class ModelStreamBrokenError extends Error {
  override readonly name: string = STREAM_BROKEN;
}

/** A streamed answer fell silent. */
export class ModelSilentError extends ModelStreamBrokenError {
  readonly silentMs: number;

  constructor(silentMs: number) {
    super("nothing arrived in the middle of an answer");
    this.silentMs = silentMs;
  }
}

/** Factor on the longest silence: signs of life without content may continue for that long. */
const KEPT_WARM = 3;

/** Adds up the time in which a stream brought signs of life only. */
export class KeepAlives {
  readonly #mostMs: number;
  #waitedMs = 0;

  constructor(idleMs: number) {
    this.#mostMs = KEPT_WARM * idleMs;
  }

  /** Notes a part of the stream for which the reader waited. @throws ModelSilentError after too many without content. */
  note(part: string, waitedMs: number): void {
    this.#waitedMs = isKeepAlive(part) ? this.#waitedMs + waitedMs : 0;
    if (this.#waitedMs >= this.#mostMs) throw new ModelSilentError(this.#waitedMs);
  }
}

/** True for comments and pings of event streams, and for empty lines. */
export const isKeepAlive = (part: string): boolean =>
  part
    .split(/\r\n|\n|\r/)
    .every((line) => /^(?::|event: ?ping$|data: ?(?:$|\{ ?"type": ?"ping"))|^$/.test(line));

/**
 * Gives a model the limits by itself, for packages that take no `fetch`. Its streams bring no signs of life, so that
 * the longest silence counts between two pieces.
 */
export function limitSilence(model: BaseChatModel, { requestMs, idleMs }: WaitingLimits): void {
  const stream = model._streamResponseChunks.bind(model);
  model._streamResponseChunks = async function* (messages, options, runManager) {
    const own = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal;
    const pieces = stream(messages, { ...options, signal }, runManager);
    try {
      for (let limitMs = requestMs; ; limitMs = idleMs) {
        const isFirst = limitMs === requestMs;
        const late = (): Error => (isFirst ? new Error("Request timed out.") : new ModelSilentError(idleMs));
        const { done, value } = await within(limitMs, pieces.next(), late);
        if (done === true) return;
        yield value;
      }
    } finally {
      own.abort();
    }
  };
}

/** Waits for `work` at most so long. @throws the error of `late` then. */
async function within<T>(milliseconds: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  work.catch(() => undefined); // after the time nobody waits for it
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}
