import { describe, expect, test } from "vitest";
import { wirePost } from "./wire-post.ts";
import { WIRE_KEY } from "./wire-server.ts";

const post = wirePost();

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
