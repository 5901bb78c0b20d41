/** Streams and refusals as servers other than OpenAI's and Anthropic's write them. */
import { createServer } from "node:http";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { modelFailure } from "../../../src/agent/models/failure.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { streamingProvider } from "../../support/streaming-provider.ts";
import { type Json } from "../../support/wire-server-protocol.ts";
import { addressOf } from "../../support/http-address.ts";

const data = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: unknown, finish_reason: string | null = null): string =>
  data({
    id: "c1",
    object: "chat.completion.chunk",
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
const DONE = "data: [DONE]\n\n";
const END = [chunk({ role: "assistant", content: "end" }), chunk({}, "stop"), DONE];

/** One piece of a call. */
const piece = (called: Json, more: Json = {}): Json => ({
  index: 0,
  type: "function",
  function: called,
  ...more,
});
const calls = (...pieces: unknown[]): string => chunk({ role: "assistant", tool_calls: pieces });
const LS = { name: "ls", arguments: '{"path":"/"}' };
const GLOB = { name: "glob", arguments: '{"pattern":"*"}' };
const A = { id: "call_a" };

/** The chunks of the first answer, which come before `tool_calls` and `[DONE]`; the calls that it makes. */
type Row = readonly [what: string, chunks: readonly string[], made: ReadonlyArray<[string, Json]>];
const LISTED: Row[2] = [["ls", { path: "/" }]];
const BOTH: Row[2] = [...LISTED, ["glob", { pattern: "*" }]];

test.each<Row>([
  [
    "langchain-ai/langchainjs#11468: an empty role",
    [chunk({ role: "", tool_calls: [piece(LS, A)] })],
    LISTED,
  ],
  ["maximhq/bifrost#6523: no role", [chunk({ tool_calls: [piece(LS, A)] })], LISTED],
  [
    "shiaho777/web-to-app#394: arguments that are null",
    [calls(piece({ name: "ls", arguments: null }, A))],
    [["ls", {}]],
  ],
  [
    "shiaho777/web-to-app#394: arguments that are null at first",
    [calls(piece({ name: "ls", arguments: null }, A)), calls(piece({ arguments: LS.arguments }))],
    LISTED,
  ],
  [
    "ggml-org/llama.cpp#20198: arguments as an object",
    [calls(piece({ name: "ls", arguments: { path: "/" } }, A))],
    LISTED,
  ],
  [
    "sgl-project/sglang#7863: arguments as a text in JSON",
    [calls(piece({ name: "ls", arguments: JSON.stringify(LS.arguments) }, A))],
    LISTED,
  ],
  [
    "openai/openai-agents-js#712: an empty object before the arguments",
    [calls(piece({ name: "ls", arguments: "{}" }, A)), calls(piece({ arguments: LS.arguments }))],
    LISTED,
  ],
  ["camel-ai/camel#3027: an empty id", [calls(piece(LS, { id: "" }))], LISTED],
  ["ggml-org/llama.cpp#11992: no id", [calls(piece(LS))], LISTED],
  [
    "anomalyco/opencode#26412: names and ids that are null in later pieces",
    [
      calls(piece({ name: "ls", arguments: "" }, A)),
      calls(piece({ name: null, arguments: LS.arguments }, { id: null })),
    ],
    LISTED,
  ],
  [
    "xuzhougeng/wisp-science#222: names that are empty in later pieces",
    [calls(piece({ name: "ls", arguments: "" }, A)), calls(piece({ name: "", arguments: LS.arguments }, A))],
    LISTED,
  ],
  [
    "vercel/ai#16507: a name that comes later",
    [calls(piece({ name: "", arguments: '{"path":' }, A)), calls(piece({ name: "ls", arguments: '"/"}' }))],
    LISTED,
  ],
  [
    "AstrBotDevs/AstrBot#6692: no index",
    [
      calls(piece({ name: "ls", arguments: "" }, { ...A, index: undefined })),
      calls(piece({ arguments: LS.arguments }, { index: undefined })),
    ],
    LISTED,
  ],
  [
    "su-kaka/gcli2api#406: one index for all calls",
    [calls(piece(LS, A)), calls(piece(GLOB, { id: "call_b" }))],
    BOTH,
  ],
  [
    "agno-agi/agno#8880: an index that changes within a call",
    [
      calls(piece(LS, A)),
      calls(piece({ name: "glob", arguments: "" }, { id: "call_b" })),
      calls(piece({ arguments: GLOB.arguments }, { index: 1 })),
    ],
    BOTH,
  ],
  ["one id for all calls", [calls(piece(LS, A)), calls(piece(GLOB, { ...A, index: 1 }))], BOTH],
  ["an entry that is null", [calls(null, piece(LS, A))], LISTED],
  [
    "tontinton/maki#518: a namespace before the name",
    [calls(piece({ ...LS, name: "functions.ls" }, A))],
    LISTED,
  ],
  [
    "google-gemini/gemini-cli#26676: blanks around the name",
    [calls(piece({ ...LS, name: " ls" }, A))],
    LISTED,
  ],
  [
    // OpenHands/software-agent-sdk#2488
    "line breaks that are written out, and a comma at the end",
    [calls(piece({ name: "ls", arguments: String.raw`{"path": \n"/",\n}` }, A))],
    LISTED,
  ],
  [
    // vllm-project/vllm#41739
    "a namespace before the name and a number behind it",
    [calls(piece({ ...LS, name: "functions.ls:0" }, A))],
    LISTED,
  ],
])("%s makes the calls", async (_what, chunks, made) => {
  const { answers } = await run((n) => (n === 0 ? [...chunks, chunk({}, "tool_calls"), DONE] : END));
  expect(answers[0]?.tool_calls?.map(({ name, args }) => [name, args])).toEqual(made);
  expect(answers.at(-1)?.text).toBe("end");
});

test.each<[what: string, chunks: readonly string[]]>([
  [
    "langchain-ai/langchainjs#11157: no role",
    [chunk({ content: "hel" }), chunk({ content: "lo" }), chunk({}, "stop")],
  ],
  [
    "MiniMax-AI/MiniMax-M2.5#2: empty roles",
    [
      chunk({ role: "assistant", content: "hel" }),
      chunk({ role: "", content: "lo" }),
      chunk({ role: "" }, "stop"),
    ],
  ],
  [
    "BerriAI/litellm#16272: content as blocks",
    [
      chunk({ role: "assistant", content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }] }] }),
      chunk({ content: [{ type: "text", text: "hel" }] }),
      chunk({ content: "lo" }, "stop"),
    ],
  ],
  [
    "cline/cline#8527: chunks without choices or delta",
    [
      data({ choices: null }),
      data({}),
      data({ choices: [{ index: 0 }] }),
      chunk({ content: "hello" }),
      chunk(null, "stop"),
    ],
  ],
  [
    "the whole message",
    [data({ choices: [{ index: 0, message: { content: "hello" }, finish_reason: "stop" }] })],
  ],
])("%s makes the text", async (_what, chunks) => {
  const { answers } = await run(() => [...chunks, DONE]);
  expect(answers.map(({ text }) => text)).toEqual(["hello"]);
});

test.each<[source: string, usage: Json, counted: [input: number, output: number, cached: number]]>([
  [
    "NousResearch/hermes-agent#61871, DeepSeek: tokens from the cache under a name of its own",
    {
      prompt_tokens: 100,
      completion_tokens: 50,
      total_tokens: 150,
      prompt_cache_hit_tokens: 80,
      prompt_cache_miss_tokens: 20,
    },
    [100, 50, 80],
  ],
  [
    "Moonshot: tokens from the cache beside the prompt's",
    { prompt_tokens: 1000, completion_tokens: 7, total_tokens: 1007, cached_tokens: 640 },
    [1000, 7, 640],
  ],
  [
    "UKGovernmentBEIS/inspect_ai#5528, xAI: reasoning that only the total has",
    {
      prompt_tokens: 10_120,
      completion_tokens: 1499,
      total_tokens: 14_428,
      prompt_tokens_details: { cached_tokens: 128 },
      completion_tokens_details: { reasoning_tokens: 2809 },
    },
    [10_120, 4308, 128],
  ],
  [
    "router-for-me/CLIProxyAPI#5733, Gemini: thoughts alone",
    { prompt_tokens: 21, completion_tokens: 0, total_tokens: 81 },
    [21, 60, 0],
  ],
  [
    "Gitlawb/openclaude#571: a prompt without its tokens from the cache",
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cache_read_input_tokens: 1000 },
    [1010, 5, 1000],
  ],
  [
    "OpenAI",
    {
      prompt_tokens: 2006,
      completion_tokens: 300,
      total_tokens: 2306,
      prompt_tokens_details: { cached_tokens: 1920 },
      completion_tokens_details: { reasoning_tokens: 200 },
    },
    [2006, 300, 1920],
  ],
  [
    "members that are null or no numbers",
    {
      prompt_tokens: 12,
      completion_tokens: 3,
      total_tokens: null,
      prompt_tokens_details: null,
      cached_tokens: "x",
    },
    [12, 3, 0],
  ],
])("%s are counted", async (_source, usage, [input, output, cached]) => {
  const { answers } = await run(() => [
    chunk({ content: "hello" }, "stop"),
    data({ choices: [], usage }),
    DONE,
  ]);
  expect(answers[0]?.usage_metadata).toMatchObject({
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    input_token_details: { cache_read: cached },
  });
});

describe("the Messages API", () => {
  const event = (type: string, more: Json = {}): string => `event: ${type}\n${data({ type, ...more })}`;
  const usage = { input_tokens: 5, output_tokens: 1 };
  const begin = (told: Json = { usage }): string =>
    event("message_start", {
      message: { id: "m1", type: "message", role: "assistant", model: "m", ...told },
    });
  const block = (content_block: Json, ...deltas: unknown[]): string =>
    event("content_block_start", { index: 0, content_block }) +
    deltas.map((delta) => event("content_block_delta", { index: 0, delta })).join("") +
    event("content_block_stop", { index: 0 });
  const hello = block({ type: "text", text: "" }, { type: "text_delta", text: "hello" });
  const stop = (stop_reason: string, more: Json = { usage: { output_tokens: 3 } }): string =>
    event("message_delta", { delta: { stop_reason }, ...more }) + event("message_stop");
  const ls = (more: Json, ...deltas: Json[]): string =>
    block({ type: "tool_use", id: "toolu_a", name: "ls", input: {}, ...more }, ...deltas);
  const args = { type: "input_json_delta", partial_json: '{"path":"/"}' };

  const answersAt = async (stream: (number: number) => string) => {
    const { url } = await streamingProvider(stream);
    const env = { ANTHROPIC_API_KEY: "test-key-0123456789", ANTHROPIC_BASE_URL: url };
    const { model } = await resolveModel({ model: "anthropic:some-model", env });
    const { messages } = await createDeepAgent({ model }).invoke({ messages: [new HumanMessage("go")] });
    return messages.filter((message) => AIMessage.isInstance(message));
  };

  test.each<[what: string, stream: string]>([
    ["Alishahryar1/free-claude-code#123: a beginning without usage", begin({}) + hello + stop("end_turn")],
    ["no message in the beginning", event("message_start") + hello + stop("end_turn")],
    ["earendil-works/pi#6567: an end without usage", begin() + hello + stop("end_turn", {})],
    ["usage that is null", begin({ usage: null }) + hello + stop("end_turn", { usage: null })],
    [
      "a delta that is null",
      begin() +
        block({ type: "text", text: "" }, null, { type: "text_delta", text: "hello" }) +
        stop("end_turn"),
    ],
  ])("%s makes the text", async (_what, stream) => {
    expect((await answersAt(() => stream)).map(({ text }) => text)).toEqual(["hello"]);
  });

  test.each<[what: string, call: string]>([
    ["no id", ls({ id: undefined }, args)],
    ["no arguments at its beginning", ls({ input: null }, args)],
    ["all arguments at its beginning", ls({ input: { path: "/" } })],
    ["its arguments twice", ls({ input: { path: "/" } }, args)],
  ])("a call with %s is made", async (_what, call) => {
    const [first] = await answersAt(
      (n) => begin() + (n === 0 ? call + stop("tool_use") : hello + stop("end_turn")),
    );
    expect(first?.tool_calls).toMatchObject([{ name: "ls", args: { path: "/" } }]);
  });
});

test("sgl-project/sglang#3912: an answer cut off among empty reasons for its end is asked for again", async () => {
  const empty = (content: string): string => chunk({ role: "assistant", content }, "");
  const { answers, count } = await run((n) => (n === 0 ? [empty("hal")] : [empty("hello"), DONE]));
  expect([answers.map(({ text }) => text), count]).toEqual([["hello"], 2]);
});

test.each<[source: string, status: number, body: unknown, code: string, words: string]>([
  [
    "earendil-works/pi#7748",
    400,
    { error_code: "BAD_REQUEST", message: "tool names must match" },
    "model_error",
    "tool names must match",
  ],
  ["earendil-works/pi#5763", 403, { error: "no such team" }, "model_auth", "no such team"],
  [
    "vLLM before 0.10",
    400,
    { object: "error", message: "This model's maximum context length is 4096 tokens", code: 400 },
    "context_overflow",
    "maximum context length",
  ],
  [
    "Gemini's own endpoint",
    400,
    [{ error: { code: 400, message: "Invalid JSON payload" } }],
    "model_error",
    "Invalid JSON",
  ],
  [
    "FastAPI",
    422,
    { detail: [{ loc: ["body", "tools"], msg: "field required" }] },
    "model_error",
    "field required",
  ],
  [
    "NestJS",
    400,
    { statusCode: 400, error: "Bad Request", message: ["tools must be"] },
    "model_error",
    "tools must be",
  ],
  [
    "the usual form",
    400,
    { error: { message: "bad tools", type: "invalid_request_error" } },
    "model_error",
    "bad tools",
  ],
  [
    "langchain-ai/langchain#40362",
    200,
    { error: { message: "Rate limit exceeded", code: 429 } },
    "model_rate_limited",
    "Rate limit exceeded",
  ],
  [
    "MiniMax",
    200,
    { choices: null, base_resp: { status_code: 1002, status_msg: "rate limit" } },
    "model_rate_limited",
    "HTTP 429). Wait a little",
  ],
  [
    "MiniMax",
    200,
    { choices: [], base_resp: { status_code: 1008, status_msg: "insufficient balance" } },
    "model_rate_limited",
    "Check the account's billing, or choose another model. The provider said: insufficient balance",
  ],
  [
    "MiniMax",
    200,
    { base_resp: { status_code: 1004, status_msg: "login fail" } },
    "model_auth",
    "The provider said: login fail",
  ],
  [
    "MiniMax",
    200,
    { choices: null, base_resp: { status_code: 2064, status_msg: "server cluster under high load" } },
    "model_unavailable",
    "is overloaded",
  ],
  [
    "MiniMax",
    200,
    { choices: null, base_resp: { status_code: 2013, status_msg: "invalid params" } },
    "model_error",
    "The provider said: invalid params",
  ],
  [
    "a success without a code",
    200,
    { error: { message: "no such deployment" } },
    "model_error",
    "no such deployment",
  ],
])("%s: a refusal with %i and %j is quoted", async (_source, status, body, code, words) => {
  const failed = await askAt(await answering(status, body)).catch((thrown: unknown) => modelFailure(thrown));
  expect(failed).toMatchObject({ code, message: expect.stringContaining(words) as string });
});

test("mistralai/mistral-vibe#619: a message in place of a stream is read", async () => {
  const message = { role: "assistant", content: "hello" };
  const url = await answering(200, { choices: [{ index: 0, message, finish_reason: "stop" }] });
  expect(await askAt(url)).toMatchObject({ text: "hello" });
});

test("MiniMax: a message with a report of success is read", async () => {
  const message = { role: "assistant", content: "hello" };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const url = await answering(200, { choices, base_resp: { status_code: 0, status_msg: "success" } });
  expect(await askAt(url)).toMatchObject({ text: "hello" });
});

/** The address of a server that gives one answer to everything. */
async function answering(status: number, body: unknown): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  return addressOf(server);
}

const modelAt = async (url: string) => {
  const env = { OPENAI_API_KEY: "test-key-0123456789", OPENAI_BASE_URL: `${url}/v1` };
  return (await resolveModel({ model: "openai:some-model", env })).model;
};

const askAt = async (url: string) => (await modelAt(url)).invoke("go");

/** Runs an agent on a server that sends these streams; gives its replies. */
async function run(stream: (number: number) => readonly string[]) {
  const { url, requests } = await streamingProvider((number) => stream(number).join(""));
  const model = await modelAt(url);
  const { messages } = await createDeepAgent({ model }).invoke({ messages: [new HumanMessage("go")] });
  const answers = messages.filter((message) => AIMessage.isInstance(message));
  return { answers, count: requests.length };
}
