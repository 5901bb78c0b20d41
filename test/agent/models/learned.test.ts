import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Exchange } from "../../../src/agent/models/exchange.ts";
import { Lessons, learn } from "../../../src/agent/models/profiles/learned.ts";
import type { Wire } from "../../../src/agent/models/profiles/outgoing.ts";
import type { Json } from "../../../src/agent/models/strict-chunks.ts";
import table from "../../../src/agent/models/profiles/lessons.json" with { type: "json" };
import { buildProfile } from "../../../src/agent/models/profiles/profile.ts";
import { requestRules } from "../../../src/agent/models/profiles/schema.ts";

const TOOL = {
  type: "function",
  function: {
    name: "ls",
    description: "Lists.",
    parameters: { type: "object", properties: { path: { type: "string", pattern: "^/" } } },
  },
};
const CALL = { id: "call_abcdef", type: "function", function: { name: "ls", arguments: "{}" } };
const SYSTEM = { role: "system", content: "You help." };
const USER = { role: "user", content: "Hi." };
const CALLS = { role: "assistant", content: "", tool_calls: [CALL] };
const RESULT = { role: "tool", tool_call_id: "call_abcdef", content: "a" };
const CHAT: Json = {
  model: "m",
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 16_384,
  temperature: 0.2,
  tools: [TOOL],
  messages: [SYSTEM, USER, CALLS, RESULT],
};
const MARK = { cache_control: { type: "ephemeral" } };
const MESSAGES: Json = {
  model: "m",
  max_tokens: 16_384,
  stream: true,
  ...MARK,
  system: [{ type: "text", text: "You help.", ...MARK }],
  tools: [{ name: "ls", input_schema: TOOL.function.parameters }],
  messages: [USER],
};

class Refusal extends Error {
  readonly status: number;
  readonly error: unknown;

  constructor(text: string, status = 400) {
    super(text);
    this.status = status;
    this.error = { message: text };
  }
}

interface Played {
  sent: Json[];
  error?: unknown;
  exchange: Exchange;
}

/** Sends a request to a server that refuses it with this text as long as `refuses` finds something. */
async function play(
  text: string,
  refuses: (body: Json) => boolean,
  { body = CHAT, wire = "chat", status = 400 }: { body?: Json; wire?: Wire; status?: number } = {},
): Promise<Played> {
  const exchange = new Exchange(
    buildProfile("m", { provider: "openai", address: "https://llm.example.com/v1" }),
  );
  const sent: Json[] = [];
  const post = (request: Json): Promise<string> => {
    sent.push(request);
    return refuses(request) ? Promise.reject(new Refusal(text, status)) : Promise.resolve("answer");
  };
  const error: unknown = await exchange.send(body, wire, post).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { sent, exchange, ...(error === undefined ? {} : { error }) };
}

const says = (part: string) => (body: Json) => JSON.stringify(body).includes(part);
const has = (name: string) => (body: Json) => name in body;
const messages = (body: Json) => body["messages"] as Json[];
const withMessages = (...list: Json[]): Json => ({ ...CHAT, messages: list });

interface Row {
  subject: string;
  wire?: Wire;
  body: Json;
  refuses: (body: Json) => boolean;
  /** Requests in all; default 2. */
  requests?: number;
  texts: string[];
}

const ROWS: Row[] = [
  {
    subject: "cache marks at the top",
    wire: "messages",
    body: MESSAGES,
    refuses: has("cache_control"),
    texts: [
      "cache_control: Extra inputs are not permitted",
      "1 validation error for Request: body.cache_control is an unknown field",
      "Unrecognized request argument supplied: cache_control",
    ],
  },
  {
    subject: "all cache marks",
    wire: "messages",
    body: MESSAGES,
    refuses: says("cache_control"),
    requests: 3,
    texts: [
      "system.0.cache_control: Extra inputs are not permitted",
      "This model does not support prompt caching.",
      "Unexpected field cache_control of type ephemeral in content block",
    ],
  },
  {
    subject: "cache marks of text blocks",
    body: withMessages({ role: "system", content: [{ type: "text", text: "You help.", ...MARK }] }, USER),
    refuses: () => false,
    requests: 1,
    texts: ["messages.0.content.0.cache_control: Extra inputs are not permitted"],
  },
  {
    subject: "a forced tool call",
    body: { ...CHAT, tool_choice: "required" },
    refuses: (body) => body["tool_choice"] === "required",
    texts: [
      "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode",
      "deepseek-reasoner does not support this tool_choice",
      "tool_choice 'required' is incompatible with thinking enabled",
      "No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit the documentation.",
    ],
  },
  {
    subject: "a forced tool call",
    wire: "messages",
    body: { ...MESSAGES, tool_choice: { type: "any" } },
    refuses: has("tool_choice"),
    texts: [
      "Thinking may not be enabled when tool_choice forces tool use.",
      "tool_choice forces tool use is not compatible with this model",
      "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.",
    ],
  },
  {
    subject: "the role `developer`",
    body: withMessages({ ...SYSTEM, role: "developer" }, USER),
    refuses: says('"developer"'),
    texts: [
      "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.0.role'",
      "messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`",
      "Unexpected message role: developer",
    ],
  },
  {
    subject: "the role `system`",
    body: withMessages(SYSTEM, USER),
    refuses: says('"system"'),
    texts: [
      "System role not supported",
      "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
      "Developer instruction is not enabled for models/gemma-3-27b-it",
      "Invalid role: system",
    ],
  },
  {
    subject: "calls without a thought signature",
    body: CHAT,
    refuses: (body) => says("tool_calls")(body) && !says("thought_signature")(body),
    texts: [
      "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
      "Unable to submit request because function call `ls` in the 2. content block is missing a `thought_signature`.",
      "missing thoughtSignature in part 3",
    ],
  },
  {
    subject: "replies without `reasoning_content`",
    body: CHAT,
    refuses: (body) => says("tool_calls")(body) && !says("reasoning_content")(body),
    texts: [
      "The `reasoning_content` in the thinking mode must be passed back to the API.",
      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
      "Missing `reasoning_content` field in the assistant message at message index 2.",
    ],
  },
  {
    subject: "reasoning in earlier replies",
    body: withMessages(SYSTEM, USER, { ...CALLS, reasoning_content: "Hm." }, RESULT),
    refuses: says("reasoning_content"),
    texts: [
      "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
      "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 2, 'assistant', 'reasoning_content'), 'msg': 'Extra inputs are not permitted'}]",
      "Unknown parameter: 'messages[2].reasoning_content'.",
    ],
  },
  {
    subject: "reasoning details in earlier replies",
    body: withMessages(SYSTEM, USER, { ...CALLS, reasoning_details: [{ text: "Hm." }] }, RESULT),
    refuses: says("reasoning_details"),
    texts: [
      "messages.2.reasoning_details: Extra inputs are not permitted",
      "Unknown parameter: 'messages[2].reasoning_details'.",
      "property 'reasoning_details' is unsupported",
    ],
  },
  {
    subject: "ids of calls",
    body: CHAT,
    refuses: says("call_abcdef"),
    texts: [
      "Tool call id was call_abcdef but must be a-z, A-Z, 0-9, with a length of 9.",
      "Tool call IDs should be alphanumeric strings with length 9!",
      "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 53 instead.",
      "messages.2.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
  },
  {
    subject: "a message of the user after tool results",
    body: withMessages(SYSTEM, USER, CALLS, RESULT, USER),
    refuses: (body) =>
      messages(body).some(({ role }, at, all) => role === "user" && all[at - 1]?.["role"] === "tool"),
    texts: [
      "Unexpected role 'user' after role 'tool'",
      "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
      "Conversation roles must alternate user/assistant/user/assistant/...",
    ],
  },
  {
    subject: "a history with calls and no tools",
    body: { model: "m", messages: [SYSTEM, USER, CALLS, RESULT] },
    refuses: (body) => !has("tools")(body),
    texts: [
      "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified.",
      "Requests which include `tool_use` or `tool_result` blocks must define tools",
      "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    ],
  },
  {
    subject: "an empty content beside calls",
    body: CHAT,
    refuses: (body) => messages(body).some(({ content }) => content === ""),
    texts: [
      "messages: text content blocks must be non-empty",
      "The text field in the ContentBlock object at messages.3.content.0 is blank. Add text to the text field, and try again.",
      "message at position 2 with role 'assistant' must not be empty",
    ],
  },
  {
    subject: "an empty content beside calls, and null",
    body: CHAT,
    refuses: (body) => messages(body).some((message) => "content" in message && !message["content"]),
    requests: 3,
    texts: [
      "Each message must have at least one content element.",
      "Input should be a valid string: messages.2.content is empty",
      "messages[2].content must not be null or empty",
    ],
  },
  {
    subject: "bounds in the schemas of tools",
    body: CHAT,
    refuses: says('"pattern"'),
    texts: [
      "Failed to parse grammar",
      "Invalid schema for function 'ls': 'pattern' is not permitted.",
      "tools.0.function.parameters: JSON schema keyword `pattern` is not supported",
    ],
  },
  {
    subject: "schemas of tools",
    body: CHAT,
    refuses: says('"path"'),
    requests: 3,
    texts: [
      "failed to initialize samplers: Failed to parse grammar",
      "The schema of a tool is too complex, please simplify it.",
      "Invalid schema for function 'ls'",
    ],
  },
  {
    subject: "a limit of output tokens that is too high",
    body: CHAT,
    refuses: (body) => Number(body["max_tokens"]) > 8192,
    texts: [
      "max_tokens is too large: 16384. This model supports at most 8192 completion tokens, whereas you provided 16384.",
      "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022",
      "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
      "`max_tokens` must be less than or equal to `8,192`, the maximum value for this model",
    ],
  },
  {
    subject: "the name of the limit of output tokens",
    body: CHAT,
    refuses: has("max_tokens"),
    texts: [
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "max_tokens is not supported, please use max_completion_tokens",
      "Unrecognized request argument supplied: max_tokens",
    ],
  },
  {
    subject: "the other name of the limit of output tokens",
    body: { model: "m", max_completion_tokens: 900, messages: [USER] },
    refuses: has("max_completion_tokens"),
    texts: [
      "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]",
      "Unrecognized request argument supplied: max_completion_tokens",
      'Unknown name "max_completion_tokens": Cannot find field.',
    ],
  },
  {
    subject: "tools",
    body: { ...CHAT, messages: [SYSTEM, USER] },
    refuses: has("tools"),
    texts: [
      "registry.ollama.ai/library/gemma2:latest does not support tools",
      "`tool calling` is not supported with this model",
      'No endpoints found that support tool use. Try disabling "ls".',
      "Function calling is not enabled for this model",
    ],
  },
  {
    subject: "stream_options",
    body: CHAT,
    refuses: has("stream_options"),
    texts: [
      'Bad request: json: unknown field "stream_options"',
      "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
      "Unrecognized request argument supplied: stream_options",
      "body.stream_options: additional properties are not allowed",
    ],
  },
  {
    subject: "a choice that is not forced",
    wire: "messages",
    body: { ...MESSAGES, tool_choice: { type: "none" } },
    refuses: has("tool_choice"),
    texts: [
      // BerriAI/litellm#24443
      "Incompatible tool choice param submitted - {'type': 'none'}",
      "litellm.UnsupportedParamsError: openai does not support parameters: ['tool_choice'], for model=m",
    ],
  },
  {
    subject: "reasoning beside a text, and calls",
    body: withMessages(SYSTEM, USER, { ...CALLS, content: "I look.", reasoning: "Hm." }, RESULT),
    refuses: says('"reasoning"'),
    texts: [
      // ggml-org/llama.cpp#17040
      "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in one or the other, but not both. at row 290, column 178",
    ],
  },
  {
    subject: "tools in the words of a list of parameters",
    body: CHAT,
    refuses: has("tools"),
    texts: [
      // BerriAI/litellm#7785
      "litellm.UnsupportedParamsError: together_ai does not support parameters: {'tools': [{'type': 'function'}]}, for model=m. To drop these, set `litellm.drop_params=True`",
    ],
  },
  {
    subject: "parallel_tool_calls",
    body: { ...CHAT, parallel_tool_calls: true },
    refuses: has("parallel_tool_calls"),
    texts: [
      "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
      "parallel_tool_calls is not supported",
      "property 'parallel_tool_calls' is unsupported, did you mean 'tool_calls'?",
    ],
  },
  {
    subject: "temperature",
    body: CHAT,
    refuses: has("temperature"),
    texts: [
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      "`temperature` is deprecated for this model.",
      "invalid temperature: only 1 is allowed for this model",
    ],
  },
  {
    subject: "a member with an ordinary name",
    body: { ...CHAT, user: "u", stop: ["x"] },
    refuses: has("stop"),
    texts: [
      "Unsupported parameter: 'stop' is not supported with this model.",
      'Argument not supported on this model: "stop"',
      "Unknown parameter: `stop`",
    ],
  },
  {
    subject: "thinking",
    wire: "messages",
    body: { ...MESSAGES, thinking: { type: "adaptive" } },
    refuses: has("thinking"),
    texts: [
      "adaptive thinking is not supported on this model",
      "thinking: Extra inputs are not permitted",
      '"thinking" is an invalid parameter for this model',
    ],
  },
  {
    subject: "the length of answers of the responses API",
    wire: "responses",
    body: { model: "m", input: [], max_output_tokens: 900, store: false },
    refuses: has("max_output_tokens"),
    texts: [
      "Unsupported parameter: max_output_tokens",
      "Unknown parameter: 'max_output_tokens'.",
      "max_output_tokens is not supported",
    ],
  },
];

describe("a request is repeated without what was refused", () => {
  test.each(ROWS.flatMap((row) => row.texts.map((text) => ({ ...row, text }))))(
    "$subject: $text",
    async ({ text, refuses, body, wire = "chat", requests = 2 }) => {
      const status = text.startsWith("No endpoints") ? 404 : 400;
      const { sent, error, exchange } = await play(text, refuses, { body, wire, status });
      expect(error).toBeUndefined();
      expect(sent).toHaveLength(requests);
      expect(sent.at(-1)).toMatchObject({ model: "m" });
      // What was learned holds for later requests, and is told once.
      const later: Json[] = [];
      await exchange.send(body, wire, (one) => Promise.resolve(later.push(one)));
      expect(later).toEqual([sent.at(-1)]);
      expect(exchange.takeNotices()).toHaveLength(requests > 1 ? 1 : 0);
      expect(exchange.takeNotices()).toEqual([]);
    },
  );

  test("a name of parameters of tools is no reason to send no tools", async () => {
    const { sent, error } = await play(
      "Images in tool results are not supported by this model",
      says('"role":"tool"'),
    );
    expect(error).toBeDefined();
    for (const body of sent) expect(body).toHaveProperty("tools");
  });

  test("a server that only has the responses API is asked there, and that is kept when it has answered", async () => {
    const texts = [
      "This model is only supported in v1/responses and not in v1/chat/completions.",
      'model "gpt-5.3-codex" is not accessible via the /chat/completions endpoint',
      "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. Please use /v1/responses instead.",
    ];
    for (const text of texts) {
      const { sent, error, exchange } = await play(text, () => true);
      expect(error).toBeInstanceOf(Refusal);
      expect(sent).toHaveLength(1);
      expect(exchange.rules.wire).toBe("responses");
      expect(exchange.takeNotices()).toEqual([]);
      const refused = exchange.send({ input: [] }, "responses", () =>
        Promise.reject(new Refusal("No.", 404)),
      );
      await expect(refused).rejects.toThrow("No.");
      expect(exchange.rules.wire).toBeUndefined();
      await expect(exchange.send(CHAT, "chat", () => Promise.reject(new Refusal(text)))).rejects.toThrow(
        Refusal,
      );
      await exchange.send({ input: [] }, "responses", () => Promise.resolve("answer"));
      expect(exchange.rules.wire).toBe("responses");
      expect(exchange.takeNotices()).toHaveLength(1);
    }
  });
});

describe("a refusal of something else teaches nothing", () => {
  test.each([
    ["Your request was flagged by our content policy: unsupported parameter temperature", 400],
    ["The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", 400],
    ["This content was rejected by the safety system: temperature is not supported", 400],
    ["Incorrect API key provided: temperature. Unsupported parameter.", 400],
    ["API key not valid. Please pass a valid API key.", 400],
    ["Your credit balance is too low to access the API: max_tokens", 400],
    ["Arrearage: Access denied, please make sure your account is in good standing. tool_choice invalid", 400],
    ["unknown model: temperature", 400],
    ["The model `m` does not exist or you do not have access to it.", 404],
    ["Invalid model name passed in model=m. Call `/v1/models` to view available models: temperature", 400],
    ["Rate limit reached for temperature: unsupported", 400],
    ["Unsupported parameter: 'temperature'", 401],
    ["Unsupported parameter: 'temperature'", 403],
    ["Unsupported parameter: 'temperature'", 429],
    ["Unsupported parameter: 'temperature'", 402],
    ["Unsupported parameter: 'temperature'", 503],
    ["This model's maximum context length is 8192 tokens, unsupported: max_tokens", 400],
    ["prompt is too long: 210000 tokens > 200000 maximum: temperature", 400],
    ["messages.3: tool_use ids were found without tool_result blocks immediately after", 400],
    ["Internal Server Error", 500],
    ["Something else is wrong.", 400],
    ["", 400],
  ])("%s (%s)", async (text, status) => {
    const { sent, error, exchange } = await play(text, () => true, { status });
    expect(error).toBeInstanceOf(Refusal);
    expect(sent).toEqual([CHAT]);
    expect(exchange.rules).toEqual({});
    expect(exchange.takeNotices()).toEqual([]);
  });
});

describe("hostile texts lead to few requests, each with its model and messages", () => {
  const members = Array.from({ length: 100 }, (_, at) => `member_${at}`);
  const everything = Object.fromEntries(members.map((name) => [name, 1]));
  const names = [...Object.keys(CHAT), ...members, "messages", "model", "role", "content"];
  test.each([
    ["the messages", "Unsupported parameter: 'messages'", CHAT],
    ["the model", "Unsupported parameter: 'model'", CHAT],
    ["100 members", `Unknown parameters: ${members.join(", ")}`, { ...CHAT, ...everything }],
    [
      "100 members, and no messages",
      `unsupported: messages, model, ${members.join(", ")}`,
      { ...CHAT, ...everything },
    ],
    [
      "everything",
      `unsupported invalid ${names.join(" ")} cache_control /responses tool_choice developer system thought_signature reasoning_content must missing tool call id length user after tool roles must alternate without tools= content empty grammar schema pattern does not support tools max_tokens 1024 max_completion_tokens`,
      { ...CHAT, ...everything, tool_choice: "required" },
    ],
    ["a long text", "unsupported ".repeat(100_000), CHAT],
    ["a long sentence", `${"a".repeat(1_000_000)} unsupported temperature`, CHAT],
    ["many numbers", `max_tokens ${"1234 ".repeat(100_000)}`, CHAT],
    ["a pattern", "unsupported (.*)+$ [a-z]+ \\w+", { ...CHAT, "(.*)+$": 1, "[a-z]+": 1 }],
    ["half a character", `unsupported ${"\ud800".repeat(50_000)} temperature`, CHAT],
  ])("%s", async (_what, text, body) => {
    for (const wire of ["chat", "messages", "responses"] as const) {
      const { sent, error, exchange } = await play(text, () => true, { body, wire });
      expect(error).toBeInstanceOf(Refusal);
      expect(sent.length).toBeLessThanOrEqual(7);
      for (const { model, messages: list } of sent) {
        expect(model).toBe("m");
        expect(list).toHaveLength(4);
      }
      // Nothing is kept, as no request was accepted.
      expect(exchange.takeNotices()).toEqual([]);
      const later: Json[] = [];
      await exchange.send(CHAT, "messages", (one) => Promise.resolve(later.push(one)));
      expect(later).toEqual([CHAT]);
    }
  });

  test("no text takes long to read", () => {
    const refusal = { body: CHAT, wire: "chat" as const, rules: {} };
    for (const part of [
      "reasoning_content ",
      "tool call id ",
      "content empty ",
      "not support ",
      "roles user after ",
    ])
      expect(() => learn({ ...refusal, text: part.repeat(20_000) })).not.toThrow();
  });
});

test.each([
  ["tool_choice 'required' is not supported in thinking mode", { forced: "no" }],
  [
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    { thoughts: { field: "blocks", missing: "off" } },
  ],
])("over Anthropic's API: %s", (text, rules) => {
  const USE = { type: "tool_use", id: "toolu_1", name: "ls", input: {} };
  const messages = [USER, { role: "assistant", content: [USE] }];
  const choice = "forced" in rules ? { tool_choice: { type: "any" } } : {};
  expect(
    learn({ text, body: { ...MESSAGES, messages, ...choice }, wire: "messages", rules: {} })?.rules,
  ).toEqual(rules);
});

test("each row of the table has rules, or a change, and patterns that can be read", () => {
  for (const row of table.lessons) {
    const { rules, change } = row as { rules?: unknown; change?: string };
    expect(
      rules === undefined ? ["drop", "output"].includes(change ?? "") : requestRules.parse(rules),
    ).toBeTruthy();
    for (const fact of ("when" in row && row.when) || [])
      expect(fact).toMatch(
        /^(?:\w+=\w+|chat|messages|topMark|choice|forced|developer|system|calls|tools|noTools|thoughts|unthought|userAfterTool|emptyReply)$/,
      );
  }
});

describe("the file of lessons", () => {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-lessons-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const AT = { place: "llm.example.com/v1", model: "m" };
  const line = (more: Json) =>
    `${JSON.stringify({ date: new Date().toISOString(), ...AT, rules: { drop: ["stop"] }, ...more })}\n`;

  test("has each lesson with its date, and is read by another process", () => {
    const file = join(folder, "written.jsonl");
    const before = Date.now();
    const lessons = new Lessons(file);
    lessons.keep(AT, { drop: ["stream_options"] });
    lessons.keep(AT, { most: { max_tokens: 4096 } }, 32_000);
    lessons.keep({ ...AT, model: "other" }, { forced: "no" });
    const lines = readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text) as Json);
    expect(lines).toMatchObject([
      { ...AT, rules: { drop: ["stream_options"] } },
      { ...AT, rules: { most: { max_tokens: 4096 } }, window: 32_000 },
      { ...AT, model: "other", rules: { forced: "no" } },
    ]);
    for (const { date } of lines) expect(Date.parse(String(date))).toBeGreaterThanOrEqual(before);
    const known = { rules: { drop: ["stream_options"], most: { max_tokens: 4096 } }, window: 32_000 };
    // As another process reads it.
    expect(new Lessons(file).of(AT)).toEqual(known);
    expect(lessons.of(AT)).toEqual(known);
    expect(lessons.of({ place: "elsewhere", model: "m" })).toEqual({ rules: {} });
  });

  test("lines that are old, damaged, or of another form are not read", () => {
    const file = join(folder, "damaged.jsonl");
    const old = new Date(Date.now() - 31 * 86_400_000).toISOString();
    writeFileSync(
      file,
      [
        line({ date: old, rules: { drop: ["seed"] } }),
        line({ date: "yesterday", rules: { drop: ["seed"] } }),
        line({ date: undefined, rules: { drop: ["seed"] } }),
        line({ rules: { drop: "seed" } }),
        line({ rules: { unheard: true } }),
        line({ rules: undefined }),
        line({ rules: {}, window: "many" }),
        "null\n[]\n7\n\u0000\n",
        line({}).slice(0, 40),
        "\n",
        line({ rules: { drop: ["user"] } }),
        line({}),
      ].join(""),
    );
    expect(new Lessons(file).of(AT)).toEqual({ rules: { drop: ["user", "stop"] } });
  });

  test("two writers do not lose each other's lessons", () => {
    const file = join(folder, "two.jsonl");
    const [one, other] = [new Lessons(file), new Lessons(file)];
    expect([one.of(AT), other.of(AT)]).toEqual([{ rules: {} }, { rules: {} }]);
    for (let at = 0; at < 20; at += 1) {
      one.keep(AT, { drop: [`one_${at}`] });
      other.keep(AT, { drop: [`other_${at}`] });
    }
    const { rules } = new Lessons(file).of(AT);
    expect(rules.drop).toHaveLength(40);
  });

  test("a line that another process has not ended does not spoil the next one", () => {
    const file = join(folder, "cut.jsonl");
    writeFileSync(file, line({}).slice(0, 30));
    new Lessons(file).keep(AT, { drop: ["user"] });
    appendFileSync(file, line({}));
    expect(new Lessons(file).of(AT).rules.drop).toContain("stop");
  });

  test("a folder that cannot be written does not fail a request", async () => {
    const file = join(folder, "missing", "lessons.jsonl");
    const profile = buildProfile("m", { provider: "openai", address: "https://llm.example.com/v1" });
    const exchange = new Exchange(profile, { lessons: new Lessons(file) });
    const sent: Json[] = [];
    const post = (body: Json) => {
      sent.push(body);
      return "temperature" in body
        ? Promise.reject(new Refusal("Unsupported parameter: 'temperature'"))
        : Promise.resolve("answer");
    };
    expect(await exchange.send(CHAT, "chat", post)).toBe("answer");
    await exchange.send(CHAT, "chat", post);
    // It is known in this process.
    expect(sent).toHaveLength(3);
  });
});
