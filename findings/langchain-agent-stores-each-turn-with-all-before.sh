#!/usr/bin/env bash
# langchain 1.5.14 (`createAgent`) with @langchain/langgraph-checkpoint-sqlite 1.0.4, in their defaults: a thread of 200 tool
# calls whose results have 1,000 characters each takes more than 100 MB, about 600 times its texts, and four times what 100
# calls take. Each step stores all messages, and each call of a tool is sent with a copy of them.
# A good guess is a file of a few megabytes that grows with the conversation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent langchain@1.5.14 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 @langchain/langgraph-checkpoint-sqlite@1.0.4 zod@4.6.7
cat >run.mjs <<'JS'
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createAgent, tool } from "langchain";
import { statSync } from "node:fs";
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
const look = tool(() => "x".repeat(1000), { name: "look", description: "look", schema: z.object({}) });
/** Megabytes of the file after so many calls. */
async function size(turns) {
  const file = `${turns}.db`;
  const model = new Model((turn) =>
    turn < turns ? { content: "", tool_calls: [{ ...calls("look")[0], id: `call${turn}` }] } : { content: "end" },
  );
  const checkpointer = SqliteSaver.fromConnString(file);
  const agent = createAgent({ model, tools: [look], checkpointer });
  const config = { configurable: { thread_id: "1" }, recursionLimit: 1000 };
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
  checkpointer.db.pragma("wal_checkpoint(TRUNCATE)");
  const texts = messages.reduce((sum, { text }) => sum + text.length, 0) / 1e6;
  const stored = statSync(file).size / 1e6;
  console.log(`${turns} calls: ${texts.toFixed(1)} MB of texts, ${stored.toFixed(0)} MB in the file`);
  return stored;
}
const [half, whole] = [await size(100), await size(200)];
if (whole < 100 || whole / half < 3.5) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
