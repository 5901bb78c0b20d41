import { describe, expect, test } from "vitest";
import { wirePost } from "./wire-post.ts";
import { WIRE_KEY } from "./wire-server.ts";

const post = wirePost();

const user = { role: "user", content: "hi" };
const schema = { type: "object", properties: {} };

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

  const messages = (...given: object[]) => ({ ...chat, messages: given });
  const picture = [{ type: "image_url", image_url: { url: "x" } }];
  const oddCall = { ...asks(), tool_calls: [{ ...call("a"), function: { name: "a.b", arguments: "{}" } }] };
  const ids = Array.from({ length: 129 }, (_, index) => `c${index}`);

  test.each<[string, object]>([
    ["model parameter", { messages: [user] }],
    ["Invalid 'messages': empty array", messages()],
    ["did not have response messages: b", messages(user, asks("a", "b"), told("a"), user)],
    ["did not have response messages: a", messages(user, asks("a"))],
    ["must be a response to a preceeding message", messages(user, told("a"))],
    ["must be a response to a preceeding message", messages(user, asks("a"), told("a"), told("a"))],
    ["expected a string, got null", messages({ role: "user", content: null })],
    [
      "Image URLs are only allowed for messages with role 'user'",
      messages(user, asks("a"), { ...told("a"), content: picture }),
    ],
    [
      "Supported values are: 'text', 'refusal'",
      messages({ role: "assistant", content: [{ type: "thinking" }] }),
    ],
    ["Duplicate value for 'tool_call_id'", messages(user, asks("a", "a"), told("a"))],
    ["Missing required parameter: 'messages[1].tool_calls[0].id'", messages(user, asks(""))],
    ["maximum length 128", messages(user, asks(...ids))],
    ["maximum length 40", messages(user, asks("a".repeat(41)), told("a".repeat(41)))],
    ["function.name': string does not match pattern", messages(user, oddCall, told("a"))],
    ["tool_calls': empty array", messages(user, { ...asks(), content: "x" })],
    ["content': empty array", messages({ role: "user", content: [] })],
    ["only allowed when 'tools' are specified", { ...chat, tool_choice: "required" }],
    ["Supported values are", messages({ role: "robot", content: "x" })],
    ["Invalid 'tools': empty array", { ...chat, tools: [] }],
    ["does not match pattern", tool({ name: "a.b" })],
    ["schema must be a JSON Schema", tool({ parameters: {} })],
    ["at the top level", tool({ parameters: { ...schema, oneOf: [] } })],
    ["array schema missing items", tool({ parameters: { ...schema, properties: { x: { type: "array" } } } })],
  ])("refuses in chat completions: %s", async (message, body) => {
    const { status, text } = await post("/v1/chat/completions", body, headers);
    expect(text).toContain(message);
    expect(status).toBe(400);
  });

  const made = { type: "function_call", call_id: "a", name: "ls", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "a", output: "x" };
  const reasoning = { type: "reasoning", id: "rs_1" };
  const twice = { ...made, id: "fc_1" };
  const nameless = [{ type: "function", function: { name: "ls" } }];
  test.each<[string, object[], object?]>([
    ["Duplicate tool output", [user, made, output, output]],
    ["Expected an ID that begins with 'msg'", [{ ...user, id: "x" }]],
    ["without its required following item", [reasoning, user]],
    ["Supported values are: 'input_text'", [{ role: "user", content: [{ type: "image_url" }] }]],
    ["No tool call found for function call output", [user, output, made]],
    ["Duplicate item found with id fc_1", [user, twice, { ...twice, call_id: "b" }]],
    ["Expected a string with maximum length 64", [user, { ...made, id: `fc_${"x".repeat(62)}` }, output]],
    ["No tool output found for function call a", [user, made]],
    ["No tool call found for function call output with call_id a", [user, output]],
    ["Items are not persisted", [{ ...reasoning, summary: [] }, made, output], { store: false }],
    ["Missing required parameter: 'tools[0].name'", [user], { tools: nameless }],
  ])("refuses in responses: %s", async (message, input, facts) => {
    const { status, text } = await post("/v1/responses", { model: "m", input, ...facts }, headers);
    expect(text).toContain(message);
    expect(status).toBeGreaterThanOrEqual(400);
  });
});
