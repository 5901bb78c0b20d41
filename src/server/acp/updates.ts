/** Turns the journal of a run into the updates of an editor's session. */
import { join } from "node:path";
import type {
  PlanEntry,
  SessionUpdate,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from "@agentclientprotocol/sdk";
import { displayText } from "../../core/text.ts";
import { type RunEvent, type RunEventKind, stepOf } from "../../runs/events.ts";
import { findingText } from "../../runs/goal.ts";
import type { LiveText } from "../../runs/live-texts.ts";
import { type AgentPath, type Approval, agentName, endedEarly } from "../../runs/run.ts";
import { type Said, Spoken } from "../views/spoken.ts";
import { diffContent, textContent } from "./diffs.ts";

const KINDS: Readonly<Record<string, ToolKind>> = {
  ls: "read",
  read_file: "read",
  glob: "search",
  grep: "search",
  search_memories: "search",
  web_search: "search",
  web_fetch: "fetch",
  write_file: "edit",
  edit_file: "edit",
  delete: "delete",
  execute: "execute",
  task: "think",
};
/** Tools whose calls are shown as plans or questions. */
const SHOWN_OTHERWISE: ReadonlySet<string> = new Set(["write_todos", "ask_user"]);
const WORKSPACE = "/workspace/";

const kindOf = (tool: string): ToolKind => KINDS[tool] ?? "other";

/** Path of a file of the workspace on this machine; other files keep their virtual path. */
export const pathIn = (cwd: string, path: string): string =>
  path.startsWith(WORKSPACE) ? join(cwd, path.slice(WORKSPACE.length)) : path;

const locationsOf = (cwd: string, path: unknown): { locations?: ToolCallLocation[] } =>
  typeof path === "string" && path.startsWith(WORKSPACE) ? { locations: [{ path: pathIn(cwd, path) }] } : {};

type EventOf<K extends RunEventKind> = Extract<RunEvent, { kind: K }>;

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

  of(event: RunEvent): SessionUpdate[] {
    if (event.kind === "run_completed")
      return [...this.#spoken.answered(event).flatMap((part) => said(part, "")), ...endOf(event)];
    if (event.kind === "model_called" && event.agent.length === 0 && event.data.purpose === undefined)
      return this.#spoken.told(event).flatMap((part) => said(part));
    return [...this.#spoken.next().flatMap((part) => said(part)), ...this.#updatesOf(event)];
  }

  /** A text of the agent that is being written. */
  live(text: LiveText): SessionUpdate[] {
    return this.#spoken.live(text).flatMap((part) => said(part));
  }

  #updatesOf(event: RunEvent): SessionUpdate[] {
    switch (event.kind) {
      case "todos":
        return event.agent.length > 0 ? [] : [{ sessionUpdate: "plan", entries: planOf(event) }];
      case "tool_started":
        return this.#started(event);
      case "tool_finished":
        return this.#finished(event);
      case "file_changed":
        return this.#changed(event);
      case "approval_decided":
        return this.#settled(event);
      case "subagent_started":
        return this.#update(callerOf(event), { title: shown(agentName(lastOf(event))) });
      case "subagent_finished":
        return this.#update(callerOf(event), { content: [textContent(event.data.report)] });
      case "goal_judged":
        return thought([stepOf(event), ...event.data.verdicts.map(findingText)].join("\n\n"), event);
      case "goal_ended":
      case "warning":
      case "model_retry":
      case "compacted":
        return thought(stepOf(event) ?? "", event);
      default:
        return [];
    }
  }

  /** The entry of a call that a person is asked about. */
  asked(approval: Approval, title: string, content: ToolCallContent[]) {
    return {
      toolCallId: entryOf(approval.runId, approval.id),
      title,
      name: approval.tool,
      kind: kindOf(approval.tool),
      status: "pending" as const,
      content,
      rawInput: approval.args,
      ...locationsOf(this.#cwd, approval.args["file_path"] ?? approval.args["path"]),
    };
  }

  /** The call of a decided approval begins next, or has ended unless it was approved. */
  #settled({ runId, agent, data }: EventOf<"approval_decided">): SessionUpdate[] {
    const toolCallId = entryOf(runId, data.approvalId);
    if (data.decision === "withdrawn")
      return [{ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }];
    const key = keyOf(agent, data.tool);
    this.#decided.set(key, [...(this.#decided.get(key) ?? []), toolCallId]);
    return [];
  }

  #started({ runId, seq, agent, data }: EventOf<"tool_started">): SessionUpdate[] {
    const { tool, summary, callId } = data;
    if (SHOWN_OTHERWISE.has(tool)) return [];
    const asked = this.#decided.get(keyOf(agent, tool))?.shift();
    const toolCallId = asked ?? entryOf(runId, String(seq));
    this.#calls.set(keyOf(agent, callId), toolCallId);
    const call = {
      toolCallId,
      title: shown([...agent.slice(-1).map(agentName), summary].join(": ")),
      name: tool,
      kind: kindOf(tool),
      status: "in_progress" as const,
      ...locationsOf(this.#cwd, PATH.exec(summary)?.[1]),
    };
    return asked === undefined
      ? [{ sessionUpdate: "tool_call", ...call }]
      : [{ sessionUpdate: "tool_call_update", ...call }];
  }

  #finished({ agent, data }: EventOf<"tool_finished">): SessionUpdate[] {
    const { callId, tool, summary } = data;
    const key = keyOf(agent, callId);
    if (!this.#calls.has(key)) {
      // It did not begin: a person rejected it.
      const asked = this.#decided.get(keyOf(agent, tool))?.shift();
      if (asked !== undefined) this.#calls.set(key, asked);
    }
    return this.#update(key, {
      status: data.status === "success" ? "completed" : "failed",
      // A subagent has told its report.
      ...(tool === "task" && data.status === "success" ? {} : { content: [textContent(shown(summary))] }),
    });
  }

  #changed({ agent, data: { callId, path, diff } }: EventOf<"file_changed">): SessionUpdate[] {
    const content = diff === undefined ? {} : { content: diffContent(diff, pathIn(this.#cwd, path)) };
    return this.#update(keyOf(agent, callId), { ...content, ...locationsOf(this.#cwd, path) });
  }

  #update(key: string, changed: Omit<ToolCallChange, "toolCallId" | "sessionUpdate">): SessionUpdate[] {
    const toolCallId = this.#calls.get(key);
    return toolCallId === undefined ? [] : [{ sessionUpdate: "tool_call_update", toolCallId, ...changed }];
  }
}

type ToolCallChange = Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>;

/** The path of a file in the line about a call. */
const PATH = /^\S+ (\/workspace\/.*)$/;

const shown = (text: string): string => displayText(text);
const entryOf = (runId: string, name: string): string => `${runId}:${name}`;
const keyOf = (agent: AgentPath, name: string): string =>
  JSON.stringify([...agent.map(({ callId }) => callId), name]);

/** The key of the call that a subagent works for. */
const callerOf = ({ agent, data }: EventOf<"subagent_started" | "subagent_finished">): string =>
  keyOf(agent.slice(0, -1), data.callId);
const lastOf = ({ agent, data }: EventOf<"subagent_started">): AgentPath[number] =>
  agent.at(-1) ?? { callId: data.callId, name: data.name, task: data.description };

/** `end`: stands behind a message that others follow. */
function said({ id, text, isLast }: Said, end = "\n\n"): SessionUpdate[] {
  const shown = isLast ? `${text}${end}` : text;
  return shown === "" ? [] : [messageOf("agent_message_chunk", shown, id)];
}
const thought = (text: string, { runId, seq }: RunEvent): SessionUpdate[] =>
  text === "" ? [] : [messageOf("agent_thought_chunk", `${displayText(text)}\n`, `${runId}:${seq}`)];

export const messageOf = (
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
  messageId: string,
): SessionUpdate => ({ sessionUpdate, content: { type: "text", text }, messageId });

const endOf = (event: EventOf<"run_completed">): SessionUpdate[] =>
  event.data.stopReason === undefined
    ? []
    : [
        messageOf(
          "agent_message_chunk",
          `\n\n_This run ${endedEarly(event.data.stopReason)}._`,
          `${event.runId}:${event.seq}`,
        ),
      ];

const planOf = ({ data }: EventOf<"todos">): PlanEntry[] =>
  data.todos.map(({ content, status }) => ({ content: shown(content), status, priority: "medium" }));
