import type { Database } from "../storage/database.ts";
import type { Logger } from "../core/logger.ts";
import { isLocked } from "../storage/errors.ts";

export interface PulseOptions {
  database: Database;
  log: Logger;
  pollMs: number;
  heartbeatMs: number;
  /** Another connection to the database has committed something. */
  onForeignChange(): void;
  /** Not called again before it is through. */
  onHeartbeat(): Promise<void>;
}

/** The clockwork of a service: looks for other processes' writes, and beats. Keeps no process alive. */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #timers: NodeJS.Timeout[];
  #version: unknown;
  #beat: Promise<void> | undefined;

  constructor(options: PulseOptions) {
    this.#options = options;
    this.#version = this.#readVersion();
    this.#timers = [
      setInterval(() => this.#poll(), options.pollMs).unref(),
      setInterval(() => this.#startBeat(), options.heartbeatMs).unref(),
    ];
  }

  /** Stops, and waits for the beat under way: its database may be closed then. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#beat;
  }

  #poll(): void {
    try {
      const version = this.#readVersion();
      if (version === this.#version) return;
      this.#version = version;
      this.#options.onForeignChange();
    } catch (error) {
      this.#failed("poll", error);
    }
  }

  #startBeat(): void {
    this.#beat ??= this.#options
      .onHeartbeat()
      .catch((error: unknown) => this.#failed("heartbeat", error))
      .finally(() => (this.#beat = undefined));
  }

  /** Changes when another connection commits, and only then. */
  #readVersion(): unknown {
    return this.#options.database.pragma("data_version", { simple: true });
  }

  /** A locked or full database now may be well at the next beat. */
  #failed(what: string, error: unknown): void {
    this.#options.log[isLocked(error) ? "debug" : "warn"]("runs.pulse_failed", { what, error });
  }
}
