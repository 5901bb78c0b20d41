#!/usr/bin/env bash
# langchain 1.5.14 (`humanInTheLoopMiddleware`): a reply has three calls, each of which needs approval. A person approves
# the first and the third and rejects the second. No call runs, and the two approved ones are taken out of the stored
# reply, so that the model reads of one rejected call only and cannot know that the others were made and approved.
# A good guess is that decisions are independent: the approved calls run, and the rejected one gets its message.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent langchain@1.5.14 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 zod@4.6.7
cat >run.mjs <<'JS'
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, humanInTheLoopMiddleware, tool } from "langchain";
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
const ran = [];
const step = (name) =>
  tool(() => ran.push(name) && `${name} done`, { name, description: name, schema: z.object({}) });
const model = new Model((turn) => (turn === 0 ? { content: "", tool_calls: calls("a", "b", "c") } : { content: "end" }));
const agent = createAgent({
  model,
  tools: [step("a"), step("b"), step("c")],
  middleware: [humanInTheLoopMiddleware({ interruptOn: { a: true, b: true, c: true } })],
  checkpointer: new MemorySaver(),
});
const thread = { configurable: { thread_id: "1" } };
const asked = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, thread);
const decisions = [{ type: "approve" }, { type: "reject", message: "not b" }, { type: "approve" }];
const { messages } = await agent.invoke(new Command({ resume: { decisions } }), thread);
const requested = asked.__interrupt__[0].value.actionRequests.map(({ name }) => name);
const kept = messages.flatMap((message) => (message.tool_calls ?? []).map(({ name }) => name));
const results = messages.filter(({ type }) => type === "tool").map(({ text }) => text);
console.log("asked about:", requested.join(" "), "| approved: a c");
console.log("ran:", ran.join(" ") || "nothing", "| calls in the thread:", kept.join(" "), "| results:", results.join(", "));
if (requested.length !== 3 || ran.length !== 0 || kept.join() !== "b" || results.join() !== "not b") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
