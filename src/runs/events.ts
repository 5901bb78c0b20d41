import type { ActionRequest, AgentEvent, AgentPath, HitlRequest, TokenUsage } from "../agent/agent.ts";
import { cutMiddle, displayName, displayText, headOf, oneLine } from "../core/text.ts";
import { type Json, toJson } from "../core/json.ts";
import type { CallPreview, Todo } from "../tools/tool.ts";
import type { Approval, RunEventKind } from "./run.ts";

/**
 * What the journal says, by kind of event (`data` of a RunEvent; all texts are bounded):
 *
 * - `run_started`: `forkedFrom` when its thread began from a point of another
 * - `run_resumed` (after a crash or a shutdown), `run_parked`: nothing
 * - `run_completed`: `answer` (its beginning; the whole is in the run), `stopReason` when it ended early
 * - `run_failed`: `reason`, `message`; `run_cancelled`: `reason`
 * - `todos`: `todos`
 * - `subagent_started`: `callId`, `name`, `description`; the event's `agent` is the subagent itself
 * - `subagent_finished`: `callId`, `name`, `status` ("success" | "error"), `report`
 * - `tool_started`: `callId`, `tool`, `summary`; `tool_finished`: these and `status`
 * - `model_called`: `model`, `usage`, `text`, `costUsd` where it is known, `purpose` ("summary") where it was no turn
 * - `file_changed`: `callId`, `path`, `diff` where the call tells it
 * - `approval_requested`: `approvalId`, `tool`, `summary`
 * - `approval_decided`: `approvalId`, `tool`, `decision` ("approve" | "edit" | "reject" | "withdrawn" |
 *   "approve_same": and all calls that count as the same), `by` (`deadline`: nobody decided in time; `same as …`:
 *   a person had approved it together with another)
 * - `answer_refused`: `reason` ("replayed", "other_arguments", …): a client's signed answer was not used
 * - `model_requested`, `model_awaited`: a client is to answer a model call; nobody has for a while: nothing
 * - `compacted`: `how` ("shortened": long texts and arguments; "summarized": all before the newest part),
 *   `messages` (how many), `path` (file with what was summarized)
 * - `model_retry`: `model`, `reason`, `message`, `attempt`, `pauseMs`: a call failed and is made again after a pause
 * - `warning`: `message`
 * - `message_received`: `messageId`, `text` (its beginning)
 */
export interface JournalEntry {
  kind: RunEventKind;
  agent: AgentPath;
  data: Record<string, unknown>;
  /** What the event tells about; absent for events that are never repeats. */
  identity?: string;
  /** Nothing new if the journal has any event of this identity. */
  recalled?: true;
  /** What the event changes in the run's row. */
  effect?: RunEffect;
}

export interface RunEffect {
  todos?: Todo[];
  usage?: TokenUsage;
  /** Newest text of the main agent. */
  answer?: string;
}

/** Agent events that are journalled as they are; the others change the run's state. */
export type ToldEvent = Exclude<AgentEvent, { kind: "approval_requested" | "paused" | "finished" }>;

const LINE = 200;
const TEXT = 2000;
/** Longest arguments that a person is shown where a tool has no preview of its own. */
const PREVIEW = 20_000;
const DIFF = 4000;
const TODOS = 100;

export function entryOf(event: ToldEvent): JournalEntry {
  const { kind, agent } = event;
  switch (event.kind) {
    case "todos":
      return todosEntry(agent, event.todos);
    case "tool_started": {
      const recalled = event.recalled === true ? { recalled: true as const } : {};
      return { kind, agent, data: callData(event), identity: callIdentity(event), ...recalled };
    }
    case "subagent_started":
    case "subagent_finished":
    case "tool_finished":
    case "file_changed":
      return { kind, agent, data: callData(event), identity: callIdentity(event) };
    case "model_called":
      return modelEntry(event);
    case "compacted": {
      const { how, messages, to, path } = event;
      const data = { how, messages, ...(path === undefined ? {} : { path }) };
      return { kind, agent, data, identity: identity("compacted", agent, to) };
    }
    case "model_retry": {
      const { model, reason, message, attempt, pauseMs } = event;
      return { kind, agent, data: { model, reason, message, attempt, pauseMs } };
    }
    case "warning": {
      const message = oneLine(event.message, TEXT);
      return { kind, agent, data: { message }, identity: identity("warning", agent, message) };
    }
  }
}

/**
 * Whether `entry` repeats `latest`, the newest journalled event of the same identity. A call that starts
 * again after it had finished is no repeat: some providers use a call id twice, and after a crash a call
 * whose end was not checkpointed does run again.
 */
export function isRepeat(
  entry: JournalEntry,
  latest: { kind: RunEventKind; data: Json<Record<string, unknown>> },
): boolean {
  if (entry.recalled === true) return true;
  return entry.kind === "todos" ? latest.data === toJson(entry.data) : latest.kind === entry.kind;
}

export const approvalId = (interruptId: string, index: number): string => `${interruptId}:${index}`;

/** The approvals one interrupt asks for, as yet undecided. */
export function approvalsOf(
  runId: string,
  interruptId: string,
  agent: AgentPath,
  request: HitlRequest,
  { now, deadlineMs }: { now: number; deadlineMs: number | undefined },
): Approval[] {
  return request.actionRequests.map((action, index) => ({
    id: approvalId(interruptId, index),
    runId,
    interruptId,
    index,
    agent,
    tool: action.name,
    args: action.args,
    preview: action.preview ?? argumentsPreview(action),
    allowedDecisions: request.reviewConfigs[index]?.allowedDecisions ?? ["approve", "edit", "reject"],
    ...(action.same === undefined ? {} : { same: action.same }),
    status: "pending",
    requestedAt: now,
    ...(deadlineMs === undefined ? {} : { expiresAt: now + deadlineMs }),
  }));
}

export function requestedEntry(approval: Approval): JournalEntry {
  return {
    kind: "approval_requested",
    agent: approval.agent,
    data: {
      approvalId: approval.id,
      tool: approval.tool,
      summary: oneLine(approval.preview.summary, LINE),
    },
  };
}

export function decidedEntry(approval: Approval, decision: string, by: string): JournalEntry {
  return {
    kind: "approval_decided",
    agent: approval.agent,
    data: { approvalId: approval.id, tool: approval.tool, decision, by },
  };
}

export function messageEntry(messageId: string, text: string): JournalEntry {
  return { kind: "message_received", agent: [], data: { messageId, text: cutMiddle(text, TEXT) } };
}

/** The beginning of a final answer, for the journal. */
export const answerExcerpt = (answer: string): string => cutMiddle(answer, TEXT);

function argumentsPreview(action: ActionRequest): CallPreview {
  return {
    kind: "arguments",
    summary: oneLine(displayText(headOf(action.description, TEXT)), LINE) || displayName(action.name),
    detail: displayText(cutMiddle(JSON.stringify(action.args, null, 2), PREVIEW)),
  };
}

function todosEntry(agent: AgentPath, all: Todo[]): JournalEntry {
  const todos = all
    .slice(0, TODOS)
    .map((todo) => ({ content: oneLine(todo.content, LINE), status: todo.status }));
  return {
    kind: "todos",
    agent,
    data: { todos },
    identity: identity("todos", agent),
    ...(agent.length === 0 ? { effect: { todos: all } } : {}),
  };
}

function modelEntry(event: Extract<ToldEvent, { kind: "model_called" }>): JournalEntry {
  const { agent, model, usage, costUsd, purpose } = event;
  const answer = agent.length === 0 && event.text !== "" ? { answer: event.text } : {};
  return {
    kind: "model_called",
    agent,
    data: {
      model,
      usage,
      text: cutMiddle(event.text, TEXT),
      ...(costUsd === undefined ? {} : { costUsd }),
      ...(purpose === undefined ? {} : { purpose }),
    },
    effect: { usage, ...answer },
  };
}

type CallEvent = Extract<ToldEvent, { callId: string }>;

function callData(event: CallEvent): Record<string, unknown> {
  const { callId } = event;
  switch (event.kind) {
    case "subagent_started":
      return { callId, name: event.name, description: cutMiddle(event.description, TEXT) };
    case "subagent_finished":
      return { callId, name: event.name, status: event.status, report: cutMiddle(event.report, TEXT) };
    case "tool_started":
      return { callId, tool: event.tool, summary: oneLine(event.summary, LINE) };
    case "tool_finished":
      return { callId, tool: event.tool, status: event.status, summary: oneLine(event.summary, LINE) };
    case "file_changed":
      return {
        callId,
        path: event.path,
        ...(event.diff === undefined ? {} : { diff: cutMiddle(event.diff, DIFF) }),
      };
  }
}

function callIdentity(event: CallEvent): string {
  if (event.kind === "file_changed") return identity("file", event.agent, event.callId, event.path);
  const subject = event.kind.startsWith("subagent_") ? "subagent" : "tool";
  return identity(subject, event.agent, event.callId);
}

const identity = (subject: string, agent: AgentPath, ...rest: string[]): string =>
  JSON.stringify([subject, agent.map((segment) => segment.callId), ...rest]);
