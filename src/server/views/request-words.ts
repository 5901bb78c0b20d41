/** Words about a request: the agent that asks, and the time until which it waits. */
import { shortTime } from "../../core/clock.ts";
import { displayName, oneLine } from "../../core/text.ts";
import type { AgentPath, OpenQuestion, RunRequest, Approval, RunView } from "../../runs/run.ts";
import { agentName, isApproval } from "../../runs/run.ts";
import { asText } from "./quoting.ts";

/** The agents on the way to `agent` with their tasks, outermost first. */
export const agentLabel = (agent: AgentPath): string =>
  joinAgents(agent, (segment) => displayName(agentName(segment)));

/** Their types alone. */
export const agentTypes = (agent: AgentPath): string =>
  joinAgents(agent, ({ name }) => displayName(oneLine(name, 64)));

const joinAgents = (agent: AgentPath, name: (segment: AgentPath[number]) => string): string =>
  agent.length === 0 ? "main agent" : agent.map(name).join(" › ");

/** Agents by their tasks, in quotes: a task is a text of a model. `shown`: how such a text is shown. */
export const whoAsks = (agent: AgentPath, shown: (text: string) => string = displayName): string =>
  agent.map((segment) => `"${shown(agentName(segment))}"`).join(" › ") || "The main agent";

/** Returns the line above a question: it names the asking agent, or marks another MCP server as such. */
export function askedBy(question: OpenQuestion): string {
  const who = whoAsks(question.agent, (text) => asText(text));
  if (question.kind === "ask") return `${who} asks:`;
  if (question.kind === "interrupt") return `${who} uses a tool that asks:`;
  if (question.kind === "review") return "Review of the proposed change:";
  return `Asked by the MCP server "${asText(question.server, 200)}", which gets the answer:`;
}

/** Describes the deadline of a request; empty if it waits indefinitely. */
export const deadlineText = ({ kind, expiresAt }: Pick<RunRequest, "kind" | "expiresAt">): string[] => {
  if (expiresAt === undefined) return [];
  const time = shortTime(expiresAt);
  return [kind === "approval" ? `Denied unless somebody decides by ${time}.` : `${continuesAfter(time)}.`];
};

/** Names the untrusted texts that kept rules from allowing the call; empty if there are none. */
export const heldBackText = ({ ruled }: Pick<Approval, "ruled">, shown = displayName): string[] =>
  ruled?.heldBack === undefined
    ? []
    : [
        `A rule would allow this, but this conversation has read: ${ruled.heldBack.map((source) => shown(oneLine(source, 120))).join(", ")}; so you are asked.`,
      ];

export const continuesAfter = (time: string): string =>
  `If there is no answer by ${time}, the agent continues without one`;

/** Follows an answer to a question that had expired. */
export const ANSWERED_LATE =
  "The agent had continued without an answer. It reads yours as a message at its next step.";

/** Follows the decision about a call that did nothing, because its effect had changed by then; empty for any other. */
export function askedAgainText(own: Approval, { requests }: Pick<RunView, "requests">): string {
  const callOf = ({ tool, args, agent }: Approval): string => JSON.stringify([tool, args, agent]);
  const next = requests
    .filter(isApproval)
    .find(
      (other) =>
        other.requestedAt >= (own.decidedAt ?? Infinity) &&
        other.id !== own.id &&
        callOf(other) === callOf(own),
    );
  if (next?.preview.again !== true) return "";
  const effect = own.preview.kind === "diff" ? "the file" : "what it would do";
  return `; ${effect} had changed, so it was asked again`;
}
