/** Answers of people, or of clients in their place. Each is stored in one transaction with all that follows from it. */
import { answeredEntry } from "../asked-events.ts";
import type { SamplingReply } from "../../agent/agent.ts";
import type { AnsweredRequest, SignedAnswer, UsedAnswer } from "../ports.ts";
import { type Principal, type Run, type RunRequest, DEADLINE, isFinal } from "../run.ts";
import type { Decision, PersonAnswer } from "../../tools/request.ts";
import * as grants from "./grants.ts";
import * as journal from "./journal.ts";
import { makeRunnable } from "./leases.ts";
import * as models from "./model-requests.ts";
import * as requests from "./requests.ts";
import { type RequestRow, toRequest } from "./rows.ts";
import { approvedBefore, saveRules } from "./rules.ts";
import { getToChange } from "./runs.ts";
import * as status from "./status.ts";
import { type Steps, insert } from "./steps.ts";

const APPROVED: Decision = { type: "approve" };

/** Goes to the model in place of the call's result. */
const TOO_LATE: Decision = {
  type: "reject",
  expired: true,
  message:
    "Not run: the deadline for a person's decision passed, so the call was denied. Nobody reviewed it. " +
    "Do what is possible without it, and say in your answer what is left undone.",
};

/** Stores an answer, or that the deadline has passed. Returns undefined if the request was not pending any more. */
export function* answer(
  principal: Principal,
  { request, answer: given }: AnsweredRequest,
  by: string,
  now: number,
): Steps<RunRequest | undefined> {
  const { runId, id } = request;
  if ((yield* getToChange(principal, runId)) === undefined) return undefined;
  const isStored = isExpired(request, now)
    ? yield* store(request, answerAtDeadline(request), DEADLINE, now)
    : yield* store(request, given, by, now);
  return isStored ? yield* requests.get(runId, id) : undefined;
}

/** Denies a call, or lets the agent continue without the answer to its question. False: it was not pending any more. */
export function* expire(principal: Principal, row: RequestRow, now: number): Steps<boolean> {
  const request = toRequest(row);
  const expired = yield* answer(principal, { request, answer: answerAtDeadline(request) }, DEADLINE, now);
  return expired !== undefined;
}

const answerAtDeadline = ({ kind }: RunRequest): PersonAnswer =>
  kind === "approval" ? TOO_LATE : { type: "expired" };

/**
 * Uses up a signed answer and carries it out. Returns undefined and changes nothing if any process used the answer
 * before, or it has a problem; the journal of an open run records the refusal.
 */
export function* use(
  run: Run,
  signed: SignedAnswer<AnsweredRequest>,
  now: number,
): Steps<UsedAnswer<RunRequest | undefined> | undefined> {
  const found = yield* getToChange(run.principal, run.id);
  const row = { id: signed.id, run_id: run.id, used_at: now };
  const isFirst =
    signed.problem === undefined && (yield* insert("used_answers", row, "ON CONFLICT (id) DO NOTHING"));
  const reason = signed.problem ?? (isFirst ? undefined : "replayed");
  if (reason === undefined) {
    const answered: (RunRequest | undefined)[] = [];
    const replied: boolean[] = [];
    for (const one of signed.answers) answered.push(yield* answer(run.principal, one, signed.by, now));
    for (const one of signed.replies) replied.push(yield* reply(run, one.callId, one.reply, now));
    return { answered, replied };
  }
  if (found !== undefined && !isFinal(found.status))
    yield* journal.append(run.id, { kind: "answer_refused", agent: [], data: { reason } }, now);
  return undefined;
}

/** Stores a reply to a model call; the run can then continue. False: it was replied to before, or is asked no more. */
export function* reply(run: Run, callId: string, given: SamplingReply, now: number): Steps<boolean> {
  const found = yield* getToChange(run.principal, run.id);
  if (found === undefined || isFinal(found.status)) return false;
  if (!(yield* models.answer(run.id, callId, given))) return false;
  yield* status.updateOpen(run.id, now);
  yield* makeRunnable(run.id, now);
  return true;
}

const isExpired = ({ expiresAt = Infinity }: Pick<RunRequest, "expiresAt">, now: number): boolean =>
  now >= expiresAt;

/** False when it was not pending any more. */
function* store(request: RunRequest, given: PersonAnswer, by: string, now: number): Steps<boolean> {
  const { runId, interruptId, askedBy = runId } = request;
  const isLasting = given.type === "approve_same" || given.type === "approve_always";
  const stored = isLasting ? APPROVED : given;
  if (!(yield* requests.storeAnswer(request, stored, by, now))) return false;
  yield* journal.append(runId, answeredEntry(request, given, by), now);
  yield* status.updateOpen(askedBy, now);
  const isCall = request.kind === "approval";
  const answers = isCall ? yield* requests.undelivered({ root: runId, asker: askedBy }) : {};
  if (!isCall || Object.hasOwn(answers, interruptId)) yield* makeRunnable(askedBy, now);
  if (!isCall || !isLasting) return true;
  if (given.type === "approve_always") yield* saveRules(request, given.rules, by, now);
  else yield* grants.grant(request, by, now);
  yield* approveOthers(runId, now);
  return true;
}

/** Lets calls of the run that wait already go ahead, if a grant or a rule allows them now. */
function* approveOthers(runId: string, now: number): Steps<void> {
  for (const other of yield* requests.ofRun(runId)) {
    if (other.kind !== "approval" || other.status !== "pending" || isExpired(other, now)) continue;
    const { before } = yield* approvedBefore(other, now);
    if (before !== undefined) yield* store(other, before.answer, before.by, now);
  }
}
