import { AIMessage } from "@langchain/core/messages";
import { RunFailure } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import type { Strategy } from "./structured.ts";

/**
 * The agent ended without an answer in the form that was asked for. Its code, `no_structured_response`, is
 * the run's `failure_reason`.
 */
export class NoStructuredResponse extends RunFailure {
  /** All that the model said in its place; may be empty. */
  readonly said: string;

  constructor(what: string, said = "", options?: { cause?: unknown }) {
    const quoted = said === "" ? "" : ` It said: "${oneLine(said, 300)}".`;
    super("no_structured_response", `${what}${quoted} ${WAYS_OUT}`, options);
    this.said = said;
  }
}

const WAYS_OUT =
  "Ask again, make the schema simpler, use a model that follows it, or take the answer as text without responseFormat.";

export const hasCalls = ({ tool_calls = [], invalid_tool_calls = [] }: AIMessage): boolean =>
  tool_calls.length + invalid_tool_calls.length > 0;

/** The structured answer that a reply without calls gives in its text; `undefined` when there is none. */
export function answerInText(reply: AIMessage, strategy: Strategy): unknown {
  if (strategy.kind === "provider") {
    const native: unknown = strategy.strategy.parse(reply);
    if (native !== undefined) return native;
  }
  for (const text of jsonIn(reply.text)) {
    const answer = fitting(text, strategy);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Texts that may be the answer: all of it, or the one block of code in it. */
function jsonIn(text: string): string[] {
  const blocks: string[] = [];
  let start: number | undefined;
  for (const { 0: fence, index } of text.matchAll(/^[ \t]*```[^\n`]*$/gm)) {
    if (start === undefined) start = index + fence.length;
    else if (fence.trim() === "```") {
      blocks.push(text.slice(start, index));
      start = undefined;
    }
  }
  return [text, ...(blocks.length === 1 ? blocks : [])];
}

function fitting(text: string, strategy: Strategy): unknown {
  if (strategy.kind === "provider") return strategy.strategy.parse(new AIMessage(text));
  const given = recordIn(text);
  if (given === undefined) return undefined;
  for (const one of strategy.tools.values()) {
    try {
      const answer: unknown = one.parse(given);
      return answer;
    } catch {
      // It fits another one, or none.
    }
  }
  return undefined;
}

function recordIn(text: string): Record<string, unknown> | undefined {
  try {
    const given: unknown = JSON.parse(text);
    // Arguments of a call are a record.
    return typeof given === "object" && given !== null && !Array.isArray(given) ? { ...given } : undefined;
  } catch {
    return undefined;
  }
}

/** What a model is told that ended without the answer. */
export function reminderFor(strategy: Strategy): string {
  return strategy.kind === "tool"
    ? `Your answer was not taken: it has to be a call. ${callFor(strategy)}`
    : "Your answer does not have the form asked for. Answer again with JSON that fits the schema, and nothing else.";
}

/** What a model is told beforehand that cannot be made to call. */
export const callFor = ({ tools }: Extract<Strategy, { kind: "tool" }>): string =>
  `Give your final answer by calling ${[...tools.keys()].join(" or ")}.`;

/** Why a run ends whose model gave `reply` in place of the answer, reminders and all. */
export function missingAnswer(reply: AIMessage, strategy: Strategy): NoStructuredResponse {
  const form = strategy.kind === "tool" ? `a call of ${[...strategy.tools.keys()].join(" or ")}` : "JSON";
  return new NoStructuredResponse(
    `The model ended without the answer that responseFormat asks for, ${form}, though it was reminded.`,
    reply.text.trim(),
  );
}
