import type { Agent, Decision } from "../agent/agent.ts";
import { canonicalJson } from "../core/json.ts";
import { shownName } from "../core/text.ts";
import { answerOutcome, prepareAnswer } from "./answer.ts";
import type { RunContext } from "./context.ts";
import type { AnsweredQuestion, DecidedCall } from "./ports.ts";
import type { Approval, PersonDecision, Principal, Run } from "./run.ts";
import { DEADLINE, alreadyDecided, offeredDecisions } from "./run.ts";
import type { AnswerOutcome, CarriedAnswer, DecideOutcome, UsedAnswer } from "./service.ts";

/** A decision before it is stored. */
interface ProposedDecision {
  principal: Principal;
  runId: string;
  approvalId: string;
  decision: PersonDecision;
}

type DecideContext = Pick<RunContext, "runs" | "agentFor" | "clock">;

/** A decision that can be stored now, as it will be. */
interface Ready {
  run: Run;
  /** The person's decision. */
  decision: PersonDecision;
  call: DecidedCall;
}

/** Stores a person's decision on one call. A deadline that has passed denies instead. */
export async function decide(
  request: ProposedDecision & { by: string },
  context: DecideContext,
): Promise<DecideOutcome> {
  const { runs, clock } = context;
  const ready = await prepare(request, context);
  if ("ok" in ready) return ready;
  const decided = await runs.decide(request.principal, ready.call, request.by, clock());
  return outcomeOf(ready, decided, context);
}

/** Why a decision could not be stored now; `undefined`: it could. */
export async function problemOf(
  proposed: ProposedDecision,
  context: DecideContext,
): Promise<string | undefined> {
  const ready = await prepare(proposed, context);
  return "ok" in ready && !ready.ok ? ready.message : undefined;
}

/** Uses up a signed answer with all it says. `undefined`: it was used before, has a problem, or no such run. */
export async function useAnswer(
  { principal, runId, answer }: { principal: Principal; runId: string; answer: CarriedAnswer },
  context: DecideContext,
): Promise<UsedAnswer | undefined> {
  const { runs, clock } = context;
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return undefined;
  const { id, by, problem, replies } = answer;
  const given = problem === undefined ? answer : { decisions: [], answers: [] };
  const prepared: (Ready | DecideOutcome)[] = [];
  for (const one of given.decisions) prepared.push(await prepare({ principal, runId, ...one }, context));
  const answered: (AnsweredQuestion | AnswerOutcome)[] = [];
  for (const one of given.answers) answered.push(await prepareAnswer({ principal, runId, ...one }, context));
  const decisions = prepared.flatMap((one) => ("ok" in one ? [] : [one.call]));
  const answers = answered.flatMap((one) => ("ok" in one ? [] : [one]));
  const signed = { id, by, problem, decisions, answers, replies };
  const applied = await runs.useSignedAnswer(run, signed, clock());
  if (applied === undefined) return undefined;
  const decided = applied.decided.values();
  const outcomes: DecideOutcome[] = [];
  for (const one of prepared)
    outcomes.push("ok" in one ? one : await outcomeOf(one, decided.next().value, context));
  const stored = applied.answered.values();
  const answerOutcomes: AnswerOutcome[] = [];
  for (const one of answered) {
    const found = "ok" in one ? one : answerOutcome(one, stored.next().value, { principal, runId }, context);
    answerOutcomes.push(await found);
  }
  return { decided: outcomes, answered: answerOutcomes, replied: applied.replied };
}

/** The decision ready to be stored, or the outcome if it is not stored. */
async function prepare(
  { principal, runId, approvalId, decision }: ProposedDecision,
  context: DecideContext,
): Promise<Ready | DecideOutcome> {
  const { runs, agentFor } = context;
  const run = await runs.read.run(principal, runId);
  const approval = run === undefined ? undefined : await runs.read.approval(principal, runId, approvalId);
  if (run === undefined || approval === undefined) {
    const message = `There is no approval ${shownName(approvalId)} in run ${shownName(runId)}.`;
    return { ok: false, code: "not_found", message };
  }
  if (approval.status !== "pending") return repeated(approval, decision, run, context);
  const offered = offeredDecisions(approval);
  if (!offered.includes(decision.type)) {
    const message = `"${decision.type}" is not possible for this call of ${approval.tool}. Possible: ${offered.join(", ")}.`;
    return { ok: false, code: "not_allowed", message };
  }
  const checked = decision.type === "edit" ? checkedEdit(decision, approval, await agentFor(run)) : decision;
  if (typeof checked === "string") return { ok: false, code: "invalid_arguments", message: checked };
  return { run, decision, call: { approval, decision: checked } };
}

/** `decided`: what the decision changed, if it did. */
async function outcomeOf(
  { run, decision, call: { approval } }: Ready,
  decided: Approval | undefined,
  context: DecideContext,
): Promise<DecideOutcome> {
  if (decided !== undefined && decided.decidedBy !== DEADLINE)
    return { ok: true, approval: decided, repeated: false };
  // Someone else decided while this was checked, or the deadline did.
  const now = decided ?? (await context.runs.read.approval(run.principal, run.id, approval.id)) ?? approval;
  return repeated(now, decision, run, context);
}

/** The outcome of an answer that is not the first. */
async function repeated(
  ...[approval, decision, run, context]: Parameters<typeof isAsDecided>
): Promise<DecideOutcome> {
  return (await isAsDecided(approval, decision, run, context))
    ? { ok: true, approval, repeated: true }
    : { ok: false, code: "already_decided", message: alreadyDecided(approval), approval };
}

/** True if `decision` is the stored one. */
async function isAsDecided(
  approval: Approval,
  decision: PersonDecision,
  run: Run,
  { runs, agentFor }: DecideContext,
): Promise<boolean> {
  const { status, decision: stored, decidedBy } = approval;
  if (decidedBy === DEADLINE || stored === undefined) return false;
  if (decision.type === "approve_same") {
    const grants = status === "approved" ? await runs.read.grants(run.principal, run.id) : [];
    return grants.some(({ approvalId: id }) => id === approval.id);
  }
  if (decision.type !== "edit" || stored.type !== "edit") return decision.type === stored.type;
  const checked = checkedEdit(decision, approval, await agentFor(run));
  return typeof checked === "object" && canonicalJson(checked) === canonicalJson(stored);
}

/** The edit with its arguments as the tool will get them, or what is wrong with them. */
function checkedEdit(
  { editedAction: { name, args } }: Extract<Decision, { type: "edit" }>,
  approval: Approval,
  agent: Agent,
): Decision | string {
  const checked = agent.checkCall(name, args, approval.agent);
  return checked.ok ? { type: "edit", editedAction: { name, args: checked.args } } : checked.message;
}
