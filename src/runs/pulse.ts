import type { Database } from "../storage/database.ts";
import type { Logger } from "../core/logger.ts";

export interface PulseOptions {
  database: Database;
  log: Logger;
  pollMs: number;
  heartbeatMs: number;
  /** Another connection to the database has committed something. */
  onForeignChange(): void;
  onHeartbeat(): void;
}

/** The clockwork of a service: looks for other processes' writes, and beats. Keeps no process alive. */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #timers: NodeJS.Timeout[];
  #version: unknown;

  constructor(options: PulseOptions) {
    this.#options = options;
    this.#version = this.#readVersion();
    this.#timers = [
      setInterval(() => this.#guarded("poll", () => this.#poll()), options.pollMs).unref(),
      setInterval(() => this.#guarded("heartbeat", () => options.onHeartbeat()), options.heartbeatMs).unref(),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #poll(): void {
    const version = this.#readVersion();
    if (version === this.#version) return;
    this.#version = version;
    this.#options.onForeignChange();
  }

  /** Changes when another connection commits, and only then. */
  #readVersion(): unknown {
    return this.#options.database.pragma("data_version", { simple: true });
  }

  /** A locked or full database now may be well at the next beat. */
  #guarded(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log.warn("runs.pulse_failed", { what, error });
    }
  }
}
