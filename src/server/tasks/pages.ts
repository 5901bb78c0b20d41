import type { Clock } from "../../core/clock.ts";
import type { Approval } from "../../runs/run.ts";
import { pageMessage } from "../delivery/page-request.ts";
import type { PersonRequest } from "../outcome.ts";

/** Runs remembered at one time; one that is forgotten is asked about again, with a new address. */
const CAPACITY = 1000;

interface Shown {
  /** When it was asked under its present key. */
  at: number;
  request: PersonRequest;
  approvals: ReadonlySet<string>;
  /** The client has opened the page: nothing more is asked of it for these approvals. */
  isOpened: boolean;
  /** A sentence about it for the status message. */
  note?: string;
}

/** The questions to ask now, by key, and the status message for them. */
export interface PageQuestion {
  requests: Record<string, PersonRequest>;
  note?: string | undefined;
}

const OPENED = "The page was opened: the decision is made there.";
const CLOSED = "Asked again: the page was not opened, so the approval is still open.";

/**
 * The one question that a task has for clients which open the local page: the same key and address on every
 * poll, until the page was opened or there is something new to decide. A client that did not open it is asked
 * under a new key.
 */
export class TaskPages {
  readonly #clock: Clock;
  readonly #shown = new Map<string, Shown>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nothing is asked when the page is open already, or cannot be served. */
  async ask(
    runId: string,
    pending: readonly Approval[],
    open: () => Promise<string | undefined>,
  ): Promise<PageQuestion> {
    const known = this.#shown.get(runId);
    if (known !== undefined && pending.every(({ id }) => known.approvals.has(id))) {
      const { at, request, isOpened, note } = known;
      return { requests: isOpened ? {} : { [keyOf(runId, at)]: request }, note };
    }
    const url = await open();
    if (url === undefined) return { requests: {} };
    const request = { mode: "url" as const, message: pageMessage(runId, pending), url };
    const at = this.#laterThan(known);
    this.#shown.delete(runId);
    this.#shown.set(runId, {
      at,
      request,
      approvals: new Set(pending.map(({ id }) => id)),
      isOpened: false,
    });
    const oldest = this.#shown.keys().next();
    if (this.#shown.size > CAPACITY && oldest.done !== true) this.#shown.delete(oldest.value);
    return { requests: { [keyOf(runId, at)]: request } };
  }

  /** The client says whether it has opened the page; that decides nothing. */
  answered(runId: string, key: string, isOpened: boolean): void {
    const shown = this.#shown.get(runId);
    if (shown === undefined || key !== keyOf(runId, shown.at)) return;
    shown.isOpened = isOpened;
    shown.note = isOpened ? OPENED : CLOSED;
    if (!isOpened) shown.at = this.#laterThan(shown);
  }

  /** No key comes twice in a run. */
  #laterThan(shown: Shown | undefined): number {
    return Math.max(this.#clock(), (shown?.at ?? 0) + 1);
  }
}

const keyOf = (runId: string, at: number): string => `${runId}@${at.toString(36)}`;
