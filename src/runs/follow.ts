import { ownTurn } from "../core/concurrency.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { JournalPage } from "./ports.ts";
import type { RunEvent } from "./events.ts";
import { type LiveText, isBeginning } from "./live-texts.ts";
import { type Principal, type RunHead, isFinal } from "./run.ts";

/** Signals that a run may have changed, without the change itself. */
export interface Subscription {
  /** Resolves after a change since the last call, or when `signal` aborts or the feed closes. */
  changed(signal: AbortSignal): Promise<void>;
  /** True if there was a change since the last call; that change then counts as reported. */
  take(): boolean;
  close(): void;
}

interface Listener {
  dirty: boolean;
  wake: (() => void) | undefined;
}

/** No run has this id. */
const ANY_RUN = "";

const textKey = (runId: string): string => `${runId} text`;

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

  /** The agent of a run wrote something. */
  notifyText(runId: string): void {
    for (const listener of this.#listeners.get(textKey(runId)) ?? []) mark(listener);
  }

  /** Subscribes to changes of one run, or of every run. `withText` adds the text that its agent writes. */
  subscribe(runId: string = ANY_RUN, withText = false): Subscription {
    const listener: Listener = { dirty: false, wake: undefined };
    const keys = withText ? [runId, textKey(runId)] : [runId];
    for (const key of keys) this.#listeners.set(key, (this.#listeners.get(key) ?? new Set()).add(listener));
    return {
      changed: (signal) => this.#next(listener, signal),
      take: () => {
        const { dirty } = listener;
        listener.dirty = false;
        return dirty;
      },
      close: () => {
        for (const key of keys) {
          this.#listeners.get(key)?.delete(listener);
          if (this.#listeners.get(key)?.size === 0) this.#listeners.delete(key);
        }
      },
    };
  }

  /** Looks at each change of a run until `look` finds something, `signal` aborts or the feed closes. */
  async wait<T>(runId: string, signal: AbortSignal, look: () => Promise<T | undefined>) {
    const subscription = this.subscribe(runId);
    try {
      for (;;) {
        const found = await look();
        if (found !== undefined || signal.aborted || this.#closed) return found;
        await subscription.changed(signal);
      }
    } finally {
      subscription.close();
    }
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
  runs: Pick<RunRepository["read"], "journal" | "list">;
  feed: ChangeFeed;
}

/**
 * Shares the newest events of followed runs: each change is read once. A follower that is behind reads its own pages.
 */
export class SharedTails {
  readonly #sources: Sources;
  readonly #tails = new Map<string, Tail>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  open(principal: Principal, runId: string) {
    const key = JSON.stringify([principal, runId]);
    const tail = this.#tails.get(key) ?? new Tail(principal, runId, this.#sources);
    this.#tails.set(key, tail);
    tail.readers += 1;
    tail.isStale = true;
    return {
      /** The run as it was at the newest change, and at most `PAGE` events after `seq`. `undefined`: no such run. */
      after: (seq: number) => tail.after(seq),
      close: (): void => {
        tail.readers -= 1;
        if (tail.readers > 0) return;
        tail.news.close();
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      },
    };
  }
}

class Tail {
  readers = 0;
  /** Makes the next reader look again. */
  isStale = true;
  readonly news: Subscription;
  readonly #look: (after: number) => Promise<JournalPage | undefined>;
  #looking: Promise<void> = Promise.resolve();
  #run: RunHead | undefined;
  /** Without a gap, the newest last. */
  #events: readonly RunEvent[] = [];
  /** Sequence numbers: `#events` begins after the first and ends with the second. */
  #start: number | undefined;
  #end = 0;

  constructor(principal: Principal, runId: string, { runs, feed }: Sources) {
    this.#look = (after) => runs.journal(principal, runId, after, PAGE);
    this.news = feed.subscribe(runId);
  }

  async after(seq: number): Promise<JournalPage | undefined> {
    if (this.news.take() || this.isStale) {
      this.isStale = false;
      this.#looking = this.#looking.then(() => this.#update(seq));
    }
    await this.#looking;
    const run = this.#run;
    if (run === undefined || this.#start === undefined) return undefined;
    // The journal may have been shortened, because the run is being deleted: looks again.
    if (seq < this.#start) return this.#look(seq);
    const events = this.#events.slice(seq - this.#start);
    if (run.status === "input_required") {
      // A run may wait for days: whoever has not read these yet reads them from the database.
      this.#events = [];
      this.#start = this.#end;
    }
    return { run, events };
  }

  /** Reads the new events. A failure rejects the waiting readers; the next reader tries again. */
  async #update(from: number): Promise<void> {
    try {
      // Many followers may be woken at once.
      await ownTurn();
      const after = this.#start === undefined ? from : this.#end;
      let page = await this.#look(after);
      this.#run = page?.run;
      if (page === undefined) return;
      const oldest = page.run.lastSeq - PAGE;
      if (this.#start === undefined || this.#end < oldest) {
        this.#start = Math.max(from, oldest, 0);
        this.#end = this.#start;
        this.#events = [];
        if (this.#start !== after) page = (await this.#look(this.#start)) ?? page;
      }
      if (page.events.length === 0) return;
      this.#end += page.events.length;
      this.#start = Math.max(this.#start ?? 0, this.#end - PAGE);
      this.#events = [...this.#events, ...page.events].slice(this.#start - this.#end);
    } catch (error) {
      this.isStale = true;
      this.#looking = Promise.resolve();
      throw error;
    }
  }
}

/**
 * `after`: the number of the newest event that is known. Default 0. `text`: the newest text whose beginning is known,
 * if texts are followed as well.
 */
export type Following = { after?: number; signal: AbortSignal; text?: string | undefined };

interface TextReaders<Text> {
  reader(runId: string, from?: string): () => readonly Text[];
}

/**
 * Yields a run's journal from `after`, as it grows. New events are read once for all followers of the run; one that
 * is behind reads its own pages. A follower delays neither the run nor another follower. `texts` adds the text that
 * its agent writes: each text after all that happened before it, and before the event of its model call.
 */
export async function* follow<Text extends LiveText>(
  principal: Principal,
  runId: string,
  { after = 0, signal, text }: Following,
  { feed, tails, texts }: { feed: ChangeFeed; tails: SharedTails; texts?: TextReaders<Text> },
): AsyncGenerator<RunEvent | Text, void, undefined> {
  const subscription = feed.subscribe(runId, texts !== undefined);
  const written = texts?.reader(runId, text);
  /** Texts that wait for the journal, by id, the oldest first. */
  const held = new Map<string, Text>();
  const hold = (): void => written?.().forEach((one) => held.set(one.id, one));
  const tail = tails.open(principal, runId);
  let last = after;
  try {
    while (!signal.aborted && !feed.closed) {
      const read = yield* page(tail, last, signal, { held, hold });
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
async function* page<Text extends LiveText>(
  tail: Pick<Tail, "after">,
  after: number,
  signal: AbortSignal,
  { held, hold }: { held: Map<string, Text>; hold: () => void },
) {
  const take = (choose: (texts: Text[]) => Text[]): Text[] => {
    const texts = choose([...held.values()]);
    for (const { id } of texts) held.delete(id);
    return texts;
  };
  hold();
  // The journal, which is read afterwards, has all that happened before these texts.
  const begun = new Set(held.keys());
  const look = await tail.after(after);
  let last = after;
  // A principal learns nothing about a run that it cannot see.
  if (look === undefined) return undefined;
  // A text is whole when the journal has the event of its model call.
  hold();
  for (const event of look.events) {
    if (signal.aborted) return undefined;
    // Before the event of a model call come its own text and older ones, before the end all.
    const isOwn = ({ text }: Text): boolean =>
      event.kind === "model_called" && isBeginning(event.data.text, text);
    const isEnd = /^run_(completed|failed|cancelled)$/.test(event.kind);
    yield* take((texts) => (isEnd ? texts : texts.slice(0, texts.findIndex(isOwn) + 1)));
    last = event.seq;
    yield event;
  }
  const isFull = look.events.length === PAGE;
  if (!isFull && !signal.aborted) yield* take((texts) => texts.filter(({ id }) => begun.has(id)));
  return { last, isFull, isFinal: isFinal(look.run.status) };
}

/** The principal's runs that are started from now on, in this process and in others. */
export async function* followStarts(principal: Principal, signal: AbortSignal, { runs, feed }: Sources) {
  const subscription = feed.subscribe();
  try {
    let newest = (await runs.list(principal, { limit: 1 }))[0]?.id;
    while (!signal.aborted && !feed.closed) {
      await subscription.changed(signal);
      if ((await runs.list(principal, { limit: 1 }))[0]?.id === newest) continue;
      // Announces the newest of the runs that started at one moment.
      const started = await runs.list(principal, { limit: 50 });
      const known = started.findIndex(({ id }) => id === newest);
      newest = started[0]?.id;
      yield* started.slice(0, known === -1 ? started.length : known).toReversed();
    }
  } finally {
    subscription.close();
  }
}
