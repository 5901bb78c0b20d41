#!/usr/bin/env bash
# @langchain/quickjs 0.6.4 with langchain 1.5.14: the middleware keeps the tools that a program may call in a variable, and
# sets it before each call of the model alone. A person approves a program, and in between the process was restarted: the
# agent is built again with the same checkpoints, the approved program runs first, and `tools` is not defined in it. The
# model reads a ReferenceError in place of the result of what the person approved.
# A good guess is that a call which waits for an approval continues in another process as it does in the same one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/quickjs@0.6.4 langchain@1.5.14 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 zod@4
cat >run.mjs <<'JS'
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createCodeInterpreterMiddleware } from "@langchain/quickjs";
import { createAgent, humanInTheLoopMiddleware } from "langchain";
import { z } from "zod";

class Scripted extends BaseChatModel {
  _llmType() { return "scripted"; }
  bindTools() { return this; }
  async _generate(messages) {
    const told = messages.findLast((message) => message.getType() === "tool");
    const call = { type: "tool_call", id: "c1", name: "eval", args: { code: "await tools.greet({ name: 'Ada' })" } };
    const message = told ? new AIMessage(`The tool said: ${told.text}`) : new AIMessage({ content: "", tool_calls: [call] });
    return { generations: [{ text: "", message }] };
  }
}
const greet = tool(({ name }) => `Hello, ${name}!`, { name: "greet", description: "Greets.", schema: z.object({ name: z.string() }) });
const checkpointer = new MemorySaver();
/** As a program builds its agent at its start; the checkpoints are those of a database. */
const build = () => createAgent({ model: new Scripted({}), tools: [greet], checkpointer, middleware: [createCodeInterpreterMiddleware({ ptc: ["greet"] }), humanInTheLoopMiddleware({ interruptOn: { eval: true } })] });
const approve = new Command({ resume: { decisions: [{ type: "approve" }] } });
async function answered(restarts) {
  const config = { configurable: { thread_id: String(restarts) } };
  const first = build();
  await first.invoke({ messages: [new HumanMessage("go")] }, config);
  const { messages } = await (restarts ? build() : first).invoke(approve, config);
  return messages.at(-1).text;
}
const [same, other] = [await answered(false), await answered(true)];
console.log("approved in the same process:", same);
console.log("approved after a restart:", other.split("\n")[0]);
if (!same.includes("Hello, Ada!") || !other.includes("tools is not defined")) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
