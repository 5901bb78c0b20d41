import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";

/** Asks for one call of a tool in each step, until there were so many; notes when it was asked. */
export class SteppingModel extends BaseChatModel {
  times = [];
  constructor(steps, call) {
    super({});
    this.steps = steps;
    this.call = call;
  }
  _llmType() {
    return "stepping";
  }
  bindTools() {
    return this;
  }
  async _generate() {
    this.times.push(performance.now());
    const step = this.times.length;
    const call = { id: `call_${step}`, ...this.call(step) };
    const message = new AIMessage(step > this.steps ? "done" : { content: "", tool_calls: [call] });
    return { generations: [{ text: "", message }] };
  }
}
