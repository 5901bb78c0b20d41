/** Turns the journal of a run into events of AG-UI. */
import type { Event, EventType } from "@ag-ui/core";
import { displayText } from "../../core/text.ts";
import { type RunEvent, type RunEventKind, stepOf } from "../../runs/events.ts";
import type { AgentPath } from "../../runs/run.ts";

/** An event as it is sent. The SDK's enumeration has the same texts, and would be loaded for them. */
export type SentEvent = {
  [K in EventType]: Omit<Extract<Event, { type: K }>, "type"> & { type: `${K}` };
}[EventType];

type EventOf<K extends RunEventKind> = Extract<RunEvent, { kind: K }>;

/** Follows one run. */
export class RunEvents {
  /** The newest text of the agent. The last one is the beginning of the answer, which is sent whole instead. */
  #saying: SentEvent[] = [];
  /** Calls that have begun and not ended, by agent and call. */
  readonly #calls = new Map<string, string>();

  of(event: RunEvent): SentEvent[] {
    const earlier = event.kind === "run_completed" ? [] : this.#saying;
    this.#saying = [];
    return [...earlier, ...this.#eventsOf(event)];
  }

  /** The text that is still held back, for a stream that ends before the run does. */
  end(): SentEvent[] {
    const left = this.#saying;
    this.#saying = [];
    return left;
  }

  #eventsOf(event: RunEvent): SentEvent[] {
    switch (event.kind) {
      case "model_called":
        if (event.data.purpose !== undefined) return [];
        if (event.agent.length > 0) return said(event.data.text, event);
        this.#saying = said(event.data.text, event);
        return [];
      case "run_completed":
        return said(event.data.answer, event);
      case "todos":
        return event.agent.length > 0
          ? []
          : [{ type: "STATE_SNAPSHOT", snapshot: { runId: event.runId, todos: event.data.todos } }];
      case "tool_started":
        return this.#started(event);
      case "tool_finished":
        return this.#finished(event);
      case "subagent_started":
        return [
          {
            type: "SUBAGENT_STARTED",
            subagentRunId: subagentOf(event, event.agent),
            name: event.data.name,
            description: event.data.description,
            ...(event.agent.length > 1
              ? { parentSubagentRunId: subagentOf(event, event.agent.slice(0, -1)) }
              : {}),
          },
        ];
      case "subagent_finished":
        return ended(event);
      case "file_changed":
      case "goal_judged":
      case "goal_ended":
      case "warning":
      case "model_retry":
      case "compacted":
      case "message_received":
        return [{ type: "CUSTOM", name: event.kind, value: noted(event), ...by(event) }];
      default:
        return [];
    }
  }

  #started(event: EventOf<"tool_started">): SentEvent[] {
    const toolCallId = `${event.runId}:${event.seq}`;
    this.#calls.set(keyOf(event), toolCallId);
    const { tool, summary } = event.data;
    return [
      { type: "TOOL_CALL_START", toolCallId, toolCallName: tool, ...by(event) },
      { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify({ summary }), ...by(event) },
      { type: "TOOL_CALL_END", toolCallId, ...by(event) },
    ];
  }

  #finished(event: EventOf<"tool_finished">): SentEvent[] {
    const toolCallId = this.#calls.get(keyOf(event));
    if (toolCallId === undefined) return [];
    this.#calls.delete(keyOf(event));
    const content = displayText(event.data.summary);
    const messageId = `${event.runId}:${event.seq}`;
    return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool", ...by(event) }];
  }
}

const keyOf = ({ agent, data }: EventOf<"tool_started" | "tool_finished">): string =>
  JSON.stringify([...agent.map(({ callId }) => callId), data.callId]);

const subagentOf = ({ runId }: RunEvent, agent: AgentPath): string =>
  [runId, ...agent.map(({ callId }) => callId)].join(":");

const by = (event: RunEvent): { subagentRunId?: string } =>
  event.agent.length === 0 ? {} : { subagentRunId: subagentOf(event, event.agent) };

function said(text: string, event: RunEvent): SentEvent[] {
  if (text === "") return [];
  const messageId = `${event.runId}:${event.seq}`;
  return [
    { type: "TEXT_MESSAGE_START", messageId, role: "assistant", ...by(event) },
    { type: "TEXT_MESSAGE_CONTENT", messageId, delta: text, ...by(event) },
    { type: "TEXT_MESSAGE_END", messageId, ...by(event) },
  ];
}

function ended(event: EventOf<"subagent_finished">): SentEvent[] {
  const subagentRunId = subagentOf(event, event.agent);
  const { status, report } = event.data;
  return status === "error"
    ? [{ type: "SUBAGENT_ERROR", subagentRunId, message: report }]
    : [{ type: "SUBAGENT_FINISHED", subagentRunId, result: report, outcome: { type: "success" } }];
}

/** Facts of an event that AG-UI has no event of its own for. */
const noted = (event: RunEvent): object =>
  event.kind === "file_changed" || event.kind === "goal_judged" || event.kind === "goal_ended"
    ? event.data
    : { text: stepOf(event) ?? "" };
