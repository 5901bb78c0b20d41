#!/usr/bin/env bash
# langchain 1.5.14 (`modelCallLimitMiddleware({ runLimit })` with a checkpointer): a run that reaches its limit ends as
# asked, with `exitBehavior: "end"`. Its count stays in the thread: every later run of that thread ends at once, without a
# single call of the model, as if it had used up its own limit. A run that ends below the limit resets the count.
# A good guess is that a limit per run begins again with each run, as the option says beside `threadLimit`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent langchain@1.5.14 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 zod@4.6.7
cat >run.mjs <<'JS'
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, modelCallLimitMiddleware, tool } from "langchain";
import { z } from "zod";

class Model extends BaseChatModel {
  asked = 0;
  constructor(reply) {
    super({});
    this.reply = reply;
  }
  _llmType() {
    return "scripted";
  }
  bindTools() {
    return this;
  }
  async _generate() {
    const message = new AIMessage(this.reply(this.asked++));
    return { generations: [{ text: message.text, message }] };
  }
}
const calls = (...names) => names.map((name, at) => ({ type: "tool_call", id: `${name}${at}`, name, args: {} }));
const look = tool(() => "seen", { name: "look", description: "look", schema: z.object({}) });
/** Calls of the model in each of three runs of one thread. `busy`: runs that call a tool until they are stopped. */
async function runs(busy) {
  let isBusy = false;
  const model = new Model(() => (isBusy ? { content: "", tool_calls: calls("look") } : { content: "end" }));
  const agent = createAgent({
    model,
    tools: [look],
    middleware: [modelCallLimitMiddleware({ runLimit: 2, exitBehavior: "end" })],
    checkpointer: new MemorySaver(),
  });
  const used = [];
  for (const run of [1, 2, 3]) {
    const before = model.asked;
    isBusy = busy.includes(run);
    await agent.invoke({ messages: [{ role: "user", content: `task ${run}` }] }, { configurable: { thread_id: "1" } });
    used.push(model.asked - before);
  }
  return used.join(" ");
}
const [short, limited] = [await runs([]), await runs([1])];
console.log("no run reaches the limit of 2:  calls of the model", short);
console.log("the first run reaches it:       calls of the model", limited);
if (short !== "1 1 1" || limited !== "2 0 0") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
