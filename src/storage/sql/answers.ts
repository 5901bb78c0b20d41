/** Answers of people, or of clients in their place. Each is stored in one transaction with all that follows from it. */
import type { Decision, SamplingReply } from "../../agent/agent.ts";
import { answeredEntry, decidedEntry } from "../../runs/asked-events.ts";
import type { AnsweredQuestion, AppliedAnswer, DecidedCall, SignedAnswer } from "../../runs/ports.ts";
import {
  type Approval,
  DEADLINE,
  type OpenQuestion,
  type PersonDecision,
  type Principal,
  type Run,
  isFinal,
  sameAs,
} from "../../runs/run.ts";
import * as approvals from "./approvals.ts";
import * as journal from "./journal.ts";
import type { Answer } from "../../tools/tool.ts";
import * as models from "./model-requests.ts";
import * as questions from "./questions.ts";
import { type AnyQuestionRow, toApproval, toQuestion } from "./rows.ts";
import { makeRunnable } from "./leases.ts";
import { getToChange } from "./runs.ts";
import * as status from "./status.ts";
import { type Steps, change } from "./steps.ts";

const APPROVED: Decision = { type: "approve" };

/** Told to the model in place of the call's result. */
const TOO_LATE: Decision = {
  type: "reject",
  expired: true,
  message:
    "Not run: the deadline for a person's decision passed, so the call was denied. Nobody reviewed it. " +
    "Do what is possible without it, and say in your answer what is left undone.",
};

/**
 * Stores a person's decision; the run can continue once its interrupt is decided completely. An answer after the
 * deadline is rejected: the deadline decides. `undefined`: it was decided or withdrawn before, and nothing changed.
 */
export function* decide(
  principal: Principal,
  { approval, decision }: DecidedCall,
  by: string,
  now: number,
): Steps<Approval | undefined> {
  if ((yield* getToChange(principal, approval.runId)) === undefined) return undefined;
  const isStored = isExpired(approval, now)
    ? yield* store(approval, TOO_LATE, DEADLINE, now)
    : yield* store(approval, decision, by, now);
  return isStored ? yield* approvals.get(approval.runId, approval.id) : undefined;
}

/** Denies a call that nobody decided in time, and lets the agent continue without the answer to another question. */
export function* expire(principal: Principal, row: AnyQuestionRow, now: number): Steps<boolean> {
  if (row.kind !== "approval") {
    return (
      (yield* answer(principal, { question: toQuestion(row), answer: EXPIRED }, DEADLINE, now)) !== undefined
    );
  }
  const call = { approval: toApproval(row), decision: TOO_LATE };
  return (yield* decide(principal, call, DEADLINE, now)) !== undefined;
}

const EXPIRED: Answer = { type: "expired" };

/**
 * Stores the answer to a question; the run can continue. One that comes after the deadline is not stored: the deadline
 * decides. `undefined`: it was answered or withdrawn before, and nothing changed.
 */
export function* answer(
  principal: Principal,
  { question, answer: given }: AnsweredQuestion,
  by: string,
  now: number,
): Steps<OpenQuestion | undefined> {
  const { runId, id, askedBy = runId, expiresAt = Infinity } = question;
  if ((yield* getToChange(principal, runId)) === undefined) return undefined;
  const [stored, way] = now >= expiresAt ? [EXPIRED, DEADLINE] : [given, by];
  if (!(yield* questions.decide(question, stored, way, now))) return undefined;
  yield* journal.append(runId, answeredEntry(question, stored, way), now);
  yield* status.updateOpen(askedBy, now);
  yield* makeRunnable(askedBy, now);
  return yield* questions.get(runId, id);
}

/**
 * Uses up a signed answer and does all that it says. `undefined`, and nothing of it counts, when it was used before,
 * by whatever process, or there is a problem with it; the journal of a run that is not over tells of that.
 */
export function* use(run: Run, signed: SignedAnswer, now: number): Steps<AppliedAnswer | undefined> {
  const found = yield* getToChange(run.principal, run.id);
  const reason = signed.problem ?? ((yield* takes(signed.id, run.id, now)) ? undefined : "replayed");
  if (reason === undefined) {
    const applied: AppliedAnswer = { decided: [], answered: [], replied: [] };
    for (const call of signed.decisions)
      applied.decided.push(yield* decide(run.principal, call, signed.by, now));
    for (const one of signed.answers) {
      applied.answered.push(yield* answer(run.principal, one, signed.by, now));
    }
    for (const { callId, reply: given } of signed.replies) {
      applied.replied.push(yield* reply(run, callId, given, now));
    }
    return applied;
  }
  if (found !== undefined && !isFinal(found.status)) {
    yield* journal.append(run.id, { kind: "answer_refused", agent: [], data: { reason } }, now);
  }
  return undefined;
}

function* takes(id: string, runId: string, now: number): Steps<boolean> {
  const changes = yield* change(
    "INSERT INTO used_answers (id, run_id, used_at) VALUES (@id, @run_id, @now) ON CONFLICT (id) DO NOTHING",
    { id, run_id: runId, now },
  );
  return changes === 1;
}

/** Stores a reply to a model call, if it is the first; the run can then continue. */
export function* reply(run: Run, callId: string, given: SamplingReply, now: number): Steps<boolean> {
  const found = yield* getToChange(run.principal, run.id);
  if (found === undefined || isFinal(found.status)) return false;
  if (!(yield* models.answer(run.id, callId, given))) return false;
  yield* status.updateOpen(run.id, now);
  yield* makeRunnable(run.id, now);
  return true;
}

const isExpired = ({ expiresAt = Infinity }: Approval, now: number): boolean => now >= expiresAt;

/** False when it was not pending any more. */
function* store(approval: Approval, decision: PersonDecision, by: string, now: number): Steps<boolean> {
  const { runId, interruptId, askedBy = runId } = approval;
  const isForAll = decision.type === "approve_same";
  if (!(yield* approvals.decide(approval, isForAll ? APPROVED : decision, by, now))) return false;
  yield* journal.append(runId, decidedEntry(approval, decision.type, by), now);
  yield* status.updateOpen(askedBy, now);
  const answers = yield* questions.undelivered({ root: runId, asker: askedBy });
  if (Object.hasOwn(answers, interruptId)) yield* makeRunnable(askedBy, now);
  if (isForAll) yield* grant(approval, by, now);
  return true;
}

/** Lets calls that count as the same go ahead: those that wait already, and those to come. */
function* grant(approval: Approval, by: string, now: number): Steps<void> {
  yield* approvals.grant(approval, by, now);
  for (const other of yield* approvals.ofRun(approval.runId)) {
    if (other.status !== "pending" || isExpired(other, now) || !(yield* approvals.grantFor(other))) continue;
    if (other.same?.key === approval.same?.key) yield* store(other, APPROVED, sameAs(approval.id), now);
  }
}
