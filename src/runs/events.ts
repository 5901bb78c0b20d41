import { z } from "zod";
import type { AgentEvent, AgentPath, TokenUsage } from "../agent/agent.ts";
import { defined } from "../core/unknown.ts";
import { cutDiff } from "../core/diff.ts";
import { cutMiddle, fill, oneLine } from "../core/text.ts";
import type { Todo } from "../tools/tool.ts";
import { answeredText, askedCallText, decidedText } from "./asked-words.ts";
import words from "./words.json" with { type: "json" };
import { ChangesReviewed, reviewedLine } from "./review-events.ts";
import { GoalEnded, GoalJudged, endedLine, judgedLine } from "./goal.ts";
import { agentName, endedEarly } from "./run.ts";

/** Longest line, in characters. */
export const LINE = 200;

const Text = z.string();
const Count = z.number().optional();
const Call = z.object({ callId: Text });
const ToolCall = Call.extend({ tool: Text, summary: Text });
/** `diff` may be cut; `added` and `removed` count the lines of the whole change, and are absent in older rows. */
const FileChange = Call.extend({ path: Text, diff: Text.optional(), added: Count, removed: Count });
/** Names the call that a person is asked about; absent in older rows. */
const AskedCallData = z.object({ act: Text, object: Text, kind: z.enum(["command", "file", "tool"]) });
const TodoData = z.object({ content: Text, status: z.enum(["pending", "in_progress", "completed"]) });
export const QuestionKind = z.enum(["ask", "interrupt", "elicitation", "review"]);
/** Names the call that waits for the answer; absent in older rows. */
const AskingCall = z.object({ callId: Text.optional() });
const Empty = z.object({});
const End = z.enum(["success", "error"]);

/**
 * Meaning of an event for followers of the run. `progress` is only shown, `change` ends a wait for any change,
 * `decision` means that the run waits for somebody or continues, and `end` that it has finished.
 */
export type Relevance = "progress" | "change" | "decision" | "end";

interface Kind<Data extends z.ZodType> {
  relevance: Relevance;
  data: Data;
  /** One line for people, with the name of the subagent it happened in; `undefined`: not worth a line. */
  line: (data: z.infer<Data>, name: string) => string | undefined;
  /** True if the line is about the run as a whole, not about the agent of the event. */
  isOfRun?: boolean;
}

const ofAgent = <Data extends z.ZodType>(
  relevance: Relevance,
  data: Data,
  line: Kind<Data>["line"] = () => undefined,
): Kind<Data> => ({ relevance, data, line });
const ofRun: typeof ofAgent = (...kind) => ({ ...ofAgent(...kind), isOfRun: true });

/** For each kind of event: its relevance, the `data` that the journal stores, and its line. All texts are bounded. */
const EVENTS = {
  /** `forkedFrom` is there when the thread began from a point of another, `schedule` when one started it. */
  run_started: ofRun(
    "progress",
    z.object({ forkedFrom: Text.optional(), schedule: Text.optional() }),
    ({ schedule }) => (schedule === undefined ? "started" : `started by schedule ${oneLine(schedule, LINE)}`),
  ),
  /** The run continues after a crash or a shutdown. */
  run_resumed: ofRun("change", Empty, () => "resumed"),
  run_parked: ofRun("change", Empty, () => "parked"),
  /** `answer` is the beginning; the run has the whole. `stopReason` is there when the run ended early. */
  run_completed: ofRun("end", z.object({ answer: Text, stopReason: Text.optional() }), ({ stopReason }) =>
    stopReason === undefined ? "completed" : endedEarly(stopReason),
  ),
  run_failed: ofRun("end", z.object({ reason: Text, message: Text }), ({ message }) => `failed: ${message}`),
  run_cancelled: ofRun("end", z.object({ reason: Text }), ({ reason }) => `cancelled: ${reason}`),
  todos: ofAgent("change", z.object({ todos: z.array(TodoData) })),
  /** It cannot start yet: as many as may work at the same time do. The event's `agent` is the subagent itself. */
  subagent_queued: ofAgent("progress", Call.extend({ name: Text, description: Text })),
  /** The event's `agent` is the subagent itself. */
  subagent_started: ofRun(
    "change",
    Call.extend({ name: Text, description: Text, background: z.literal(true).optional() }),
    ({ background }, name) => `${name}: started${background ? " in the background" : ""}`,
  ),
  subagent_finished: ofRun(
    "change",
    Call.extend({ name: Text, status: End, report: Text, cancelled: z.literal(true).optional() }),
    ({ status, report, cancelled }, name) =>
      `${name}: ${cancelled ? "cancelled" : status === "success" ? "finished" : `failed: ${report}`}`,
  ),
  /** `within`: the call of the program that made it. */
  tool_started: ofAgent("progress", ToolCall.extend({ within: Text.optional() }), ({ summary, within }) =>
    within === undefined ? summary : `program: ${summary}`,
  ),
  /** `rejected`: the call did not run, because of the decision before it. `source`: see the agent's event. */
  tool_finished: ofAgent(
    "progress",
    ToolCall.extend({ status: End, rejected: z.literal(true).optional(), source: Text.optional() }),
    ({ tool, status, summary, rejected }) =>
      status === "error" && rejected !== true ? `${tool} failed${summary && `: ${summary}`}` : undefined,
  ),
  /** `costUsd` is set if the price is known, `purpose` if the call was not a turn. */
  model_called: ofAgent(
    "progress",
    z.object({
      model: Text,
      usage: z.object({ inputTokens: z.number(), outputTokens: z.number(), cachedInputTokens: z.number() }),
      text: Text,
      costUsd: z.number().optional(),
      purpose: z.literal("summary").optional(),
    }),
    ({ text }) => oneLine(text, LINE) || undefined,
  ),
  file_changed: ofAgent("change", FileChange),
  approval_requested: ofAgent(
    "decision",
    AskingCall.extend({ approvalId: Text, tool: Text, summary: Text, call: AskedCallData.optional() }),
    ({ call, summary }) => `requested approval: ${call === undefined ? summary : askedCallText(call)}`,
  ),
  /**
   * `decision` is that of the person, `approve_same` (all calls that count as the same are approved too) or
   * `withdrawn`. `by` is `deadline` when nobody decided in time, and `same as …` when another approval decided.
   */
  approval_decided: ofAgent(
    "decision",
    z.object({ approvalId: Text, tool: Text, decision: Text, by: Text, call: AskedCallData.optional() }),
    (data) => decidedText(data),
  ),
  /** A question that is not about approval: of the agent, of a tool, or of another MCP server. */
  question_asked: ofAgent(
    "decision",
    // `server`: the MCP server that asks.
    AskingCall.extend({ questionId: Text, kind: QuestionKind, server: Text.optional(), text: Text }),
    ({ kind, server, text }) => oneLine(`${fill(words.asked[kind], server)}: ${text}`, LINE),
  ),
  /** `answer`: the shortened answer; absent if there was none. */
  question_answered: ofAgent(
    "decision",
    z.object({
      questionId: Text,
      kind: QuestionKind,
      outcome: z.enum(["answered", "declined", "expired", "withdrawn"]),
      answer: Text.optional(),
      by: Text,
    }),
    ({ outcome, answer, by }) => oneLine(answeredText(outcome, answer, by), LINE),
  ),
  /** A client's signed answer was not used: `replayed`, `other_arguments`, … */
  answer_refused: ofAgent(
    "progress",
    z.object({ reason: Text }),
    ({ reason }) => `an answer of the client was rejected: ${reason.replaceAll("_", " ")}`,
  ),
  /** A client is asked to answer a model call. */
  model_requested: ofAgent("change", Empty),
  /** No client has answered a model call for a while. */
  model_awaited: ofAgent("decision", Empty, () => "waiting for a client that lends its model"),
  /** `path` is the file that has the messages of which a summary was made. */
  compacted: ofAgent(
    "change",
    z.object({ how: z.enum(["shortened", "summarized"]), messages: z.number(), path: Text.optional() }),
    ({ how, messages, path }) => {
      const older = `${messages} older messages`;
      if (how !== "summarized") return `shortened the long texts of ${older}`;
      return `summarized ${older}${path === undefined ? "" : `, which are kept in ${path}`}`;
    },
  ),
  /** A model call failed and is made again after a pause. */
  model_retry: ofAgent(
    "change",
    z.object({ model: Text, reason: Text, message: Text, attempt: z.number(), pauseMs: z.number() }),
    ({ message }) => message,
  ),
  goal_judged: ofAgent("change", GoalJudged, judgedLine),
  goal_ended: ofAgent("change", GoalEnded, endedLine),
  /** A review was carried out. Lists of paths are cut; `problem`: nothing was applied, and the person is asked again. */
  changes_reviewed: ofRun("change", ChangesReviewed, reviewedLine),
  warning: ofAgent("change", z.object({ message: Text }), ({ message }) => message),
  message_received: ofAgent("change", z.object({ messageId: Text, text: Text }), ({ text }) =>
    oneLine(`message: ${text}`, LINE),
  ),
};

export type RunEventKind = keyof typeof EVENTS;

/** Each kind of event together with its data. */
type EventFacts = {
  [K in RunEventKind]: { kind: K; agent: AgentPath; data: z.infer<(typeof EVENTS)[K]["data"]> };
}[RunEventKind];

/** One line of a run's append-only journal. */
export type RunEvent = EventFacts & {
  runId: string;
  /** Counts from 1 without gaps. */
  seq: number;
  time: number;
};

/** Nothing is copied or reordered. */
export const isEvent = <T extends { kind: string; data: unknown }>(facts: T): facts is T & EventFacts =>
  Object.hasOwn(EVENTS, facts.kind) &&
  EVENTS[facts.kind as RunEventKind /* a key of the table */].data.safeParse(facts.data).success;

export const relevanceOf = ({ kind }: RunEvent): Relevance => EVENTS[kind].relevance;

/** Text of an event about the run as a whole, with the agent it happened in; `undefined`: not worth a line. */
export function activityOf(event: RunEvent): string | undefined {
  const name = actorName(event);
  const line = eventLine(event, name);
  const isPrefixed = name !== "" && EVENTS[event.kind].isOfRun !== true;
  return line === undefined ? undefined : oneLine(isPrefixed ? `${name}: ${line}` : line, LINE);
}

/** Text of an event about its own agent; `undefined`: not worth a line. */
export const stepOf = (event: RunEvent): string | undefined =>
  EVENTS[event.kind].isOfRun === true ? undefined : eventLine(event, actorName(event));

function eventLine({ kind, data }: RunEvent, name: string): string | undefined {
  const { line } = EVENTS[kind] as Kind<z.ZodType>; // the row of its kind, whose schema its data fits
  return line(data, name);
}

/** The subagent an event happened in; empty for the main agent. */
function actorName({ agent }: RunEvent): string {
  const last = agent.at(-1);
  return last === undefined ? "" : agentName(last);
}

export type JournalEntry = EventFacts & {
  /** The subject of the event; absent for events that are never repeats. */
  identity?: string;
  /** The event is a repeat if the journal has any event of this identity. */
  recalled?: true;
  /** Changes of the event to the run's row. */
  effect?: RunEffect;
};

interface RunEffect {
  todos?: Todo[];
  usage?: TokenUsage;
  /** US dollars of a model call; `unknown` where its price is. */
  cost?: number | "unknown";
  /** `begun`: a subagent is queued or started, which counts once. */
  subagent?: "begun" | "completed" | "failed";
  /** Newest text of the main agent. */
  answer?: string;
}

/** Agent events that are journalled as they are; the others change the run's state. */
export type JournalledEvent = Exclude<
  AgentEvent,
  { kind: "approval_requested" | "question_asked" | "paused" | "finished" }
>;

/** Longest text of an event, in characters. */
export const TEXT = 2000;

/** Long values of agent events as the journal has them, by the names of their fields. */
const SHORTENED: Readonly<Record<string, (value: string) => string>> = {
  summary: (text) => oneLine(text, LINE),
  message: (text) => oneLine(text, TEXT),
  description: (text) => cutMiddle(text, TEXT),
  report: (text) => cutMiddle(text, TEXT),
  text: (text) => cutMiddle(text, TEXT),
  diff: (diff) => cutDiff(diff, 16_000),
};

/** The fields of an event that its kind has in the journal. */
function storedData(event: JournalledEvent): object {
  if (event.kind === "todos") {
    const todos = event.todos.slice(0, 100);
    return { todos: todos.map(({ content, status }) => ({ content: oneLine(content, LINE), status })) };
  }
  const fields = Object.keys(EVENTS[event.kind].data.shape).map((name): [string, unknown] => {
    const value: unknown = Reflect.get(event, name);
    return [name, typeof value === "string" ? (SHORTENED[name]?.(value) ?? value) : value];
  });
  return defined(Object.fromEntries(fields));
}

export function entryOf(event: JournalledEvent): JournalEntry {
  const { kind, agent } = event;
  const entry = {
    kind,
    agent,
    data: storedData(event),
    identity: eventIdentity(event),
    effect: eventEffect(event),
  };
  const recalled = kind === "tool_started" ? event.recalled : undefined;
  return defined({ ...entry, recalled }) as JournalEntry; // the fields are those of its kind
}

function eventIdentity(event: JournalledEvent): string | undefined {
  const { kind, agent } = event;
  const about = (subject: string, ...rest: string[]): string =>
    JSON.stringify([subject, agent.map(({ callId }) => callId), ...rest]);
  switch (kind) {
    case "todos":
      return about(kind);
    case "subagent_queued":
    case "subagent_started":
    case "subagent_finished":
      return about("subagent", event.callId);
    case "tool_started":
    case "tool_finished":
      return about("tool", event.callId);
    case "file_changed":
      return about("file", event.callId, event.path);
    case "compacted":
      return about(kind, event.to);
    case "goal_judged":
    case "goal_ended":
      return about(kind, String(event.round));
    case "warning":
      return about(kind, oneLine(event.message, TEXT));
    default:
      return undefined;
  }
}

function eventEffect(event: JournalledEvent): RunEffect | undefined {
  const isMain = event.agent.length === 0;
  switch (event.kind) {
    case "todos":
      return isMain ? { todos: event.todos } : undefined;
    case "model_called": {
      const { usage, costUsd: cost = "unknown", text } = event;
      return { usage, cost, ...(isMain && text !== "" ? { answer: text } : {}) };
    }
    case "subagent_queued":
    case "subagent_started":
      return { subagent: "begun" };
    case "subagent_finished":
      return { subagent: event.status === "success" ? "completed" : "failed" };
    default:
      return undefined;
  }
}

export function messageEntry(messageId: string, text: string, agent: AgentPath = []): JournalEntry {
  return { kind: "message_received", agent, data: { messageId, text: cutMiddle(text, TEXT) } };
}

/** The beginning of a final answer, for the journal. */
export const answerExcerpt = (answer: string): string => cutMiddle(answer, TEXT);
