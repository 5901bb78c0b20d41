import type { Clock } from "../../core/clock.ts";
import type { Approval } from "../../runs/run.ts";
import { pageMessage } from "../delivery/page-request.ts";
import type { PersonRequest } from "../outcome.ts";

/** Runs remembered at one time; one that is forgotten is asked about again, with a new address. */
const CAPACITY = 1000;

interface Shown {
  key: string;
  request: PersonRequest;
  approvals: ReadonlySet<string>;
  /** The client has opened the page: nothing more is asked of it for these approvals. */
  isOpened: boolean;
}

/**
 * The one question that a task has for clients which open the local page: the same key and address on every
 * poll, until the page was opened or there is something new to decide.
 */
export class TaskPages {
  readonly #clock: Clock;
  readonly #shown = new Map<string, Shown>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What to ask now, by key; nothing when the page is open already, or cannot be served. */
  async ask(
    runId: string,
    pending: readonly Approval[],
    open: () => Promise<string | undefined>,
  ): Promise<Record<string, PersonRequest>> {
    const known = this.#shown.get(runId);
    if (known !== undefined && pending.every(({ id }) => known.approvals.has(id))) {
      return known.isOpened ? {} : { [known.key]: known.request };
    }
    const url = await open();
    if (url === undefined) return {};
    const key = `${runId}@${this.#clock().toString(36)}`;
    const request = { mode: "url" as const, message: pageMessage(runId, pending), url };
    this.#shown.delete(runId);
    this.#shown.set(runId, {
      key,
      request,
      approvals: new Set(pending.map(({ id }) => id)),
      isOpened: false,
    });
    const oldest = this.#shown.keys().next();
    if (this.#shown.size > CAPACITY && oldest.done !== true) this.#shown.delete(oldest.value);
    return { [key]: request };
  }

  /** The client says that it has opened the page; that decides nothing. */
  opened(runId: string, key: string): void {
    const shown = this.#shown.get(runId);
    if (shown?.key === key) shown.isOpened = true;
  }
}
