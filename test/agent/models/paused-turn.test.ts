import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { streamingProvider } from "../../support/streaming-provider.ts";
import { type Json, list } from "../../support/wire-server-protocol.ts";

/** A reply of Anthropic as a stream of events. */
function reply(text: string, stop_reason: string): string {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    usage,
  };
  const events: Json[] = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  return events
    .map((event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

test("a turn that the provider paused goes back as it is, without a message of ours, and becomes one answer", async () => {
  const replies = [
    reply("I search. ", "pause_turn"),
    reply("More. ", "pause_turn"),
    reply("Found.", "end_turn"),
  ];
  const { url, requests } = await streamingProvider((number) => replies[number] ?? "");
  const env = {
    ANTHROPIC_API_KEY: "test-key-0123456789",
    ANTHROPIC_BASE_URL: url,
  };
  const { model } = await resolveModel({ model: "anthropic:claude-sonnet-4-5", env });
  const { messages } = await createDeepAgent({ model }).invoke({ messages: [new HumanMessage("go")] });
  expect(messages.at(-1)?.text).toBe("I search. More. Found.");
  const roles = requests.map((request) => list(request["messages"]).map(({ role }) => role));
  expect(roles).toEqual([["user"], ["user", "assistant"], ["user", "assistant", "assistant"]]);
});
