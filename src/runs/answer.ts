/** Checks the answers of people to requests of any kind, and has them stored. */
import { randomUUID } from "node:crypto";
import { canonicalJson } from "../core/json.ts";
import { oneLine, shownName } from "../core/text.ts";
import { answerText, checkAnswer, requestText } from "../tools/check-answer.ts";
import type { CheckedAnswer, PersonAnswer } from "../tools/request.ts";
import type { RunContext } from "./context.ts";
import type { AnsweredRequest, GivenAnswer } from "./ports.ts";
import { DEADLINE, type Principal, type RunRequest, alreadyAnswered } from "./run.ts";
import type { Implements } from "./scopes.ts";
import type { AnswerOutcome } from "./service.ts";

type AnswerContext = RunContext & { principal: Principal; runId: string };

/**
 * Stores an answer. A deadline that has passed answers instead; a late answer to a question reaches a run that is
 * still open as a message.
 */
export const answer: Implements<"requests", "answer"> = async (service, principal, runId, given, by) => {
  const context = { ...service, principal, runId };
  const ready = await prepare(given, context);
  if ("ok" in ready) return ready;
  const { runs, clock } = service;
  return answerOutcome(ready, await runs.answer(principal, ready, by, clock()), context);
};

/** Returns why an answer could not be stored now; undefined if it could. */
export const problemOf: Implements<"requests", "problemOf"> = async (service, principal, runId, given) => {
  const ready = await prepare(given, { ...service, principal, runId });
  return "ok" in ready && !ready.ok ? ready.message : undefined;
};

/** Uses up a signed answer. Returns undefined if it was used before, has a problem, or there is no such run. */
export const useAnswer: Implements<"requests", "useAnswer"> = async (service, principal, runId, signed) => {
  const context = { ...service, principal, runId };
  const { runs, clock } = service;
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return undefined;
  const prepared: (AnsweredRequest | AnswerOutcome)[] = [];
  if (signed.problem === undefined)
    for (const given of signed.answers) prepared.push(await prepare(given, context));
  const answers = prepared.flatMap((one) => ("ok" in one ? [] : [one]));
  const used = await runs.useSignedAnswer(run, { ...signed, answers }, clock());
  if (used === undefined) return undefined;
  const stored = used.answered.values();
  const answered: AnswerOutcome[] = [];
  for (const one of prepared)
    answered.push("ok" in one ? one : await answerOutcome(one, stored.next().value, context));
  return { answered, replied: used.replied };
};

/** The answer ready to be stored, or the outcome if it is not stored. */
async function prepare(
  { requestId, answer: given }: GivenAnswer,
  context: AnswerContext,
): Promise<AnsweredRequest | AnswerOutcome> {
  const { runs, principal, runId } = context;
  const request = await runs.read.request(principal, runId, requestId);
  if (request === undefined) {
    const message = `There is no approval or question ${shownName(requestId)} in run ${shownName(runId)}.`;
    return { ok: false, code: "not_found", message };
  }
  // Silence is the deadline's alone.
  const checked = await checkGiven(request, given.type === "expired" ? { type: "decline" } : given, context);
  if (checked.ok) {
    const ready = { request, answer: checked.answer };
    return request.status === "pending" ? ready : answerOutcome(ready, undefined, context);
  }
  return request.status === "pending"
    ? { ok: false, code: "invalid_answer", message: checked.message }
    : { ok: false, code: "already_answered", message: alreadyAnswered(request), request };
}

/** Checks an answer, and the arguments of an edit as the tool will get them. */
async function checkGiven(
  request: RunRequest,
  given: PersonAnswer,
  { runs, agentFor, principal, runId }: AnswerContext,
): Promise<CheckedAnswer> {
  const checked = checkAnswer(request, given);
  if (!checked.ok || checked.answer.type !== "edit") return checked;
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return checked;
  const { name, args } = checked.answer.editedAction;
  const call = (await agentFor(run)).checkCall(name, args, request.agent);
  return call.ok ? { ok: true, answer: { type: "edit", editedAction: { name, args: call.args } } } : call;
}

/** The outcome of an answer. `stored`: the request as this answer changed it, if it did. */
async function answerOutcome(
  { request, answer: given }: AnsweredRequest,
  stored: RunRequest | undefined,
  { runs, clock, principal, runId }: AnswerContext,
): Promise<AnswerOutcome> {
  if (stored !== undefined && stored.decidedBy !== DEADLINE)
    return { ok: true, request: stored, how: "stored" };
  // Somebody else answered while this was checked, or the deadline did.
  const now = stored ?? (await runs.read.request(principal, runId, request.id)) ?? request;
  const grants =
    given.type === "approve_same"
      ? await runs.read.grants(principal, runId)
      : given.type === "approve_always"
        ? await runs.rules.list(principal)
        : [];
  const isGranted = now.status === "approved" && grants.some(({ approvalId }) => approvalId === now.id);
  if (isGranted || isRepeated(now, given)) return { ok: true, request: now, how: "repeated" };
  if (now.kind !== "approval" && now.decidedBy === DEADLINE) {
    const said = answerText(given);
    const text = `A late answer to your question "${oneLine(requestText(now), 300)}": ${said}`;
    const sent = said && (await runs.send(principal, runId, { id: randomUUID(), text, now: clock() }));
    if (sent && sent.kind === "sent") return { ok: true, request: now, how: "told" };
  }
  return { ok: false, code: "already_answered", message: alreadyAnswered(now), request: now };
}

/** True if the stored answer equals this one, except for the message of a rejection. */
function isRepeated({ kind, decidedBy, answer: stored }: RunRequest, given: PersonAnswer): boolean {
  if (stored === undefined || (kind === "approval" && decidedBy === DEADLINE)) return false;
  const isWhole = kind !== "approval" || given.type === "edit";
  return isWhole ? canonicalJson(stored) === canonicalJson(given) : stored.type === given.type;
}
