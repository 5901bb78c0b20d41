import type { ChangeFeed } from "./change-feed.ts";
import type { Principal, RunEvent, RunHead } from "./run.ts";
import type { RunStore } from "./stores/run-store.ts";

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
