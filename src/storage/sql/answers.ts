/** Answers of people, or of clients in their place. Each is stored in one transaction with all that follows from it. */
import type { Decision, SamplingReply } from "../../agent/agent.ts";
import { answeredEntry, decidedEntry } from "../../runs/asked-events.ts";
import type { AnsweredQuestion, AppliedAnswer, DecidedCall, SignedAnswer } from "../../runs/ports.ts";
import type { Approval, OpenQuestion, PersonDecision, Principal, Run } from "../../runs/run.ts";
import { DEADLINE, isFinal, sameAs } from "../../runs/run.ts";
import * as approvals from "./approvals.ts";
import * as journal from "./journal.ts";
import type { Answer } from "../../tools/tool.ts";
import * as models from "./model-requests.ts";
import * as questions from "./questions.ts";
import { type AnyQuestionRow, toApproval, toQuestion } from "./rows.ts";
import { makeRunnable } from "./leases.ts";
import { getToChange } from "./runs.ts";
import * as status from "./status.ts";
import { type Steps, insert } from "./steps.ts";

const APPROVED: Decision = { type: "approve" };

/** Told to the model in place of the call's result. */
const TOO_LATE: Decision = {
  type: "reject",
  expired: true,
  message:
    "Not run: the deadline for a person's decision passed, so the call was denied. Nobody reviewed it. " +
    "Do what is possible without it, and say in your answer what is left undone.",
};

/** Stores a decision, or that the deadline has passed. `undefined`: the call was not pending any more. */
export function* decide(
  principal: Principal,
  { approval, decision }: DecidedCall,
  by: string,
  now: number,
): Steps<Approval | undefined> {
  if ((yield* getToChange(principal, approval.runId)) === undefined) return undefined;
  const [stored, way] = isExpired(approval, now) ? [TOO_LATE, DEADLINE] : [decision, by];
  if (!(yield* store(approval, stored, way, now))) return undefined;
  return yield* approvals.get(approval.runId, approval.id);
}

/** Denies a call that nobody decided in time, and lets the agent continue without the answer to another question. */
export function* expire(principal: Principal, row: AnyQuestionRow, now: number): Steps<boolean> {
  const expired =
    row.kind === "approval"
      ? yield* decide(principal, { approval: toApproval(row), decision: TOO_LATE }, DEADLINE, now)
      : yield* answer(principal, { question: toQuestion(row), answer: EXPIRED }, DEADLINE, now);
  return expired !== undefined;
}

const EXPIRED: Answer = { type: "expired" };

/** Stores an answer, or that the deadline has passed. `undefined`: the question was not pending any more. */
export function* answer(
  principal: Principal,
  { question, answer: given }: AnsweredQuestion,
  by: string,
  now: number,
): Steps<OpenQuestion | undefined> {
  const { runId, id, askedBy = runId } = question;
  if ((yield* getToChange(principal, runId)) === undefined) return undefined;
  const [stored, way] = isExpired(question, now) ? [EXPIRED, DEADLINE] : [given, by];
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
    const { by, decisions, answers, replies } = signed;
    for (const call of decisions) applied.decided.push(yield* decide(run.principal, call, by, now));
    for (const one of answers) applied.answered.push(yield* answer(run.principal, one, by, now));
    for (const one of replies) applied.replied.push(yield* reply(run, one.callId, one.reply, now));
    return applied;
  }
  if (found !== undefined && !isFinal(found.status))
    yield* journal.append(run.id, { kind: "answer_refused", agent: [], data: { reason } }, now);
  return undefined;
}

const takes = (id: string, runId: string, now: number): Steps<boolean> =>
  insert("used_answers", { id, run_id: runId, used_at: now }, "ON CONFLICT (id) DO NOTHING");

/** Stores a reply to a model call, if it is the first; the run can then continue. */
export function* reply(run: Run, callId: string, given: SamplingReply, now: number): Steps<boolean> {
  const found = yield* getToChange(run.principal, run.id);
  if (found === undefined || isFinal(found.status)) return false;
  if (!(yield* models.answer(run.id, callId, given))) return false;
  yield* status.updateOpen(run.id, now);
  yield* makeRunnable(run.id, now);
  return true;
}

const isExpired = ({ expiresAt = Infinity }: Pick<Approval, "expiresAt">, now: number): boolean =>
  now >= expiresAt;

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
