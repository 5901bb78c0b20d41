import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWireServer, WIRE_KEY, type WireServer } from "./wire-server.ts";

let server: WireServer;
beforeAll(async () => {
  server = await startWireServer(() => ({ text: "hello" }));
});
afterAll(() => server.close());

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<{ status: number; text: string }> {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const user = { role: "user", content: "hi" };
const schema = { type: "object", properties: {} };

describe("Anthropic Messages", () => {
  const headers = { "x-api-key": WIRE_KEY, "anthropic-version": "2023-06-01" };
  const valid = { model: "m", max_tokens: 10, messages: [user] };
  const use = (id: string) => ({
    role: "assistant",
    content: [{ type: "tool_use", id, name: "ls", input: {} }],
  });
  const result = (...ids: string[]) => ({
    role: "user",
    content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "x" })),
  });
  const tools = [{ name: "ls", input_schema: schema }];

  test("answers a request that keeps the rules", async () => {
    const { status, text } = await post("/v1/messages", valid, headers);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      role: "assistant",
      content: [{ type: "text", text: "hello" }],
      stop_reason: "end_turn",
    });
    const history = { ...valid, tools, messages: [user, use("a"), result("a"), use("b"), result("b"), user] };
    expect((await post("/v1/messages", history, headers)).status).toBe(200);
  });

  test("asks for a key", async () => {
    expect((await post("/v1/messages", valid, {})).status).toBe(401);
    expect((await post("/v1/messages", valid, { ...headers, "x-api-key": "other" })).text).toContain(
      "authentication_error",
    );
  });

  test.each<[string, object | string]>([
    ["not valid JSON", "{"],
    ["no low surrogate", { ...valid, messages: [{ role: "user", content: "\ud800" }] }],
    ["max_tokens: Field required", { ...valid, max_tokens: undefined }],
    ["at least one message", { ...valid, messages: [] }],
    ['must use the \\"user\\" role', { ...valid, messages: [{ role: "assistant", content: "x" }] }],
    ['Unexpected role \\"system\\"', { ...valid, messages: [user, { role: "system", content: "x" }] }],
    ["must have non-empty content", { ...valid, messages: [{ role: "user", content: "" }] }],
    [
      "text content blocks must be non-empty",
      { ...valid, messages: [{ role: "user", content: [{ type: "text", text: "" }] }] },
    ],
    [
      "without `tool_result` blocks immediately after: a",
      { ...valid, tools, messages: [user, use("a"), user] },
    ],
    ["without `tool_result` blocks immediately after: a", { ...valid, tools, messages: [user, use("a")] }],
    ["unexpected `tool_use_id`", { ...valid, tools, messages: [user, use("a"), result("a", "b")] }],
    ["multiple `tool_result` blocks", { ...valid, tools, messages: [user, use("a"), result("a", "a")] }],
    [
      "ids must be unique",
      { ...valid, tools, messages: [user, use("a"), result("a"), use("a"), result("a")] },
    ],
    ["should match pattern", { ...valid, tools, messages: [user, use("a b"), result("a b")] }],
    ["must define tools", { ...valid, messages: [user, use("a"), result("a")] }],
    [
      "must contain non-whitespace text",
      { ...valid, messages: [user, { role: "assistant", content: [{ type: "text", text: " \n" }] }, user] },
    ],
    ["Input tag 'audio'", { ...valid, messages: [{ role: "user", content: [{ type: "audio" }] }] }],
    [
      "Input tag 'image'",
      { ...valid, messages: [user, { role: "assistant", content: [{ type: "image" }] }, user] },
    ],
    [
      "media_type: Input should be one of",
      {
        ...valid,
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/tiff" } }],
          },
        ],
      },
    ],
    [
      "all content must be type `text` if `is_error` is true",
      {
        ...valid,
        tools,
        messages: [
          user,
          use("a"),
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "a", is_error: true, content: [{ type: "image" }] },
            ],
          },
        ],
      },
    ],
    [
      "tool_use.name: String should match",
      {
        ...valid,
        tools,
        messages: [
          user,
          { role: "assistant", content: [{ type: "tool_use", id: "a", name: "a.b", input: {} }] },
          result("a"),
        ],
      },
    ],
    [
      "Invalid `signature` in `thinking` block",
      {
        ...valid,
        messages: [
          user,
          { role: "assistant", content: [{ type: "thinking", thinking: "x", signature: "y" }] },
          user,
        ],
      },
    ],
    [
      "Expected `thinking` or `redacted_thinking`",
      { ...valid, tools, thinking: { type: "enabled" }, messages: [user, use("a"), result("a")] },
    ],
    [
      "Thinking may not be enabled when tool_choice forces tool use",
      { ...valid, tools, thinking: { type: "enabled" }, tool_choice: { type: "any" } },
    ],
    ["not found in provided tools", { ...valid, tools, tool_choice: { type: "tool", name: "other" } }],
    ["must end with a user message", { ...valid, messages: [user, { role: "assistant", content: "I" }] }],
    ["must have non-empty content", { ...valid, messages: [user, { role: "assistant", content: [] }] }],
    ["temperature", { ...valid, thinking: { type: "adaptive" }, temperature: 0 }],
    ["greater than or equal to 1024", { ...valid, thinking: { type: "enabled", budget_tokens: 5 } }],
    [
      "must be greater than `thinking.budget_tokens`",
      { ...valid, max_tokens: 1024, thinking: { type: "enabled", budget_tokens: 1024 } },
    ],
    [
      "thinking.cache_control: Extra inputs",
      {
        ...valid,
        messages: [
          user,
          { role: "assistant", content: [{ type: "thinking", cache_control: { type: "ephemeral" } }] },
          user,
        ],
      },
    ],
    [
      "tool_use.input: Input should be a valid dictionary",
      {
        ...valid,
        tools,
        messages: [
          user,
          { role: "assistant", content: [{ type: "tool_use", id: "a", name: "ls", input: null }] },
          result("a"),
        ],
      },
    ],
    ["names must be unique", { ...valid, tools: [...tools, ...tools] }],
    ["name: String should match", { ...valid, tools: [{ name: "a.b", input_schema: schema }] }],
    ["input_schema.type: Field required", { ...valid, tools: [{ name: "a", input_schema: {} }] }],
    ["does not support oneOf", { ...valid, tools: [{ name: "a", input_schema: { ...schema, anyOf: [] } }] }],
    [
      "JSON schema is invalid",
      { ...valid, tools: [{ name: "a", input_schema: { ...schema, properties: { x: { type: "text" } } } }] },
    ],
    [
      "Found 5",
      {
        ...valid,
        system: Array.from({ length: 5 }, () => ({
          type: "text",
          text: "x",
          cache_control: { type: "ephemeral" },
        })),
      },
    ],
  ])("refuses: %s", async (message, body) => {
    const { status, text } = await post("/v1/messages", body, headers);
    expect(text).toContain(message);
    expect(status).toBe(400);
  });
});

describe("OpenAI", () => {
  const headers = { authorization: `Bearer ${WIRE_KEY}` };
  const call = (id: string) => ({ id, type: "function", function: { name: "ls", arguments: "{}" } });
  const asks = (...ids: string[]) => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
  const told = (id: string) => ({ role: "tool", tool_call_id: id, content: "x" });
  const chat = { model: "m", messages: [user] };
  const tool = (facts: object) => ({
    ...chat,
    tools: [{ type: "function", function: { name: "ls", parameters: schema, ...facts } }],
  });

  test("answers requests that keep the rules", async () => {
    const history = { ...chat, messages: [user, asks("a", "b"), told("b"), told("a"), user] };
    const { status, text } = await post("/v1/chat/completions", history, headers);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      choices: [{ message: { content: "hello" }, finish_reason: "stop" }],
    });
    const response = await post("/v1/responses", { model: "m", input: "hi" }, headers);
    expect(JSON.parse(response.text)).toMatchObject({ status: "completed", output: [{ type: "message" }] });
  });

  test("asks for a key and shows none", async () => {
    const { status, text } = await post("/v1/chat/completions", chat, {
      authorization: "Bearer sk-other-key-123",
    });
    expect(status).toBe(401);
    expect(text).toContain("invalid_api_key");
    expect(text).not.toContain("other-key");
  });

  test.each<[string, object]>([
    ["model parameter", { messages: [user] }],
    ["Invalid 'messages': empty array", { ...chat, messages: [] }],
    ["did not have response messages: b", { ...chat, messages: [user, asks("a", "b"), told("a"), user] }],
    ["did not have response messages: a", { ...chat, messages: [user, asks("a")] }],
    ["must be a response to a preceeding message", { ...chat, messages: [user, told("a")] }],
    [
      "must be a response to a preceeding message",
      { ...chat, messages: [user, asks("a"), told("a"), told("a")] },
    ],
    ["expected a string, got null", { ...chat, messages: [{ role: "user", content: null }] }],
    [
      "Image URLs are only allowed for messages with role 'user'",
      {
        ...chat,
        messages: [
          user,
          asks("a"),
          { ...told("a"), content: [{ type: "image_url", image_url: { url: "x" } }] },
        ],
      },
    ],
    [
      "Supported values are: 'text', 'refusal'",
      { ...chat, messages: [{ role: "assistant", content: [{ type: "thinking" }] }] },
    ],
    ["Duplicate value for 'tool_call_id'", { ...chat, messages: [user, asks("a", "a"), told("a")] }],
    ["Missing required parameter: 'messages[1].tool_calls[0].id'", { ...chat, messages: [user, asks("")] }],
    [
      "maximum length 128",
      { ...chat, messages: [user, asks(...Array.from({ length: 129 }, (_, index) => `c${index}`))] },
    ],
    ["maximum length 40", { ...chat, messages: [user, asks("a".repeat(41)), told("a".repeat(41))] }],
    [
      "function.name': string does not match pattern",
      {
        ...chat,
        messages: [
          user,
          { ...asks(), tool_calls: [{ ...call("a"), function: { name: "a.b", arguments: "{}" } }] },
          told("a"),
        ],
      },
    ],
    ["tool_calls': empty array", { ...chat, messages: [user, { ...asks(), content: "x" }] }],
    ["content': empty array", { ...chat, messages: [{ role: "user", content: [] }] }],
    ["only allowed when 'tools' are specified", { ...chat, tool_choice: "required" }],
    ["Supported values are", { ...chat, messages: [{ role: "robot", content: "x" }] }],
    ["Invalid 'tools': empty array", { ...chat, tools: [] }],
    ["does not match pattern", tool({ name: "a.b" })],
    ["schema must be a JSON Schema", tool({ parameters: {} })],
    ["at the top level", tool({ parameters: { ...schema, oneOf: [] } })],
    [
      "array schema missing items",
      tool({ parameters: { type: "object", properties: { x: { type: "array" } } } }),
    ],
  ])("refuses in chat completions: %s", async (message, body) => {
    const { status, text } = await post("/v1/chat/completions", body, headers);
    expect(text).toContain(message);
    expect(status).toBe(400);
  });

  const made = { type: "function_call", call_id: "a", name: "ls", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "a", output: "x" };
  test.each<[string, object[], object]>([
    ["Duplicate tool output", [user, made, output, output], {}],
    ["Expected an ID that begins with 'msg'", [{ ...user, id: "x" }], {}],
    ["without its required following item", [{ type: "reasoning", id: "rs_1" }, user], {}],
    ["Supported values are: 'input_text'", [{ role: "user", content: [{ type: "image_url" }] }], {}],
    ["No tool call found for function call output", [user, output, made], {}],
    [
      "Duplicate item found with id fc_1",
      [user, { ...made, id: "fc_1" }, { ...made, id: "fc_1", call_id: "b" }],
      {},
    ],
    ["Expected a string with maximum length 64", [user, { ...made, id: `fc_${"x".repeat(62)}` }, output], {}],
    ["No tool output found for function call a", [user, made], {}],
    ["No tool call found for function call output with call_id a", [user, output], {}],
    [
      "Items are not persisted",
      [
        { type: "reasoning", id: "rs_1", summary: [] },
        { ...made, call_id: "x" },
        { ...output, call_id: "x" },
      ],
      { store: false },
    ],
    [
      "Missing required parameter: 'tools[0].name'",
      [user],
      { tools: [{ type: "function", function: { name: "ls" } }] },
    ],
  ])("refuses in responses: %s", async (message, input, facts) => {
    const { status, text } = await post("/v1/responses", { model: "m", input, ...facts }, headers);
    expect(text).toContain(message);
    expect(status).toBeGreaterThanOrEqual(400);
  });
});
