import type { Approval } from "../../runs/run.ts";
import type { ServerDeps } from "../deps.ts";

/** Approvals remembered at one time; one that is forgotten is asked again under a new key. */
const CAPACITY = 10_000;

/** How an approval is put to clients that poll for it. */
export interface Question {
  /** Stays the same until an answer could not be carried out; then there is a new one, never an old one. */
  readonly key: string;
  /** When a client first got to see this key, by the monotonic clock; `undefined`: not yet. */
  readonly shownAt: number | undefined;
  /** Why the answer to the previous key could not be carried out. */
  readonly problem?: string;
}

/**
 * Keys under which tasks ask for approvals: the approval's id and when it was asked, so that no key comes
 * twice in a run. An approval older than this process gets a key of this process, because an earlier one may
 * have used up any other.
 */
export class TaskQuestions {
  readonly #clocks: Pick<ServerDeps, "clock" | "monotonic">;
  readonly #started: number;
  readonly #questions = new Map<string, Question & { since: number }>();

  constructor(clocks: Pick<ServerDeps, "clock" | "monotonic">) {
    this.#clocks = clocks;
    this.#started = clocks.clock();
  }

  /** The question as it is asked now; from here on it counts as shown. */
  show(approval: Approval): Question {
    const question = this.#current(approval);
    return this.#remember(approval, { ...question, shownAt: question.shownAt ?? this.#clocks.monotonic() });
  }

  /** The approval that `key` asks for; keys of earlier processes count, used-up ones do not. */
  find(key: string, approvals: readonly Approval[]): { approval: Approval; question: Question } | undefined {
    const approval = approvals.find(({ id }) => key.startsWith(`${id}@`));
    if (approval === undefined) return undefined;
    const question = this.#current(approval);
    const since = Number.parseInt(key.slice(approval.id.length + 1), 36);
    const isUsedUp = question.problem !== undefined && key !== question.key;
    return isUsedUp || Number.isNaN(since) || since > question.since ? undefined : { approval, question };
  }

  /** Asks anew, and says why. */
  askAgain(approval: Approval, problem: string): void {
    const since = Math.max(this.#clocks.clock(), this.#current(approval).since + 1);
    this.#remember(approval, { key: keyOf(approval, since), since, shownAt: undefined, problem });
  }

  #current(approval: Approval): Question & { since: number } {
    const known = this.#questions.get(nameOf(approval));
    if (known !== undefined) return known;
    const since = Math.max(approval.requestedAt, this.#started);
    return { key: keyOf(approval, since), since, shownAt: undefined };
  }

  #remember<Known extends Question & { since: number }>(approval: Approval, question: Known): Known {
    const name = nameOf(approval);
    this.#questions.delete(name);
    this.#questions.set(name, question);
    const oldest = this.#questions.keys().next();
    if (this.#questions.size > CAPACITY && oldest.done !== true) this.#questions.delete(oldest.value);
    return question;
  }
}

const keyOf = ({ id }: Approval, since: number): string => `${id}@${since.toString(36)}`;
const nameOf = ({ runId, id }: Approval): string => `${runId}/${id}`;
