import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import { BaseChatModel, type BindToolsInput } from "@langchain/core/language_models/chat_models";
import { AIMessage, type AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";

interface Call {
  name: string;
  args: Record<string, unknown>;
}

/** What the model is asked: the messages, and the names of the tools it may call. */
interface Request {
  messages: BaseMessage[];
  tools: readonly string[];
}

type Reply = (request: Request) => { text?: string; calls?: Call[] };

/** A chat model that answers what `reply` says, so that an example runs without a key and checks itself. */
export class PlayedModel extends BaseChatModel {
  readonly reply: Reply;
  readonly tools: readonly string[];

  constructor(reply: Reply, tools: readonly string[] = []) {
    super({});
    this.reply = reply;
    this.tools = tools;
  }

  override _llmType(): string {
    return "played";
  }

  override bindTools(tools: BindToolsInput[]): Runnable<BaseLanguageModelInput, AIMessageChunk> {
    return new PlayedModel(
      this.reply,
      tools.flatMap((tool) => ("name" in tool ? [String(tool.name)] : [])),
    );
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { text = "", calls = [] } = this.reply({ messages, tools: this.tools });
    const tool_calls = calls.map((call, index) => ({ id: `call_${messages.length}_${index}`, ...call }));
    return { generations: [{ text, message: new AIMessage({ content: text, tool_calls }) }] };
  }
}

/** Texts of the tool messages so far. */
export const results = (messages: readonly BaseMessage[]): string[] =>
  messages.filter((message) => message.type === "tool").map(({ text }) => text);
