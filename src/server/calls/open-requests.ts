/** Remembers the open requests to the client of a connection. */
import type { RunRequest } from "../../runs/run.ts";

/** The outcome of an answer that a client sent back for a form. */
export type Taken =
  | { kind: "decided" }
  /** It stays open and is not asked again in this call. */
  | { kind: "left"; /** The client answered by itself. */ isUnread?: true }
  /** The person answered, but not in a way that can be carried out. */
  | { kind: "again"; problem: string };

type WaitingKey = Pick<RunRequest, "runId" | "id">;

export const keyOf = ({ runId, id }: WaitingKey): string => `${runId}/${id}`;

/** Key of a question to the client. It contains the time, so that no key is used twice in a run. */
export const questionKey = (id: string, at: number): string => `${id}@${at.toString(36)}`;

export interface OpenForm {
  /** The outcome of the answer, once it is carried out; `undefined`: none came, for whatever reason. */
  readonly taken: Promise<Taken | undefined>;
  close(): void;
}

/**
 * Keeps the questions that were pushed to a client and not answered yet. They outlive the call that asked: an
 * answer that comes after the call's window closed counts, and a later call waits for the same answer.
 */
export class OpenRequests {
  readonly #forms = new Map<string, OpenForm>();
  /** Model calls that the client's model works on. */
  readonly models = new Set<string>();
  /** Approvals and questions that a result on this connection named, by `keyOf`. */
  readonly reported = new Set<string>();
  readonly #unread = new Map<string, number>();

  /** Remembers that the client answered by itself, before anyone could have read the question. */
  refusedUnread(waiting: WaitingKey): void {
    const key = keyOf(waiting);
    this.#unread.set(key, (this.#unread.get(key) ?? 0) + 1);
  }

  isUnread(waiting: WaitingKey): boolean {
    return this.#unread.has(keyOf(waiting));
  }

  /** True if asking again is pointless. A person may close one form by accident, but not each one as it opens. */
  isPointless(waiting: WaitingKey): boolean {
    return (this.#unread.get(keyOf(waiting)) ?? 0) > 1;
  }

  /** The form for what waits: the one that is open already, or a new one, which `show` shows until it is aborted. */
  form(waiting: WaitingKey, show: (form: AbortController) => Promise<Taken | undefined>): OpenForm {
    const key = keyOf(waiting);
    const known = this.#forms.get(key);
    if (known !== undefined) return known;
    const form = new AbortController();
    const taken = show(form).finally(() => this.#forms.delete(key));
    const open = { taken, close: () => form.abort() };
    this.#forms.set(key, open);
    return open;
  }
}
