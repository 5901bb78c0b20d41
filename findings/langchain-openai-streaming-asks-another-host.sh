#!/usr/bin/env bash
# @langchain/openai 1.5.8 with @langchain/core 1.4.0: `new ChatOpenAI({ streaming: true })` fetches the vocabulary of GPT-2
# from tiktoken.pages.dev in the middle of a call, to estimate tokens. The server has reported the usage, and the reply has
# the reported numbers. Without `streaming`, or with `streamUsage: false`, nothing is fetched. Where only the provider can
# be reached, the call waits for the tries to fetch it.
# A good guess is that a model of one provider talks to that provider only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/openai@1.5.8 @langchain/core@1.4.0
cat >run.mjs <<'JS'
import { ChatOpenAI } from "@langchain/openai";

// All requests but those to the model's own address.
let others = [];
globalThis.fetch = async (address) => {
  others.push(new URL(address instanceof Request ? address.url : address).host);
  return Response.json({ pat_str: "\\S+", special_tokens: {}, bpe_ranks: "! 0 SGVsbG8=" });
};
const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
const event = (choices, more) =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "gpt-4o", choices, ...more })}\n\n`;
const fetch = async (_address, { body }) => {
  const { stream, stream_options: options } = JSON.parse(body);
  const message = { role: "assistant", content: "Hello" };
  if (!stream)
    return Response.json({
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "gpt-4o",
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage,
    });
  const events = [event([{ index: 0, delta: message }]), event([{ index: 0, delta: {}, finish_reason: "stop" }])];
  if (options?.include_usage) events.push(event([], { usage }));
  return new Response(`${events.join("")}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
};
const seen = [];
for (const options of [{}, { streaming: true }, { streaming: true, streamUsage: false }]) {
  others = [];
  const model = new ChatOpenAI({ model: "gpt-4o", apiKey: "not-a-key", configuration: { fetch }, ...options });
  const { text, usage_metadata: counted } = await model.invoke("hi");
  seen.push(`${text} ${counted?.input_tokens ?? "-"} ${others.join(" ")}`.trim());
  console.log(JSON.stringify(options), "input tokens:", counted?.input_tokens, "| other hosts:", others.join(" ") || "none");
}
if (seen.join("; ") !== "Hello 5; Hello 5 tiktoken.pages.dev; Hello -") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
