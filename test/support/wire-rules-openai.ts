import {
  invalid,
  type Json,
  list,
  record,
  schemaProblem,
  text,
  type WireError,
} from "./wire-server-protocol.ts";

/** The first rule of Chat Completions that a request breaks. */
export const chatProblem = (body: Json): WireError | undefined =>
  openaiToolProblem(
    body,
    list(body["tools"]).map((tool) => record(tool["function"])),
    "function.",
  ) ?? messageProblem(body);

/** Rules that both APIs share; `tools` are the functions, wherever the API puts them. */
export function openaiToolProblem(body: Json, tools: readonly Json[], field: string): WireError | undefined {
  if (text(body["model"]) === "") return invalid("you must provide a model parameter");
  if (Array.isArray(body["tools"]) && tools.length === 0) {
    return invalid(
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    );
  }
  if (tools.length === 0 && body["tool_choice"] !== undefined)
    return invalid(
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    );
  if (tools.length > 128)
    return invalid("Invalid 'tools': array too long. Expected an array with maximum length 128.");
  for (const [index, tool] of tools.entries()) {
    const name = text(tool["name"]);
    if (name === "") return invalid(`Missing required parameter: 'tools[${index}].${field}name'.`);
    if (!isToolName(name)) return invalid(`Invalid 'tools[${index}].${field}name': ${NO_MATCH}`);
    const schema = record(tool["parameters"]);
    if (schema["type"] !== "object") {
      return invalid(
        `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${text(schema["type"]) || "None"}"'.`,
      );
    }
    if (["oneOf", "anyOf", "allOf", "enum", "not"].some((word) => word in schema)) {
      return invalid(
        `Invalid schema for function '${name}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.`,
      );
    }
    if (schema["properties"] === undefined)
      return invalid(
        `Invalid schema for function '${name}': In context=(), object schema missing properties.`,
      );
    const problem = schemaProblem(schema);
    if (problem !== undefined) return invalid(`Invalid schema for function '${name}': ${problem}.`);
  }
  return undefined;
}

function messageProblem(body: Json): WireError | undefined {
  const messages = list(body["messages"]);
  if (messages.length === 0)
    return invalid("Invalid 'messages': empty array. Expected an array with minimum length 1.");
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content } = message;
    if (!["system", "developer", "user", "assistant", "tool"].includes(text(role))) {
      return invalid(
        `Invalid value: '${text(role)}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
      );
    }
    const broken = contentProblem(message, index);
    if (broken !== undefined) return broken;
    if (role === "tool") {
      const id = text(message["tool_call_id"]);
      if (!open.includes(id)) {
        return invalid(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        );
      }
      open = open.filter((other) => other !== id);
      continue;
    }
    if (open.length > 0) return unanswered(open);
    const calls = list(message["tool_calls"]);
    if (content === null || content === undefined) {
      if (role !== "assistant" || calls.length === 0) {
        return invalid(`Invalid value for 'content': expected a string, got null. (messages.[${index}])`);
      }
    }
    const problem = callProblem(message, index);
    if (problem !== undefined) return problem;
    open = calls.map(({ id }) => text(id));
  }
  return open.length > 0 ? unanswered(open) : undefined;
}

/** Kinds of content by role. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image_url", "input_audio", "file"],
  assistant: ["text", "refusal"],
};

function contentProblem({ role, content, name }: Json, index: number): WireError | undefined {
  if (name !== undefined && !/^[^\s<|\\/>]{1,64}$/.test(text(name)))
    return invalid(
      `Invalid 'messages[${index}].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.`,
    );
  if (!Array.isArray(content)) return undefined;
  if (content.length === 0)
    return invalid(
      `Invalid 'messages[${index}].content': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    );
  const allowed = PARTS[text(role)] ?? ["text"];
  const other = list(content).find(({ type }) => !allowed.includes(text(type)));
  if (other === undefined) return undefined;
  return invalid(
    other["type"] === "image_url"
      ? `Invalid 'messages[${index}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${text(role)}' contains an image URL.`
      : `Invalid value: '${text(other["type"])}'. Supported values are: ${allowed.map((type) => `'${type}'`).join(", ")}. (messages[${index}].content)`,
  );
}

function callProblem(message: Json, index: number): WireError | undefined {
  if (message["tool_calls"] === undefined) return undefined;
  const calls = list(message["tool_calls"]);
  const at = `messages[${index}].tool_calls`;
  if (calls.length === 0)
    return invalid(
      `Invalid '${at}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    );
  if (calls.length > 128)
    return invalid(`Invalid '${at}': array too long. Expected an array with maximum length 128.`);
  const ids = calls.map(({ id }) => text(id));
  const twice = ids.find((id, number) => ids.indexOf(id) < number);
  if (twice !== undefined && twice !== "")
    return invalid(`Invalid parameter: Duplicate value for 'tool_call_id' of '${twice}' in ${at}.`);
  for (const [number, call] of calls.entries()) {
    const { name, arguments: args } = record(call["function"]);
    if (text(call["id"]) === "") return invalid(`Missing required parameter: '${at}[${number}].id'.`);
    if (text(call["id"]).length > 40)
      return invalid(
        `Invalid '${at}[${number}].id': string too long. Expected a string with maximum length 40, but got a string with length ${text(call["id"]).length} instead.`,
      );
    if (typeof args !== "string")
      return invalid(`Invalid type for '${at}[${number}].function.arguments': expected a string.`);
    if (!isToolName(name)) return invalid(`Invalid '${at}[${number}].function.name': ${NO_MATCH}`);
  }
  return undefined;
}

export const NO_MATCH =
  "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";

export const isToolName = (name: unknown): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(text(name));

function unanswered(ids: readonly string[]): WireError {
  return invalid(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`,
  );
}
