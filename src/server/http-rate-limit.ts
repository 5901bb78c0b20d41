import type { Clock } from "../core/clock.ts";

export interface RateLimitOptions {
  /** Requests that a key may make in a minute, and at once after a quiet minute. */
  perMinute: number;
  clock: Clock;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

const MINUTE_MS = 60_000;
/** Keys after which full buckets, which are as good as none, are dropped. */
const SWEEP_SIZE = 1000;

/** A token bucket for each key. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one request; 0 when there was room, else the whole seconds until there is. */
  take(key: string): number {
    const bucket = this.#filled(key);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return 0;
    }
    return Math.max(1, Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / this.#options.perMinute / 1000));
  }

  #filled(key: string): Bucket {
    const { perMinute, clock } = this.#options;
    const now = clock();
    const known = this.#buckets.get(key);
    if (known === undefined) {
      if (this.#buckets.size >= SWEEP_SIZE) this.#sweep(now);
      const bucket = { tokens: perMinute, filledAt: now };
      this.#buckets.set(key, bucket);
      return bucket;
    }
    const gained = (Math.max(0, now - known.filledAt) * perMinute) / MINUTE_MS;
    known.tokens = Math.min(perMinute, known.tokens + gained);
    known.filledAt = now;
    return known;
  }

  /** After a minute without requests every bucket is full. */
  #sweep(now: number): void {
    for (const [key, { filledAt }] of this.#buckets) {
      if (now - filledAt >= MINUTE_MS) this.#buckets.delete(key);
    }
  }
}
