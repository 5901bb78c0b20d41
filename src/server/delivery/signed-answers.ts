import { inputResponse } from "@modelcontextprotocol/server";
import { defined } from "../../core/unknown.ts";
import type { GivenAnswer } from "../../runs/ports.ts";
import type { RunView, RunRequest } from "../../runs/run.ts";
import type { ToolCall } from "../calls/call.ts";
import { type Outcome, refused, unknownRun } from "../calls/outcome.ts";
import type { ApprovalState } from "../calls/state.ts";
import { type FormResponse, readAnswer, takenBy } from "./answers.ts";
import { samplingReply } from "./client-model.ts";
import { digestOf } from "./input-required.ts";
import type { CarriedAnswers } from "./session.ts";

/**
 * Carries out the answers that a client returned with a signed state, if its revision has such states. Signature,
 * principal and expiry were checked before. The state counts once, and only for the call that asked; it is used up
 * together with the effects of the answers, or not at all. Returns the answers, or the outcome that refuses them.
 */
export async function carriedAnswers(
  call: ToolCall,
): Promise<{ ok: true; answers: CarriedAnswers | undefined } | { ok: false; outcome: Outcome }> {
  const { context, client, runs, principal, digest, deps } = call;
  const isAsked = client.revision.asks === "input_required";
  const state = isAsked ? context.mcpReq.requestState<ApprovalState>() : undefined;
  if (state === undefined) return { ok: true, answers: undefined };
  const { run: runId, id } = state;
  const view = await runs.read.view(runId);
  if (view === undefined) return { ok: false, outcome: unknownRun(runId) };
  const problem = state.call === digest ? undefined : "other_arguments";
  const { said, left, problems } = readForms(call, state, view);
  const used = await runs.requests.useAnswer(runId, {
    id,
    ...defined({ problem }),
    answers: said.map((one) => one.said),
    // Calls of the client's model without a reply are asked again.
    replies: (state.models ?? []).flatMap(({ key, call: callId }) => {
      const reply = samplingReply(context.mcpReq.inputResponses?.[key]);
      return reply === undefined ? [] : [{ callId, reply }];
    }),
    by: "input_required",
  });
  if (used === undefined) {
    deps.logger.warn("state.refused", { principal, runId, reason: problem ?? "replayed" });
    const message =
      problem === undefined
        ? "These answers came before, so they were not used again. " +
          `Call check_deep_agent with run_id ${runId}: it tells where the run stands, and asks what is still open.`
        : "The arguments differ from those of the call that asked, so the answers were not used. " +
          `Call check_deep_agent with run_id ${runId} to be asked again.`;
    return { ok: false, outcome: refused(message) };
  }
  const notes: string[] = [];
  for (const [index, { waiting, response }] of said.entries()) {
    const outcome = used.answered[index];
    if (outcome === undefined) continue;
    const taken = takenBy(outcome, waiting, response, { logger: deps.logger, runId, notes });
    if (taken.kind === "left") left.add(waiting.id);
    if (taken.kind === "again") problems.set(waiting.id, taken.problem);
  }
  if (used.replied.includes(false)) deps.logger.info("model.replied_before", { runId });
  return { ok: true, answers: { state, left, problems, notes } };
}

/** Reads the answers. The state only selects the requests; the rows record whether they still wait. */
function readForms({ context, client, deps, open }: ToolCall, state: ApprovalState, { requests }: RunView) {
  const said: { waiting: RunRequest; response: FormResponse; said: GivenAnswer }[] = [];
  const left = new Set(state.left);
  const problems = new Map<string, string>();
  // The page stores its decisions by itself.
  if (state.page !== undefined) return { said, left, problems };
  const elapsed = deps.clock() - state.at;
  for (const { key, approval: id, digest } of state.asked) {
    const waiting = requests.find((candidate) => candidate.id === id);
    // Tied to the call or the question that was shown.
    if (waiting === undefined || digestOf(waiting) !== digest) continue;
    const response = inputResponse(context.mcpReq.inputResponses, key);
    if (response.kind === "missing") continue;
    if (response.kind !== "elicit") {
      left.add(id);
      continue;
    }
    const answer = readAnswer(waiting, response, { elapsed, client });
    if (answer.kind === "left") left.add(id);
    if (answer.kind === "left" && answer.isUnread) open.refusedUnread(waiting);
    if (answer.kind === "again") problems.set(id, answer.problem);
    if (answer.kind === "said") said.push({ waiting, response, said: answer.said });
  }
  return { said, left, problems };
}
