import type { Clock } from "../../core/clock.ts";

export interface RateLimitOptions {
  /** Requests that a key may make in a minute, and at once after a quiet minute. */
  perMinute: number;
  clock: Clock;
  /** Keys that are remembered at most; whoever was seen longest ago is forgotten first. Default 10,000. */
  keys?: number;
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
  /** In the order of last use. */
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
    this.#remember(key, bucket);
    if (bucket.tokens < 1) return this.#secondsUntilRoom(bucket);
    bucket.tokens -= 1;
    return 0;
  }

  /** What `take` would return, without taking anything. */
  wait(key: string): number {
    const bucket = this.#filled(key);
    return bucket.tokens < 1 ? this.#secondsUntilRoom(bucket) : 0;
  }

  #secondsUntilRoom({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil(((1 - tokens) * MINUTE_MS) / this.#options.perMinute / 1000));
  }

  #filled(key: string): Bucket {
    const { perMinute, clock } = this.#options;
    const now = clock();
    const known = this.#buckets.get(key);
    if (known === undefined) return { tokens: perMinute, filledAt: now };
    const gained = (Math.max(0, now - known.filledAt) * perMinute) / MINUTE_MS;
    return { tokens: Math.min(perMinute, known.tokens + gained), filledAt: now };
  }

  #remember(key: string, bucket: Bucket): void {
    if (!this.#buckets.delete(key) && this.#buckets.size >= SWEEP_SIZE) this.#sweep(bucket.filledAt);
    this.#buckets.set(key, bucket);
    const { keys = 10_000 } = this.#options;
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= keys) return;
      this.#buckets.delete(oldest);
    }
  }

  /** After a minute without requests every bucket is full. */
  #sweep(now: number): void {
    for (const [key, { filledAt }] of this.#buckets) {
      if (now - filledAt < MINUTE_MS) return;
      this.#buckets.delete(key);
    }
  }
}
