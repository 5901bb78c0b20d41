import { inputResponse } from "@modelcontextprotocol/server";
import type { Approval, PersonDecision, SamplingReply } from "../../runs/run.ts";
import { type ToolCall, callDigest } from "../protocol/call.ts";
import { type Outcome, refused, unknownRun } from "../protocol/outcome.ts";
import type { ApprovalState } from "../protocol/state.ts";
import { type FormResponse, isUnread, readAnswer, takenBy } from "./answers.ts";
import { samplingReply } from "./client-model.ts";
import type { CarriedAnswers } from "./session.ts";

/** The answers that came with a call, or the outcome that refuses them. */
export type Carried = { ok: true; answers: CarriedAnswers | undefined } | { ok: false; outcome: Outcome };

/**
 * Carries out the answers that a client brought back with a signed state, where its revision has such states. Signature, principal and expiry were checked before the call got here. The state counts once, and only
 * for the call that asked; it is used up together with what follows from the answers, or not at all.
 */
export async function carriedAnswers(call: ToolCall): Promise<Carried> {
  const { context, client, runs, principal, digest, deps } = call;
  const isAsked = client.revision.asks === "input_required";
  const state = isAsked ? context.mcpReq.requestState<ApprovalState>() : undefined;
  if (state === undefined) return { ok: true, answers: undefined };
  const { run: runId, id } = state;
  const view = await runs.view(principal, runId);
  if (view === undefined) return { ok: false, outcome: unknownRun(runId) };
  const problem = state.call === digest ? undefined : "other_arguments";
  const { decisions, ...read } = readForms(call, state, view.approvals);
  const used = await runs.useAnswer(principal, runId, {
    id,
    ...(problem === undefined ? {} : { problem }),
    decisions: decisions.map(({ approval, decision }) => ({ approvalId: approval.id, decision })),
    answers: [],
    replies: repliesIn(call, state),
    by: "input_required",
  });
  if (used === undefined) {
    deps.logger.warn("state.refused", { principal, runId, reason: problem ?? "replayed" });
    return { ok: false, outcome: refused(problem === undefined ? replayed(runId) : otherArguments(runId)) };
  }
  const { left, problems } = read;
  const notes: string[] = [];
  for (const [index, outcome] of used.decided.entries()) {
    const decided = decisions[index];
    if (decided === undefined) continue;
    const { approval, response } = decided;
    const taken = takenBy(outcome, approval, response, { logger: deps.logger, runId, notes });
    if (taken.kind === "left") left.add(approval.id);
    if (taken.kind === "again") problems.set(approval.id, taken.problem);
  }
  if (used.replied.includes(false)) deps.logger.info("model.replied_before", { runId });
  return { ok: true, answers: { state, left, problems, notes } };
}

interface Read {
  decisions: { approval: Approval; response: FormResponse; decision: PersonDecision }[];
  left: Set<string>;
  problems: Map<string, string>;
}

/** Reads the answers. The state only selects approvals; their rows say whether they can be decided. */
function readForms(
  { context, deps, open }: ToolCall,
  state: ApprovalState,
  approvals: readonly Approval[],
): Read {
  const read: Read = { decisions: [], left: new Set(state.left), problems: new Map() };
  // The page stores its decisions by itself.
  if (state.page !== undefined) return read;
  const elapsed = deps.clock() - state.at;
  for (const { key, approval: id, digest } of state.asked) {
    const approval = approvals.find((candidate) => candidate.id === id);
    // Tied to the tool and the arguments that were shown.
    if (approval === undefined || callDigest(approval.tool, approval.args) !== digest) continue;
    const response = inputResponse(context.mcpReq.inputResponses, key);
    if (response.kind === "missing") continue;
    if (response.kind === "elicit" && isUnread(response, elapsed)) open.refusedUnread(approval);
    const said = response.kind === "elicit" ? readAnswer(approval, response, elapsed) : NO_ANSWER;
    if (said.kind === "left") read.left.add(id);
    if (said.kind === "again") read.problems.set(id, said.problem);
    if (said.kind === "decision" && response.kind === "elicit") {
      read.decisions.push({ approval, response, decision: said.decision });
    }
  }
  return read;
}

const NO_ANSWER = { kind: "left" } as const;

/** Returns the replies of the client's model. Calls without a reply are asked again. */
function repliesIn(
  { context }: ToolCall,
  { models = [] }: ApprovalState,
): { callId: string; reply: SamplingReply }[] {
  return models.flatMap(({ key, call: callId }) => {
    const reply = samplingReply(context.mcpReq.inputResponses?.[key]);
    return reply === undefined ? [] : [{ callId, reply }];
  });
}

const replayed = (runId: string): string =>
  "These answers came before, so they were not used again. " +
  `Call check_deep_agent with run_id ${runId}: it tells where the run stands, and asks what is still open.`;

const otherArguments = (runId: string): string =>
  "The arguments differ from those of the call that asked for approval, so the answers were not used. " +
  `Call check_deep_agent with run_id ${runId} to be asked again.`;
