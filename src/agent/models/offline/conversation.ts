import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { isTask } from "../../told.ts";

/** One call of the current turn with what came back; without a result it counts as failed. */
export interface CallRecord {
  name: string;
  args: Record<string, unknown>;
  result: string;
  failed: boolean;
}

/** The conversation from the newest task on. */
export interface Turn {
  /** Text of that message. */
  task: string;
  /** What was said while the task was worked on. */
  told: string[];
  calls: CallRecord[];
}

/** A tool as it was bound. */
export interface OfferedTool {
  name: string;
  description: string;
}

/** What to say and call next; without calls it is the final answer. */
export interface Step {
  text: string;
  calls: PlannedCall[];
}

export interface PlannedCall {
  name: string;
  args: Record<string, unknown>;
}

export function currentTurn(messages: readonly BaseMessage[]): Turn {
  const start = messages.findLastIndex(isTask);
  const results = new Map<string, ToolMessage>();
  for (const message of messages.slice(start + 1)) {
    if (ToolMessage.isInstance(message) && !results.has(message.tool_call_id)) {
      results.set(message.tool_call_id, message);
    }
  }
  const calls: CallRecord[] = [];
  for (const message of messages.slice(start + 1)) {
    if (!AIMessage.isInstance(message)) continue;
    for (const { id, name, args } of message.tool_calls ?? []) {
      const result = id === undefined ? undefined : results.get(id);
      const text = result?.text ?? "";
      const failed = result === undefined || result.status === "error" || REFUSED.test(text);
      calls.push({ name, args, result: text, failed });
    }
  }
  const told = messages.slice(start + 1).filter((message) => HumanMessage.isInstance(message));
  return { task: messages[start]?.text.trim() ?? "", told: told.map(({ text }) => text.trim()), calls };
}

/** How refusals begin, also where the status of a result was lost on the way. */
const REFUSED = /^(?:Error: |User rejected the tool call)/;

/** The calls of one tool, in order. */
export function callsOf(turn: Turn, name: string): CallRecord[] {
  return turn.calls.filter((call) => call.name === name);
}

/** A text argument, or `""`. */
export function textArgument({ args }: Pick<CallRecord, "args">, name: string): string {
  const value = args[name];
  return typeof value === "string" ? value : "";
}

/** The first line of a failure, without its prefix. */
export function failureText(call: CallRecord): string {
  const line = call.result.split("\n", 1)[0] ?? "";
  return line.replace(/^Error: /, "") || "no result came back";
}
