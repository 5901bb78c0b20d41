import { refused, unknownRun, type Outcome } from "../outcome.ts";
import type { ApprovalState } from "../state-codec.ts";
import type { ToolCall } from "../tools/tool.ts";

/** The answers that came with a call, ready to be carried out, or why they are not. */
export type Carried = { ok: true; state: ApprovalState | undefined } | { ok: false; outcome: Outcome };

/**
 * The state a 2026-07-28 client brought back with answers; 2025-era clients have none of ours. Signature,
 * principal and expiry were checked before the call got here. It is used up now: it counts once, and only for
 * the call that asked.
 */
export async function carriedAnswers(call: ToolCall): Promise<Carried> {
  const { context, client, runs, principal, digest, deps } = call;
  const state = client.era === "modern" ? context.mcpReq.requestState<ApprovalState>() : undefined;
  if (state === undefined) return { ok: true, state };
  const { run, id } = state;
  if ((await runs.view(principal, run)) === undefined) return { ok: false, outcome: unknownRun(run) };
  const problem = state.call === digest ? undefined : "other_arguments";
  if (await runs.useAnswer(principal, run, id, problem)) return { ok: true, state };
  deps.logger.warn("state.refused", { principal, runId: run, reason: problem ?? "replayed" });
  return { ok: false, outcome: refused(problem === undefined ? replayed(run) : otherArguments(run)) };
}

const replayed = (runId: string): string =>
  "These answers came before, so they were not used again. " +
  `Call check_deep_agent with run_id ${runId}: it tells where the run stands, and asks what is still open.`;

const otherArguments = (runId: string): string =>
  "The arguments differ from those of the call that asked for approval, so the answers were not used. " +
  `Call check_deep_agent with run_id ${runId} to be asked again.`;
