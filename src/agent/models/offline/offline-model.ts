/** The rule-based model that needs no key. */
import { createHash } from "node:crypto";
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { z } from "zod";
import { OwnModel } from "../own-model.ts";
import { FINDINGS } from "../verdicts.ts";
import { type OfflineStep, currentTurn } from "./conversation.ts";
import { nextCoordinatorStep } from "./coordinate.ts";
import { nextExamineStep } from "./examine.ts";

/**
 * Replies by the rules of `rules.json`, and states that. With the tools for it, it delegates each part of the files to a
 * subagent; without them it examines the files itself. Equal conversations get equal replies.
 */
export class OfflineModel extends OwnModel {
  override _llmType(): string {
    return "offline";
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const message = offlineReply(messages, options.tools ?? []);
    return { generations: [{ text: message.text, message }] };
  }
}

export function offlineReply(messages: readonly BaseMessage[], tools: readonly BindToolsInput[]): AIMessage {
  const facts = tools.map((tool) => TEXTS.parse("function" in tool ? tool.function : tool));
  const offered = new Map(facts.map(({ name, description }) => [name, description]));
  const coordinates = ["ls", "glob", "task"].every((name) => offered.has(name));
  const work = coordinates ? nextCoordinatorStep : nextExamineStep;
  const { text, calls } = judgeStep(tools) ?? work(currentTurn(messages), offered);
  // Ids depend on the opening message, so that subagents that work at the same time do not share any.
  const opening = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
  const conversation = createHash("sha256").update(opening).digest("hex").slice(0, 8);
  const id = `offline_${conversation}_${messages.filter((message) => AIMessage.isInstance(message)).length}`;
  // Four characters count as a token.
  const input = messages.reduce((sum, message) => sum + message.text.length, 0);
  const output = text.length + (calls.length === 0 ? 0 : JSON.stringify(calls).length);
  const tokens = { input_tokens: Math.ceil(input / 4), output_tokens: Math.ceil(output / 4) };
  return new AIMessage({
    content: text,
    tool_calls: calls.map((call, index) => ({ type: "tool_call", id: `${id}_${index}`, ...call })),
    usage_metadata: { ...tokens, total_tokens: tokens.input_tokens + tokens.output_tokens },
    response_metadata: { model_name: "offline" },
  });
}

const TEXTS = z.object({ name: z.string().catch(""), description: z.string().catch("") });

const Judging = z.object({
  function: z.object({ name: z.literal(FINDINGS), parameters: z.object({ required: z.array(z.string()) }) }),
});

/** The findings about all criteria, each left to a person; undefined if the model is not asked for any. */
function judgeStep(tools: readonly BindToolsInput[]): OfflineStep | undefined {
  const [asked] = tools.flatMap((tool) => Judging.safeParse(tool).data ?? []);
  if (asked === undefined) return undefined;
  const evidence = "The offline model follows fixed rules and cannot judge; a person has to look.";
  const finding = { evidence, verdict: "uncertain", missing: "" };
  const args = Object.fromEntries(asked.function.parameters.required.map((name) => [name, finding]));
  return { text: "", calls: [{ name: FINDINGS, args }] };
}
