#!/usr/bin/env bash
# @langchain/anthropic 1.5.11 with @langchain/core 1.4.0: input tokens that a server reports in `message_delta`, at the
# end of a stream, are not counted. Anthropic documents the usage of that event as cumulative, and servers that learn
# the number only at the end (GLM, Kimi, MiniMax, bridges to other protocols) send 0 in `message_start`. The reply then
# has `usage_metadata.input_tokens` 0 and no cached tokens, so that limits on tokens and money never apply.
# A good guess is that the package reads cumulative usage, as Anthropic's own SDK does when it collects a message.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/anthropic@1.5.11 @langchain/core@1.4.0
cat >run.mjs <<'JS'
import Anthropic from "@anthropic-ai/sdk";
import { ChatAnthropic } from "@langchain/anthropic";

const events = [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello." } },
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { input_tokens: 5000, cache_read_input_tokens: 3000, output_tokens: 20 },
  },
  { type: "message_stop" },
];
const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });

const sdk = new Anthropic({ apiKey: "not-a-key", fetch });
const request = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] };
const own = (await sdk.messages.stream(request).finalMessage()).usage.input_tokens;
const model = new ChatAnthropic({ model: "m", apiKey: "not-a-key", streaming: true, clientOptions: { fetch } });
const { usage_metadata: usage } = await model.invoke("hi");
console.log(`reported by the server: 5000 and 3000 from the cache`);
console.log(`@anthropic-ai/sdk:     ${own}`);
console.log(`@langchain/anthropic:  ${usage.input_tokens}, from the cache ${usage.input_token_details.cache_read}`);
if (own !== 5000 || usage.input_tokens !== 0) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
