import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";

/**
 * A chat model that answers what `reply` says, so that an example runs without a key and checks itself.
 * `reply` gets the messages and the names of the tools it may call, and returns a text or tool calls.
 */
export class PlayedModel extends BaseChatModel {
  constructor(reply, tools = []) {
    super({});
    this.reply = reply;
    this.tools = tools;
  }

  _llmType() {
    return "played";
  }

  bindTools(tools) {
    return new PlayedModel(
      this.reply,
      tools.map(({ name }) => name),
    );
  }

  async _generate(messages) {
    const { text = "", calls = [] } = this.reply({ messages, tools: this.tools });
    const tool_calls = calls.map(({ name, args }, index) => ({
      id: `call_${messages.length}_${index}`,
      name,
      args,
    }));
    return { generations: [{ text, message: new AIMessage({ content: text, tool_calls }) }] };
  }
}

/** Texts of the tool messages so far. */
export const results = (messages) =>
  messages.filter((message) => message.getType() === "tool").map(({ text }) => text);
