import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { carryExtras } from "../../../src/agent/models/provider-extras.ts";
import { isEnd } from "../../../src/agent/models/provider-words.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { silenceAfter } from "../../../src/agent/models/stream-guard.ts";
import { streamingProvider } from "../../support/streaming-provider.ts";
import { list, record, type Json } from "../../support/wire-server-protocol.ts";

const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}): string =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
const DONE = "data: [DONE]\n\n";
const CALL = {
  index: 0,
  id: "call_1",
  type: "function",
  function: { name: "ls", arguments: '{"path":"/"}' },
};

/** A server of chat completions that sends these streams, and keeps the requests. */
async function provider(streams: (number: number) => readonly string[]) {
  const { url, requests } = await streamingProvider((number) => streams(number).join(""));
  const env = { OPENAI_API_KEY: "test-key-0123456789", OPENAI_BASE_URL: `${url}/v1` };
  const model = async () => (await resolveModel({ model: "openai:some-model", env })).model;
  return { requests, model };
}

const sentReply = (request: Json | undefined): Json =>
  record(list(request?.["messages"]).find(({ role }) => role === "assistant"));

describe("what a provider wants back with a reply", () => {
  const FIRST: readonly string[] = [
    chunk({ role: "assistant", content: "", reasoning_content: "I lo" }),
    chunk({ reasoning_content: "ok." }),
    chunk({ reasoning_details: [{ type: "reasoning.text", text: "Hm", index: 0, format: "f1" }] }),
    chunk({ reasoning_details: [{ type: "reasoning.text", text: "m.", index: 0, format: "f1" }] }),
    chunk({ reasoning_details: [{ type: "reasoning.text", signature: "SIGN", index: 0, format: null }] }),
    chunk({ reasoning_details: [{ type: "reasoning.encrypted", data: "ENC", id: "r1", index: 1 }] }),
    chunk({ tool_calls: [{ ...CALL, extra_content: { google: { thought_signature: "SIG" } } }] }),
    chunk({}, "tool_calls"),
    DONE,
  ];
  const answer = (text: string): readonly string[] => [
    chunk({ role: "assistant", content: text }),
    chunk({}, "stop"),
    DONE,
  ];

  test("goes back with it, also in a later run by another process, and is joined from its pieces", async () => {
    const { requests, model } = await provider((n) => (n === 0 ? FIRST : answer("end")));
    const checkpointer = new MemorySaver();
    const thread = { configurable: { thread_id: "t" } };
    const run = async (text: string) =>
      createDeepAgent({ model: await model(), checkpointer }).invoke(
        { messages: [new HumanMessage(text)] },
        thread,
      );
    await run("go");
    await run("and now?");
    expect(requests).toHaveLength(3);
    for (const request of requests.slice(1)) {
      const reply = sentReply(request);
      expect(reply).toMatchObject({
        reasoning_content: "I look.",
        reasoning_details: [
          { type: "reasoning.text", text: "Hmm.", index: 0, format: "f1", signature: "SIGN" },
          { type: "reasoning.encrypted", data: "ENC", id: "r1", index: 1 },
        ],
        tool_calls: [{ id: "call_1", extra_content: { google: { thought_signature: "SIG" } } }],
      });
      expect(reply).not.toHaveProperty("function_call");
    }
  });

  test("is not sent to another provider", async () => {
    const one = await provider(() => FIRST);
    const other = await provider(() => answer("end"));
    const checkpointer = new MemorySaver();
    const thread = { configurable: { thread_id: "t" } };
    const first = createDeepAgent({ model: await one.model(), checkpointer, limits: { maxIterations: 1 } });
    await first.invoke({ messages: [new HumanMessage("go")] }, thread);
    const second = createDeepAgent({ model: await other.model(), checkpointer });
    await second.invoke({ messages: [new HumanMessage("go on")] }, thread);
    expect(JSON.stringify(other.requests)).not.toMatch(/reasoning|signature|I look|SIG|ENC|provider_extras/);
  });

  test("is looked for only in models of that protocol", () => {
    const model = { invoke: () => "x" };
    expect(carryExtras(model, "here")).toBe(model);
    expect(Object.keys(model)).toEqual(["invoke"]);
  });
});

describe("an answer that a provider ends by itself", () => {
  const text = (words: string) => chunk({ role: "assistant", content: words });
  test.each<[string, readonly string[]]>([
    ["finish_reason error", [text("Half"), chunk({}, "error"), DONE]],
    [
      "insufficient_system_resource (deepseek-ai docs)",
      [text("Half"), chunk({}, "insufficient_system_resource"), DONE],
    ],
    ["an unknown reason", [text("Half"), chunk({}, "gateway_gave_up"), DONE]],
    [
      "an error object with a code",
      [text("Half"), chunk({ content: "" }, "error", { error: { code: 502, message: "Upstream" } }), DONE],
    ],
    [
      "an error object without one",
      [text("Half"), `data: ${JSON.stringify({ error: { message: "Upstream broke" } })}\n\n`],
    ],
  ])("is asked for again: %s", async (_name, broken) => {
    const { requests, model } = await provider((n) =>
      n === 0 ? broken : [text("whole"), chunk({}, "stop"), DONE],
    );
    const agent = createDeepAgent({ model: await model() });
    const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
    expect([messages.at(-1)?.text, requests.length]).toEqual(["whole", 2]);
  });

  test("is refused at once where the request itself was wrong", async () => {
    const refusal = { error: { type: "invalid_request_error", message: "messages: bad" } };
    const { requests, model } = await provider(() => [text("Ha"), `data: ${JSON.stringify(refusal)}\n\n`]);
    const agent = createDeepAgent({ model: await model() });
    await expect(agent.invoke({ messages: [new HumanMessage("go")] })).rejects.toThrow("messages: bad");
    expect(requests).toHaveLength(1);
  });

  test("is shown where it refuses in a field of its own", async () => {
    const parts = [
      chunk({ role: "assistant", content: null, refusal: "" }),
      chunk({ refusal: "I ca" }),
      chunk({ refusal: "nnot." }),
    ];
    const { model } = await provider(() => [...parts, chunk({}, "stop"), DONE]);
    const { messages } = await createDeepAgent({ model: await model() }).invoke({
      messages: [new HumanMessage("go")],
    });
    expect(messages.at(-1)?.text).toBe("I cannot.");
  });

  test.each(["stop", "STOP", "stopstop", "tool_calls", "end_turn", "eos", "SAFETY", "model_length"])(
    "is whole: %s",
    (reason) => {
      expect(isEnd(reason)).toBe(true);
    },
  );
  test.each(["error", "abort", "network_error", "insufficient_system_resource", "sto", ""])(
    "is broken: %s",
    (reason) => {
      expect(isEnd(reason)).toBe(reason === "");
    },
  );
});

describe("silence", () => {
  test.each([
    "\n",
    ": OPENROUTER PROCESSING\n\n",
    'event: ping\ndata: {"type": "ping"}\n\n',
    "event:ping\r\n",
    "data:\n\n",
    'data: {"type":"ping"}\n',
  ])("is kept up by signs of life: %j", (part) => expect(silenceAfter(part, 50, 20)).toBe(70));
  test.each(['data: {"choices":[]}\n\n', "event: content_block_delta\n", ": comment\ndata: 1\n\n"])(
    "is broken by %j",
    (part) => {
      expect(silenceAfter(part, 50, 20)).toBe(0);
    },
  );
});
