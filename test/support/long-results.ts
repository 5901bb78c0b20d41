import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import type { ScriptedModel, ScriptedReply, ScriptedRequest } from "./scripted-model.ts";

/** Whether a request asks for a summary. */
export const isSummarizer = (messages: readonly BaseMessage[]): boolean =>
  messages[0]?.text.startsWith("You get the beginning of a conversation") ?? false;
export const sizeOf = (messages: readonly BaseMessage[]): number =>
  messages.reduce(
    (sum, message) =>
      sum +
      message.text.length +
      (AIMessage.isInstance(message) ? JSON.stringify(message.tool_calls ?? []).length : 0),
    0,
  );
export const work = (model: ScriptedModel): ScriptedRequest[] =>
  model.requests.filter(({ messages }) => !isSummarizer(messages));

/** What a provider says whose window is `window` characters. */
export function refuseAbove(window: number, messages: readonly BaseMessage[]): void {
  if (sizeOf(messages) <= window) return;
  const text = `prompt is too long: ${sizeOf(messages)} tokens > ${window} maximum`;
  throw Object.assign(new Error(text), { status: 400 });
}

/** A model of a known window of tokens. */
export function withWindow(model: ScriptedModel, maxInputTokens: number | undefined): ScriptedModel {
  if (maxInputTokens !== undefined) Object.defineProperty(model, "profile", { value: { maxInputTokens } });
  return model;
}

/** A tool whose result is `size` characters in lines, ending in its name. */
export const long = tool(
  ({ size, name }: { size: number; name: string }) =>
    `${`${name} ${"y".repeat(60)}\n`.repeat(Math.ceil(size / 60)).slice(0, size)}${name}`,
  { name: "long", description: "is long", schema: z.object({ size: z.number(), name: z.string() }) },
);
export const calls = (turn: number, sizes: readonly number[]): ScriptedReply => ({
  toolCalls: sizes.map((size, n) => ({
    id: `c${turn}_${n}`,
    name: "long",
    args: { size, name: `n${turn}_${n}` },
  })),
});
