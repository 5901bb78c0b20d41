import { setImmediate as nextTurn } from "node:timers/promises";
import type { Database } from "./database.ts";
import { isLocked, mayPass } from "./errors.ts";
import { whenUnlocked } from "./lock-wait.ts";

/** Statements that belong together. What they throw undoes them and is told to who asked for them. */
type Job = () => void;

/** What is known of a job before it runs. */
interface Facts {
  /** Roughly what it writes. */
  bytes: number;
  /** Whose it is: the steps of one agent have one source. */
  source: string;
}

interface Entry extends Facts {
  job: Job;
  resolve(): void;
  reject(thrown: unknown): void;
}

/** Most of one transaction: longer ones would hold up the event loop. */
const JOBS_PER_COMMIT = 48;
const BYTES_PER_COMMIT = 2_000_000;
/** How many turns of the event loop a commit waits at most, while each brings something of another agent. */
const TURNS = 16;

/**
 * Commits what is asked for in quick succession in one transaction, in the order it came: a commit costs as
 * much as writing twenty results, and with many agents at work would take much of their time.
 */
export class GroupCommit {
  readonly #waiting: Entry[] = [];
  /** How many of those that wait were part of a commit that failed: each is tried alone. */
  #alone = 0;
  #isCommitting = false;
  readonly #database: Database;
  readonly #runAll: (entries: readonly Entry[]) => void;

  constructor(database: Database) {
    this.#database = database;
    const runAll = database.transaction((entries: readonly Entry[]) => {
      for (const { job } of entries) job();
    });
    this.#runAll = (entries) => runAll.immediate(entries);
  }

  /** Resolves once the job is committed. */
  run(facts: Facts, job: Job): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, ...facts, resolve, reject });
      if (!this.#isCommitting) void this.#commitAll();
    });
  }

  /**
   * Commits at once what waits, but for what failed before. Throws when another connection holds the lock:
   * then all of it still waits.
   */
  flush(): void {
    while (this.#waiting.length > 0 && this.#alone === 0) this.#commitNext();
  }

  async #commitAll(): Promise<void> {
    this.#isCommitting = true;
    for (;;) {
      await this.#gathered();
      if (this.#waiting.length === 0) break;
      try {
        await whenUnlocked(this.#database, () => this.#commitNext());
      } catch (thrown) {
        // The lock was held for too long.
        this.#alone = 0;
        for (const entry of this.#waiting.splice(0)) entry.reject(thrown);
      }
    }
    this.#isCommitting = false;
  }

  /**
   * Waits for the agents at work, however slow they are. A single agent's steps are committed as they come: what
   * waits cannot be packed yet.
   */
  async #gathered(): Promise<void> {
    const sources = new Set<string>();
    let known = 1;
    for (let turn = 0; turn < TURNS; turn += 1) {
      await nextTurn();
      for (const { source } of this.#waiting) sources.add(source);
      if (sources.size <= known || this.#waiting.length >= JOBS_PER_COMMIT) return;
      known = sources.size;
    }
  }

  #commitNext(): void {
    if (this.#waiting.length === 0) return; // a flush was faster
    const isAlone = this.#alone > 0;
    const entries = this.#takeNext();
    try {
      this.#runAll(entries);
    } catch (thrown) {
      if (isLocked(thrown)) {
        this.#waiting.unshift(...entries);
        if (isAlone) this.#alone += 1;
        throw thrown;
      }
      // What no file takes now is not tried again one by one: each could wait for a lock in vain.
      if (entries.length === 1 || mayPass(thrown)) for (const entry of entries) entry.reject(thrown);
      else this.#tryAlone(entries);
      return;
    }
    for (const entry of entries) entry.resolve();
  }

  /** Nothing of them was kept. One at a time, each fails or succeeds for reasons of its own. */
  #tryAlone(entries: readonly Entry[]): void {
    this.#waiting.unshift(...entries);
    this.#alone = entries.length;
  }

  #takeNext(): Entry[] {
    if (this.#alone > 0) {
      this.#alone -= 1;
      return this.#waiting.splice(0, 1);
    }
    let [count, bytes] = [0, 0];
    while (count < Math.min(this.#waiting.length, JOBS_PER_COMMIT) && bytes < BYTES_PER_COMMIT) {
      bytes += this.#waiting[count]?.bytes ?? 0;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}
