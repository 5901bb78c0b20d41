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

  const messages = (...given: object[]) => ({ tools, messages: given });
  const asked = (...content: object[]) => messages({ role: "user", content });
  /** An answer in the middle of a conversation. */
  const said = (...content: object[]) => messages(user, { role: "assistant", content }, user);
  const calls = (facts: object) =>
    messages(user, { role: "assistant", content: [{ ...use("a").content[0], ...facts }] }, result("a"));
  const failed = { type: "tool_result", tool_use_id: "a", is_error: true, content: [{ type: "image" }] };
  const tiff = { type: "image", source: { type: "base64", media_type: "image/tiff" } };
  const cached = { type: "text", text: "x", cache_control: { type: "ephemeral" } };
  const thinking = { type: "enabled" };

  test.each<[string, object]>([
    ["no low surrogate", messages({ role: "user", content: "\ud800" })],
    ["max_tokens: Field required", { max_tokens: undefined }],
    ["at least one message", messages()],
    ['must use the \\"user\\" role', messages({ role: "assistant", content: "x" })],
    ['Unexpected role \\"system\\"', messages(user, { role: "system", content: "x" })],
    ["must have non-empty content", messages({ role: "user", content: "" })],
    ["text content blocks must be non-empty", asked({ type: "text", text: "" })],
    ["without `tool_result` blocks immediately after: a", messages(user, use("a"), user)],
    ["without `tool_result` blocks immediately after: a", messages(user, use("a"))],
    ["unexpected `tool_use_id`", messages(user, use("a"), result("a", "b"))],
    ["multiple `tool_result` blocks", messages(user, use("a"), result("a", "a"))],
    ["ids must be unique", messages(user, use("a"), result("a"), use("a"), result("a"))],
    ["should match pattern", messages(user, use("a b"), result("a b"))],
    ["must define tools", { messages: [user, use("a"), result("a")] }],
    ["must contain non-whitespace text", said({ type: "text", text: " \n" })],
    ["Input tag 'audio'", asked({ type: "audio" })],
    ["Input tag 'image'", said({ type: "image" })],
    ["media_type: Input should be one of", asked(tiff)],
    [
      "all content must be type `text` if `is_error` is true",
      messages(user, use("a"), { role: "user", content: [failed] }),
    ],
    ["tool_use.name: String should match", calls({ name: "a.b" })],
    ["Invalid `signature` in `thinking` block", said({ type: "thinking", thinking: "x", signature: "y" })],
    ["Expected `thinking` or `redacted_thinking`", { ...messages(user, use("a"), result("a")), thinking }],
    [
      "Thinking may not be enabled when tool_choice forces tool use",
      { tools, thinking, tool_choice: { type: "any" } },
    ],
    ["not found in provided tools", { tools, tool_choice: { type: "tool", name: "other" } }],
    ["must end with a user message", messages(user, { role: "assistant", content: "I" })],
    ["must have non-empty content", messages(user, { role: "assistant", content: [] })],
    ["temperature", { thinking: { type: "adaptive" }, temperature: 0 }],
    ["greater than or equal to 1024", { thinking: { ...thinking, budget_tokens: 5 } }],
    [
      "must be greater than `thinking.budget_tokens`",
      { max_tokens: 1024, thinking: { ...thinking, budget_tokens: 1024 } },
    ],
    ["thinking.cache_control: Extra inputs", said({ ...cached, type: "thinking" })],
    ["tool_use.input: Input should be a valid dictionary", calls({ input: null })],
    ["names must be unique", { tools: [...tools, ...tools] }],
    ["name: String should match", { tools: [{ name: "a.b", input_schema: schema }] }],
    ["input_schema.type: Field required", { tools: [{ name: "a", input_schema: {} }] }],
    ["does not support oneOf", { tools: [{ name: "a", input_schema: { ...schema, anyOf: [] } }] }],
    [
      "JSON schema is invalid",
      { tools: [{ name: "a", input_schema: { ...schema, properties: { x: { type: "text" } } } }] },
    ],
    ["Found 5", { system: [cached, cached, cached, cached, cached] }],
  ])("refuses: %s", async (message, facts) => {
    const { status, text } = await post("/v1/messages", { ...valid, ...facts }, headers);
    expect(text).toContain(message);
    expect(status).toBe(400);
  });

  test("refuses what is not JSON", async () => {
    expect(await post("/v1/messages", "{", headers)).toMatchObject({
      status: 400,
      text: expect.stringContaining("not valid JSON"),
    });
  });
});
