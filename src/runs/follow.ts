import type { Logger } from "../core/logger.ts";
import { isLocked } from "../core/errors.ts";
import type { Database } from "../storage/sqlite/database.ts";
import type { RunStore } from "../storage/sqlite/runs/run-store.ts";
import { type Principal, type RunEvent, type RunHead, isFinal } from "./run.ts";

/** Tells when a run may have changed; not what changed. */
export interface Subscription {
  /** Resolves after a change since the last call, or when `signal` aborts or the feed closes. */
  changed(signal: AbortSignal): Promise<void>;
  /** Whether there was a change since the last call; counts as having been told of it. */
  take(): boolean;
  close(): void;
}

interface Listener {
  dirty: boolean;
  wake: (() => void) | undefined;
}

/** No run has this id. */
const ANY_RUN = "";

/** News of changed runs for those who follow them in this process. A slow follower only sees less news. */
export class ChangeFeed {
  readonly #listeners = new Map<string, Set<Listener>>();
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  notify(runId: string): void {
    for (const key of [runId, ANY_RUN]) for (const listener of this.#listeners.get(key) ?? []) mark(listener);
  }

  /** Something changed, perhaps in another process; nobody knows which run. */
  notifyAll(): void {
    for (const listeners of this.#listeners.values()) for (const listener of listeners) mark(listener);
  }

  /** News of one run, by default of every run. */
  subscribe(runId: string = ANY_RUN): Subscription {
    const listener: Listener = { dirty: false, wake: undefined };
    const listeners = this.#listeners.get(runId) ?? new Set();
    this.#listeners.set(runId, listeners.add(listener));
    return {
      changed: (signal) => this.#next(listener, signal),
      take: () => {
        const { dirty } = listener;
        listener.dirty = false;
        return dirty;
      },
      close: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(runId) === listeners) this.#listeners.delete(runId);
      },
    };
  }

  /** Wakes everyone; nothing waits any more from here on. */
  close(): void {
    this.#closed = true;
    this.notifyAll();
  }

  #next(listener: Listener, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        listener.wake = undefined;
        listener.dirty = false;
        resolve();
      };
      if (listener.dirty || this.#closed || signal.aborted) return wake();
      listener.wake = wake;
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

function mark(listener: Listener): void {
  listener.dirty = true;
  listener.wake?.();
}

/** Events of one page, and those of a run that are kept while it is followed. */
export const PAGE = 200;

interface Sources {
  store: Pick<RunStore, "head" | "events">;
  feed: ChangeFeed;
}

/** A run and a page of its journal, read after it: when the run is final, the journal holds nothing more. */
export interface Look {
  run: RunHead;
  events: readonly RunEvent[];
}

/** One follower's use of a tail. */
export interface TailReader {
  /** The run as it was at the newest change, and at most `PAGE` events after `seq`. `undefined`: no such run. */
  after(seq: number): Look | undefined;
  close(): void;
}

/**
 * The newest events of the runs that are followed in this process: whatever their number, followers of a run
 * cost two statements for each change of it. One that has fallen behind reads its own pages from the database.
 */
export class SharedTails {
  readonly #sources: Sources;
  readonly #tails = new Map<string, Tail>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  /** Looks at the database at once, for this principal and from `after` on. */
  open(principal: Principal, runId: string, after: number): TailReader {
    const key = JSON.stringify([principal, runId]);
    const tail = this.#tails.get(key) ?? new Tail(principal, runId, this.#sources);
    this.#tails.set(key, tail);
    tail.readers += 1;
    tail.look(after);
    return {
      after: (seq) => tail.after(seq),
      close: () => {
        tail.readers -= 1;
        if (tail.readers > 0) return;
        tail.close();
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      },
    };
  }
}

class Tail {
  readers = 0;
  readonly #principal: Principal;
  readonly #runId: string;
  readonly #store: Sources["store"];
  readonly #news: ReturnType<ChangeFeed["subscribe"]>;
  #run: RunHead | undefined;
  /** Without a gap, the newest last. */
  #events: readonly RunEvent[] = [];
  /** Sequence numbers: `#events` begins after the first and ends with the second. */
  #start: number | undefined;
  #end = 0;

  constructor(principal: Principal, runId: string, { store, feed }: Sources) {
    this.#principal = principal;
    this.#runId = runId;
    this.#store = store;
    this.#news = feed.subscribe(runId);
  }

  look(from: number): void {
    this.#news.take();
    this.#run = this.#store.head(this.#principal, this.#runId);
    if (this.#run === undefined) return;
    const oldest = this.#run.lastSeq - PAGE;
    if (this.#start === undefined || this.#end < oldest) {
      this.#start = Math.max(from, oldest, 0);
      this.#end = this.#start;
      this.#events = [];
    }
    const fresh = this.#store.events.page(this.#runId, this.#end, PAGE);
    if (fresh.length === 0) return;
    this.#end += fresh.length;
    this.#start = Math.max(this.#start, this.#end - PAGE);
    this.#events = [...this.#events, ...fresh].slice(this.#start - this.#end);
  }

  after(seq: number): Look | undefined {
    if (this.#news.take()) this.look(seq);
    const run = this.#run;
    if (run === undefined || this.#start === undefined) return undefined;
    if (seq >= this.#start) {
      const events = this.#events.slice(seq - this.#start);
      if (run.status === "input_required") this.#forget();
      return { run, events };
    }
    // Of a run that is being forgotten, nobody takes what is left of the journal for the whole.
    if (this.#store.head(this.#principal, this.#runId) === undefined) return undefined;
    return { run, events: this.#store.events.page(this.#runId, seq, PAGE) };
  }

  /** A run may wait for days: whoever has not read these yet reads them from the database. */
  #forget(): void {
    this.#events = [];
    this.#start = this.#end;
  }

  close(): void {
    this.#news.close();
  }
}

/** Runs started at one moment that are told, the newest of them. */
const STARTED_AT_ONCE = 50;

interface FollowSources {
  store: RunStore;
  feed: ChangeFeed;
}

/**
 * A run's journal from `after` on, as it grows. What is new is read once for all who follow the run; one that
 * is behind reads its own pages. None holds up the run or another follower.
 */
export async function* follow(
  principal: Principal,
  runId: string,
  { after = 0, signal }: { after?: number; signal: AbortSignal },
  { feed, tails }: { feed: ChangeFeed; tails: SharedTails },
): AsyncGenerator<RunEvent, void, undefined> {
  const subscription = feed.subscribe(runId);
  const tail = tails.open(principal, runId, after);
  let last = after;
  try {
    while (!signal.aborted && !feed.closed) {
      const read = yield* page(tail, last, signal);
      if (read === undefined) return;
      last = read.last;
      if (read.isFull) continue;
      if (read.isFinal) return;
      await subscription.changed(signal);
    }
  } finally {
    tail.close();
    subscription.close();
  }
}

/** Passes new events on, in a frame of its own: a follower that waits for more holds no event. */
async function* page(
  tail: TailReader,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, { last: number; isFull: boolean; isFinal: boolean } | undefined, undefined> {
  const look = tail.after(after);
  let last = after;
  for (const event of look?.events ?? []) {
    if (signal.aborted) return undefined;
    last = event.seq;
    yield event;
  }
  return look && { last, isFull: look.events.length === PAGE, isFinal: isFinal(look.run.status) };
}

/** The principal's runs that are started from now on, in this process and in others. */
export async function* followStarts(
  principal: Principal,
  signal: AbortSignal,
  { store, feed }: FollowSources,
): AsyncGenerator<RunHead, void, undefined> {
  const subscription = feed.subscribe();
  let newest = store.list(principal, 1)[0]?.id;
  try {
    while (!signal.aborted && !feed.closed) {
      await subscription.changed(signal);
      if (store.list(principal, 1)[0]?.id === newest) continue;
      const runs = store.list(principal, STARTED_AT_ONCE);
      const known = runs.findIndex(({ id }) => id === newest);
      newest = runs[0]?.id;
      yield* runs.slice(0, known === -1 ? runs.length : known).toReversed();
    }
  } finally {
    subscription.close();
  }
}

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
