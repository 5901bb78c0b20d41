import { setTimeout as delay } from "node:timers/promises";
import { AIMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";

/** Asks for one call of a tool in each step, until there were so many, after it has thought; notes when it was asked. */
export class SteppingModel extends BaseChatModel {
  times = [];
  constructor(steps, call, thinksMs = 0) {
    super({});
    this.steps = steps;
    this.call = call;
    this.thinksMs = thinksMs;
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
    if (this.thinksMs > 0) await delay(this.thinksMs);
    const call = { id: `call_${step}`, ...this.call(step) };
    const message = new AIMessage(step > this.steps ? "done" : { content: "", tool_calls: [call] });
    return { generations: [{ text: "", message }] };
  }
}
