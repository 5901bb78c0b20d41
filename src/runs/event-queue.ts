/** Stores the events of an agent at work in their order. */
import type { EventSink, StepEvent } from "../agent/agent.ts";

/** Time in which events gather that nothing waits for, in ms: those of a quick call are stored together. */
const GATHER_MS = 5;

/** Events of one stretch of work. Once some of them could not be stored, no more are. */
export class EventQueue implements EventSink {
  readonly #store: (events: readonly StepEvent[]) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #waiting: StepEvent[] = [];
  #stored: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** Calls `onFailure` if `store` rejects. */
  constructor(store: (events: readonly StepEvent[]) => Promise<void>, onFailure: (error: unknown) => void) {
    this.#store = store;
    this.#onFailure = onFailure;
  }

  tell(event: StepEvent): void {
    this.#waiting.push(event);
    this.#timer ??= setTimeout(() => void this.stored(), GATHER_MS);
  }

  stored(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stored = this.#stored.then(() => {
      const events = this.#waiting.splice(0);
      return events.length === 0 ? undefined : this.#store(events);
    });
    this.#stored.catch(this.#onFailure);
    return this.#stored;
  }
}
