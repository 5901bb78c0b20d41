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
