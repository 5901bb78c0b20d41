/** Subagent events of a step. */
import { firstSentence, oneLine } from "../../core/text.ts";
import type { AgentPathSegment } from "../contracts/state.ts";
import type { Step } from "../contracts/middleware.ts";

/** The place of a subagent below the agent that calls it. */
export const agentSegment = (callId: string, name: string, description: string): AgentPathSegment => ({
  callId,
  name,
  task: firstSentence(description, 60).replace(/\.$/, ""),
});

/** Reports that a subagent waits or starts, and returns its place. */
export function tellChild(
  kind: "subagent_queued" | "subagent_started",
  callId: string,
  name: string,
  description: string,
  step: Step,
): AgentPathSegment {
  const segment = agentSegment(callId, name, description);
  step.tell({ kind, callId, name, description: oneLine(description, 300) }, segment);
  return segment;
}

/** Reports that a subagent has ended, also in an earlier process. */
export function tellReport(
  segment: AgentPathSegment,
  { text, status = "success" }: { text: string; status?: "success" | "error" | undefined },
  step: Step,
): void {
  const { callId, name } = segment;
  step.tell({ kind: "subagent_finished", callId, name, status, report: oneLine(text, 300) }, segment);
}
