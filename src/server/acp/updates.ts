/** Turns the journal of a run into the updates of an editor's session. */
import type * as acp from "@agentclientprotocol/sdk";
import { join } from "node:path";
import { findingText } from "../views/goal-report.ts";
import { defined } from "../../core/unknown.ts";
import { displayText } from "../../core/text.ts";
import { type RunEvent, stepOf } from "../../runs/events.ts";
import type { LiveText } from "../../runs/live-texts.ts";
import { type AgentPath, type Approval, agentName, endedEarly } from "../../runs/run.ts";
import { type Said, Spoken } from "../views/spoken.ts";
import { diffLines } from "../../core/diff.ts";
import { fenced } from "../views/quoting.ts";
import words from "./words.json" with { type: "json" };

const KINDS = words.kinds as Readonly<Record<string, acp.ToolKind>>; // the table has only these
const WORKSPACE = "/workspace/";

/** Returns the path of a workspace file on this machine; other files keep their virtual path. */
export const pathIn = (cwd: string, path: string): string =>
  path.startsWith(WORKSPACE) ? join(cwd, path.slice(WORKSPACE.length)) : path;

const toolLocations = (cwd: string, path: unknown): { locations?: acp.ToolCallLocation[] } =>
  typeof path === "string" && path.startsWith(WORKSPACE) ? { locations: [{ path: pathIn(cwd, path) }] } : {};

type EventOf<K extends RunEvent["kind"]> = Extract<RunEvent, { kind: K }>;

/** Follows one run. An approved call keeps the entry that it got when it was asked for. */
export class RunUpdates {
  readonly #cwd: string;
  /** Entries of the calls that are at work, by agent and call. */
  readonly #calls = new Map<string, string>();
  /** Entries of decided approvals whose calls have not begun, by agent and tool. */
  readonly #decided = new Map<string, string[]>();
  readonly #spoken = new Spoken();

  constructor(cwd: string) {
    this.#cwd = cwd;
  }

  of(event: RunEvent): acp.SessionUpdate[] {
    // Others follow any message but the answer.
    const end = event.kind === "run_completed" ? "" : "\n\n";
    return [...this.#spoken.of(event).flatMap((part) => said(part, end)), ...this.#updatesOf(event)];
  }

  live(text: LiveText): acp.SessionUpdate[] {
    return this.#spoken.live(text).flatMap((part) => said(part, "\n\n"));
  }

  #updatesOf(event: RunEvent): acp.SessionUpdate[] {
    switch (event.kind) {
      case "todos": {
        if (event.agent.length > 0) return [];
        const entries = event.data.todos.map(({ content, status }) => {
          return { content: displayText(content), status, priority: "medium" as const };
        });
        return [{ sessionUpdate: "plan", entries }];
      }
      case "tool_started":
        return this.#started(event);
      case "tool_finished":
        return this.#finished(event);
      case "file_changed": {
        const { callId, path, diff } = event.data;
        const content = diff === undefined ? undefined : diffContent(diff, pathIn(this.#cwd, path));
        const change = { ...defined({ content }), ...toolLocations(this.#cwd, path) };
        return this.#update(callKey(event.agent, callId), change);
      }
      case "approval_requested": {
        const { approvalId, tool, summary } = event.data;
        const toolCallId = entryId(event.runId, approvalId);
        const call = { toolCallId, status: "pending" as const, ...callEntry(event.agent, tool, summary) };
        // Editors know only calls that they were shown before they ask about them.
        return [{ sessionUpdate: "tool_call", ...call }];
      }
      case "approval_decided":
        return this.#settled(event);
      case "subagent_started": {
        const { callId, name, description: task } = event.data;
        const agent = event.agent.at(-1) ?? { callId, name, task };
        return this.#update(callerKey(event), { title: displayText(agentName(agent)) });
      }
      case "subagent_finished":
        return this.#update(callerKey(event), { content: [textContent(event.data.report)] });
      case "goal_judged":
        return thought([stepOf(event), ...event.data.verdicts.map(findingText)].join("\n\n"), event);
      case "goal_ended":
      case "warning":
      case "model_retry":
      case "compacted":
        return thought(stepOf(event) ?? "", event);
      case "run_completed": {
        const { stopReason } = event.data;
        if (stopReason === undefined) return [];
        const text = `\n\n_This run ${endedEarly(stopReason)}._`;
        return [messageOf("agent_message_chunk", text, `${event.runId}:${event.seq}`)];
      }
      default:
        return [];
    }
  }

  asked(approval: Approval, title: string, content: acp.ToolCallContent[]) {
    return {
      toolCallId: entryId(approval.runId, approval.id),
      title,
      name: approval.tool,
      kind: KINDS[approval.tool] ?? "other",
      status: "pending" as const,
      content,
      rawInput: approval.args,
      ...toolLocations(this.#cwd, approval.args["file_path"] ?? approval.args["path"]),
    };
  }

  /** The call of a decided approval begins next, or has ended unless it was approved. */
  #settled({ runId, agent, data }: EventOf<"approval_decided">): acp.SessionUpdate[] {
    const toolCallId = entryId(runId, data.approvalId);
    if (data.decision === "withdrawn")
      return [{ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }];
    const key = callKey(agent, data.tool);
    this.#decided.set(key, [...(this.#decided.get(key) ?? []), toolCallId]);
    return [];
  }

  #started({ runId, seq, agent, data }: EventOf<"tool_started">): acp.SessionUpdate[] {
    const { tool, summary, callId } = data;
    // Shown as plans or questions.
    if (tool === "write_todos" || tool === "ask_user") return [];
    const asked = this.#decided.get(callKey(agent, tool))?.shift();
    const toolCallId = asked ?? entryId(runId, String(seq));
    this.#calls.set(callKey(agent, callId), toolCallId);
    const call = {
      toolCallId,
      status: "in_progress" as const,
      ...callEntry(agent, tool, summary),
      ...toolLocations(this.#cwd, /^\S+ (\/workspace\/.*)$/.exec(summary)?.[1]),
    };
    return [{ sessionUpdate: asked === undefined ? "tool_call" : "tool_call_update", ...call }];
  }

  #finished({ agent, data }: EventOf<"tool_finished">): acp.SessionUpdate[] {
    const { callId, tool, summary } = data;
    const key = callKey(agent, callId);
    if (!this.#calls.has(key)) {
      // It did not begin: a person rejected it.
      const asked = this.#decided.get(callKey(agent, tool))?.shift();
      if (asked !== undefined) this.#calls.set(key, asked);
    }
    return this.#update(key, {
      status: data.status === "success" ? "completed" : "failed",
      // A subagent has sent its report.
      ...(tool === "task" && data.status === "success"
        ? {}
        : { content: [textContent(displayText(summary))] }),
    });
  }

  #update(key: string, changed: Omit<acp.ToolCallUpdate, "toolCallId">): acp.SessionUpdate[] {
    const toolCallId = this.#calls.get(key);
    return toolCallId === undefined ? [] : [{ sessionUpdate: "tool_call_update", toolCallId, ...changed }];
  }
}

const callEntry = (agent: AgentPath, tool: string, summary: string) => ({
  title: displayText([...agent.slice(-1).map(agentName), summary].join(": ")),
  name: tool,
  kind: KINDS[tool] ?? "other",
});

const entryId = (runId: string, name: string): string => `${runId}:${name}`;
const callKey = (agent: AgentPath, name: string): string =>
  JSON.stringify([...agent.map(({ callId }) => callId), name]);

/** The key of the call that a subagent works for. */
const callerKey = ({ agent, data }: EventOf<"subagent_started" | "subagent_finished">): string =>
  callKey(agent.slice(0, -1), data.callId);
function said({ id, text, isLast }: Said, end: string): acp.SessionUpdate[] {
  const whole = isLast ? text + end : text;
  return whole === "" ? [] : [messageOf("agent_message_chunk", whole, id)];
}
const thought = (text: string, { runId, seq }: RunEvent): acp.SessionUpdate[] =>
  text === "" ? [] : [messageOf("agent_thought_chunk", `${displayText(text)}\n`, `${runId}:${seq}`)];

export const messageOf = (
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
  messageId: string,
): acp.SessionUpdate => ({ sessionUpdate, content: { type: "text", text }, messageId });

/** One change for each part of the diff that has all its lines; a diff in which lines are left out, as text. */
export function diffContent(diff: string, path: string): acp.ToolCallContent[] {
  const asText = [textContent(fenced(diff, "diff"))];
  const hunks: { before: string[]; after: string[] }[] = [];
  for (const { kind, text } of diffLines(diff)) {
    const hunk = hunks.at(-1);
    const line = text.slice(1);
    if (kind === "hunk") hunks.push({ before: [], after: [] });
    if (kind === "note" && text !== "" && !text.startsWith("\\")) return asText;
    if (kind === "del" || kind === "context") hunk?.before.push(line);
    if (kind === "add" || kind === "context") hunk?.after.push(line);
  }
  if (hunks.length === 0) return asText;
  const isNew = diff.startsWith("--- /dev/null\n");
  return hunks.map(({ before, after }) => ({
    type: "diff",
    path,
    oldText: isNew ? null : before.join("\n"),
    newText: after.join("\n"),
  }));
}

export const textContent = (text: string): acp.ToolCallContent => ({
  type: "content",
  content: { type: "text", text },
});
