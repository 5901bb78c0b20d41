#!/usr/bin/env bash
# @langchain/openai 1.5.8 with @langchain/core 1.4.0: `bindTools(tools, { tool_choice: "required" })`, or "any", is sent over
# chat completions and left out over the responses API, where OpenAI takes "required" too. Nothing is reported: the model
# may answer in words, and code that relies on a call fails now and then. The name of a tool is sent over both.
# Output seen: chat completions: "required" | responses: nothing; the name of a tool is sent over both.
# A good guess is that one class sends one option over both of its APIs, or refuses it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/openai@1.5.8 @langchain/core@1.4.0
cat >run.mjs <<'JS'
import { ChatOpenAI } from "@langchain/openai";

const tools = [
  {
    type: "function",
    function: { name: "weather", description: "Weather.", parameters: { type: "object", properties: {} } },
  },
];
const seen = [];
for (const useResponsesApi of [false, true])
  for (const tool_choice of ["required", "any", "weather"]) {
    let sent;
    const fetch = async (_address, { body }) => {
      sent = JSON.parse(body);
      return Response.json({ error: { message: "seen" } }, { status: 400 });
    };
    const model = new ChatOpenAI({
      model: "gpt-4.1",
      apiKey: "not-a-key",
      maxRetries: 0,
      useResponsesApi,
      configuration: { fetch },
    });
    await model.bindTools(tools, { tool_choice }).invoke("Seoul?").catch(() => undefined);
    const choice = sent.tool_choice === undefined ? "nothing" : JSON.stringify(sent.tool_choice);
    console.log(useResponsesApi ? "responses" : "chat completions", tool_choice, "-> tool_choice:", choice);
    seen.push(choice);
  }
const name = '{"type":"function","function":{"name":"weather"}}';
const expected = ['"required"', '"required"', name, "nothing", "nothing", '{"type":"function","name":"weather"}'];
if (seen.join() !== expected.join()) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
