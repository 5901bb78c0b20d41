#!/usr/bin/env bash
# @langchain/google 0.2.6 with @langchain/core 1.4.0: a reply whose `tool_calls` are set in the usual way
# (`new AIMessage({ content, tool_calls })`, as replies of other providers' packages and stored histories have them) is
# sent to Gemini without its calls. The result that follows is sent, so that the request has a function response without
# a function call. A reply whose content is "" and whose calls are in `tool_calls` is left out altogether.
# With content blocks of version 1 (`output_version: "v1"` and a `tool_call` block) the call is sent.
# A good guess is that `tool_calls`, which all other packages of LangChain read, is enough.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/google@0.2.6 @langchain/core@1.4.0
cat >run.mjs <<'JS'
import { ChatGoogle } from "@langchain/google";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

let sent;
globalThis.fetch = async (address, init) => {
  sent = JSON.parse(address instanceof Request ? await address.text() : String(init.body));
  const answer = { candidates: [{ content: { role: "model", parts: [{ text: "ok" }] }, finishReason: "STOP" }] };
  return new Response(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
};
const model = new ChatGoogle({ model: "gemini-2.5-flash", apiKey: "not-a-key-not-a-key", maxRetries: 0 });
const call = { id: "c1", name: "ls", args: { path: "/" }, type: "tool_call" };
const result = new ToolMessage({ content: "a.txt", tool_call_id: "c1", name: "ls" });
const partsOf = async (reply) => {
  await model.invoke([new HumanMessage("look"), reply, result]);
  return sent.contents.map(({ role, parts }) => `${role}: ${parts.map((part) => Object.keys(part)[0]).join("+")}`);
};
const usual = await partsOf(new AIMessage({ content: "I look.", tool_calls: [call] }));
const empty = await partsOf(new AIMessage({ content: "", tool_calls: [call] }));
const blocks = await partsOf(
  new AIMessage({
    content: [{ type: "text", text: "I look." }, call],
    tool_calls: [call],
    response_metadata: { output_version: "v1" },
  }),
);
console.log("text and tool_calls:  ", usual.join(" | "));
console.log("tool_calls alone:     ", empty.join(" | "));
console.log("content blocks of v1: ", blocks.join(" | "));
const expected = [
  "user: text | model: text | user: functionResponse",
  "user: text | user: functionResponse",
  "user: text | model: text+functionCall | user: functionResponse",
];
const seen = [usual, empty, blocks].map((one) => one.join(" | "));
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
