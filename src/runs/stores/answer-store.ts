import type { Statement } from "better-sqlite3";
import type { Decision, SamplingReply } from "../../agent/agent.ts";
import { decidedEntry } from "../journal.ts";
import { type Approval, DEADLINE, type PersonDecision, type Run, isFinal, sameAs } from "../run.ts";
import type { RunStore } from "./run-store.ts";
import { inTransaction } from "./transaction.ts";

/** What is decided of one call. */
export interface DecidedCall {
  approval: Approval;
  decision: PersonDecision;
}

/** What came back from a client at once, under one signed id. */
export interface SignedAnswer {
  /** Good once. */
  id: string;
  /** What speaks against it; then nothing in it counts. */
  problem?: string | undefined;
  decisions: readonly DecidedCall[];
  replies: readonly { callId: string; reply: SamplingReply }[];
  by: string;
}

/** What a signed answer came to, each list in the order of the answer's own. */
export interface Settled {
  /** `undefined`: it was decided or withdrawn before. */
  decided: (Approval | undefined)[];
  /** False: it was replied to before, or is asked no more. */
  replied: boolean[];
}

/**
 * What people answer, and clients in their place, of all runs. Each answer is one transaction with all that
 * follows from it.
 */
export class AnswerStore {
  readonly #store: RunStore;
  readonly #use: Statement<{ id: string; run_id: string; now: number }>;

  constructor(store: RunStore) {
    this.#store = store;
    this.#use = store.database.prepare(
      `INSERT INTO used_answers (id, run_id, used_at) VALUES (@id, @run_id, @now)
       ON CONFLICT (id) DO NOTHING`,
    );
  }

  /**
   * Stores a person's decision; the run can go on once its interrupt is decided whole. An answer that comes
   * after the deadline is not taken: the deadline decides. `undefined`: it was decided or withdrawn before,
   * and nothing changed.
   */
  decide(approval: Approval, decision: PersonDecision, by: string, now: number): Approval | undefined {
    const decided = inTransaction(this.#store.database, () => this.#settle({ approval, decision }, by, now));
    if (decided !== undefined) this.#store.changed(approval.runId);
    return decided;
  }

  /** Denies what nobody decided in time, in all runs; gives what it denied. */
  expire(now: number): Approval[] {
    return this.#store.approvals
      .expired(now)
      .flatMap((approval) => this.decide(approval, TOO_LATE, DEADLINE, now) ?? []);
  }

  /** Stores a reply to a model call, if it is the first; the run can go on. */
  reply(run: Run, callId: string, reply: SamplingReply, now: number): boolean {
    const isStored = inTransaction(this.#store.database, () => this.#reply(run, callId, reply, now));
    if (isStored) this.#store.changed(run.id);
    return isStored;
  }

  /**
   * Uses up a signed answer and does all that it says. `undefined`, and nothing of it counts, when it was used
   * before, by whatever process, or there is a problem with it; the journal of a run that is not over tells of
   * that.
   */
  use(run: Run, answer: SignedAnswer, now: number): Settled | undefined {
    const { events, database } = this.#store;
    const settled = inTransaction(database, (): Settled | undefined => {
      const reason = answer.problem ?? (this.#takes(answer.id, run.id, now) ? undefined : "replayed");
      if (reason === undefined) {
        return {
          decided: answer.decisions.map((call) => this.#settle(call, answer.by, now)),
          replied: answer.replies.map(({ callId, reply }) => this.#reply(run, callId, reply, now)),
        };
      }
      if (this.#isOpen(run)) {
        events.append(run.id, { kind: "answer_refused", agent: [], data: { reason } }, now);
      }
      return undefined;
    });
    this.#store.changed(run.id);
    return settled;
  }

  #takes(id: string, runId: string, now: number): boolean {
    return this.#use.run({ id, run_id: runId, now }).changes === 1;
  }

  #isOpen({ principal, id }: Run): boolean {
    const run = this.#store.get(principal, id);
    return run !== undefined && !isFinal(run.status);
  }

  #settle({ approval, decision }: DecidedCall, by: string, now: number): Approval | undefined {
    const isSettled = isExpired(approval, now)
      ? this.#settleWith(approval, TOO_LATE, DEADLINE, now)
      : this.#settleWith(approval, decision, by, now);
    return isSettled ? this.#store.approvals.get(approval.runId, approval.id) : undefined;
  }

  /** False when it was not pending any more. */
  #settleWith(approval: Approval, decision: PersonDecision, by: string, now: number): boolean {
    const { approvals, events, status } = this.#store;
    const { runId, interruptId } = approval;
    const isForAll = decision.type === "approve_same";
    if (!approvals.decide(approval, isForAll ? APPROVED : decision, by, now)) return false;
    events.append(runId, decidedEntry(approval, decision.type, by), now);
    status.settleOpen(runId, now);
    if (Object.hasOwn(approvals.undelivered(runId), interruptId)) this.#store.makeRunnable(runId, now);
    if (isForAll) this.#grant(approval, by, now);
    return true;
  }

  /** Lets calls that count as the same go ahead: those that wait already, and those to come. */
  #grant(approval: Approval, by: string, now: number): void {
    const { approvals, grants } = this.#store;
    grants.add(approval, by, now);
    for (const other of approvals.ofRun(approval.runId)) {
      if (other.status !== "pending" || isExpired(other, now) || !grants.find(other)) continue;
      if (other.same?.key === approval.same?.key) this.#settleWith(other, APPROVED, sameAs(approval.id), now);
    }
  }

  #reply(run: Run, callId: string, reply: SamplingReply, now: number): boolean {
    const { models, status } = this.#store;
    const known = this.#store.get(run.principal, run.id);
    if (known === undefined || isFinal(known.status)) return false;
    if (!models.answer(run.id, callId, reply)) return false;
    status.settle(run.id, known.status, now);
    this.#store.makeRunnable(run.id, now);
    return true;
  }
}

const APPROVED: Decision = { type: "approve" };

const isExpired = ({ expiresAt = Infinity }: Approval, now: number): boolean => now >= expiresAt;

/** What the model is told in the place of the call's result. */
const TOO_LATE: Decision = {
  type: "reject",
  expired: true,
  message:
    "Not run: the deadline for a person's decision passed, so the call was denied. Nobody looked at it. " +
    "Do what is possible without it, and say in your answer what is left undone.",
};
