/** Turns the journal of a run into events of AG-UI. */
import type { Event, EventType } from "@ag-ui/core";
import { displayText } from "../../core/text.ts";
import { type RunEvent, stepOf } from "../../runs/events.ts";
import type { LiveText } from "../../runs/live-texts.ts";
import type { AgentPath } from "../../runs/run.ts";
import type { Said, Spoken } from "../views/spoken.ts";

/** An event as it is sent. The SDK's enumeration has the same texts, and would be loaded for them. */
export type SentEvent = {
  [K in EventType]: Omit<Extract<Event, { type: K }>, "type"> & { type: `${K}` };
}[EventType];

type EventOf<K extends RunEvent["kind"]> = Extract<RunEvent, { kind: K }>;

export class RunEvents {
  readonly #spoken: Spoken;
  /** Messages that have begun and not ended in this stream. */
  readonly #messages = new Set<string>();
  /** Calls that have begun and not ended, by agent and call. */
  readonly #calls = new Map<string, string>();
  readonly #takesSubagents: boolean;

  /** `spoken`: what earlier streams of the run have sent. `takesSubagents`: the program reads `SUBAGENT_*`. */
  constructor(spoken: Spoken, takesSubagents: boolean) {
    this.#spoken = spoken;
    this.#takesSubagents = takesSubagents;
  }

  of(event: RunEvent): SentEvent[] {
    const sent = [...this.#said(this.#spoken.of(event)), ...this.#eventsOf(event)];
    if (this.#takesSubagents) return sent;
    // Clients before 0.0.59 break off a stream with an event of a type that they do not know.
    return sent.map((one) => {
      const { type, ...value } = one;
      return type.startsWith("SUBAGENT_") ? { type: "CUSTOM", name: type.toLowerCase(), value } : one;
    });
  }

  live(text: LiveText): SentEvent[] {
    return this.#said(this.#spoken.live(text));
  }

  /** The text that is still held back, and the ends of messages, for a stream that ends. */
  end(): SentEvent[] {
    return this.#said(this.#spoken.pause());
  }

  /** `event`: that of a subagent's text. */
  #said(parts: readonly Said[], event?: RunEvent): SentEvent[] {
    const own = event ? by(event) : {};
    return parts.flatMap(({ id: messageId, text: delta, isLast }): SentEvent[] => {
      const isBegun = this.#messages.has(messageId);
      if (delta === "" && !isBegun) return [];
      if (isLast) this.#messages.delete(messageId);
      else this.#messages.add(messageId);
      return [
        ...(isBegun
          ? []
          : [{ type: "TEXT_MESSAGE_START" as const, messageId, role: "assistant" as const, ...own }]),
        ...(delta === "" ? [] : [{ type: "TEXT_MESSAGE_CONTENT" as const, messageId, delta, ...own }]),
        ...(isLast ? [{ type: "TEXT_MESSAGE_END" as const, messageId, ...own }] : []),
      ];
    });
  }

  #eventsOf(event: RunEvent): SentEvent[] {
    switch (event.kind) {
      case "model_called":
        if (event.agent.length === 0 || event.data.purpose !== undefined) return [];
        const whole = { id: `${event.runId}:${event.seq}`, text: event.data.text, isLast: true };
        return this.#said([whole], event);
      case "todos":
        if (event.agent.length > 0) return [];
        return [{ type: "STATE_SNAPSHOT", snapshot: { runId: event.runId, todos: event.data.todos } }];
      case "tool_started":
        return this.#started(event);
      case "tool_finished":
        return this.#finished(event);
      case "subagent_started": {
        const { name, description } = event.data;
        const parent = event.agent.slice(0, -1);
        return [
          {
            type: "SUBAGENT_STARTED",
            subagentRunId: subagentKey(event, event.agent),
            name,
            description,
            ...(parent.length > 0 ? { parentSubagentRunId: subagentKey(event, parent) } : {}),
          },
        ];
      }
      case "subagent_finished":
        return ended(event);
      // AG-UI has no events of its own for these.
      case "file_changed":
      case "goal_judged":
      case "goal_ended":
        return [{ type: "CUSTOM", name: event.kind, value: event.data, ...by(event) }];
      case "warning":
      case "model_retry":
      case "compacted":
      case "message_received":
        return [{ type: "CUSTOM", name: event.kind, value: { text: stepOf(event) ?? "" }, ...by(event) }];
      default:
        return [];
    }
  }

  #started(event: EventOf<"tool_started">): SentEvent[] {
    const toolCallId = `${event.runId}:${event.seq}`;
    this.#calls.set(callKey(event), toolCallId);
    const { tool, summary } = event.data;
    return [
      { type: "TOOL_CALL_START", toolCallId, toolCallName: tool, ...by(event) },
      { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify({ summary }), ...by(event) },
      { type: "TOOL_CALL_END", toolCallId, ...by(event) },
    ];
  }

  #finished(event: EventOf<"tool_finished">): SentEvent[] {
    const toolCallId = this.#calls.get(callKey(event));
    if (toolCallId === undefined) return [];
    this.#calls.delete(callKey(event));
    const content = displayText(event.data.summary);
    const messageId = `${event.runId}:${event.seq}`;
    return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool", ...by(event) }];
  }
}

const callKey = ({ agent, data }: EventOf<"tool_started" | "tool_finished">): string =>
  JSON.stringify([...agent.map(({ callId }) => callId), data.callId]);

const subagentKey = ({ runId }: RunEvent, agent: AgentPath): string =>
  [runId, ...agent.map(({ callId }) => callId)].join(":");

const by = (event: RunEvent): { subagentRunId?: string } =>
  event.agent.length === 0 ? {} : { subagentRunId: subagentKey(event, event.agent) };

function ended(event: EventOf<"subagent_finished">): SentEvent[] {
  const subagentRunId = subagentKey(event, event.agent);
  const { status, report } = event.data;
  return status === "error"
    ? [{ type: "SUBAGENT_ERROR", subagentRunId, message: report }]
    : [{ type: "SUBAGENT_FINISHED", subagentRunId, result: report, outcome: { type: "success" } }];
}
