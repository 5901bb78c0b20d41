import type { IncomingHttpHeaders } from "node:http";
import {
  invalid,
  type Json,
  list,
  pieces,
  record,
  schemaProblem,
  text,
  textOf,
  type WireAnswer,
  type WireError,
  type WireMessage,
  type WireProtocol,
  type WireRequest,
} from "./wire-server-protocol.ts";

/** The OpenAI Chat Completions API. */
export const openaiChat: WireProtocol = {
  keyProblem: openaiKeyProblem,
  problem: (body) =>
    openaiToolProblem(
      body,
      list(body["tools"]).map((tool) => record(tool["function"])),
      "function.",
    ) ?? messageProblem(body),
  read,
  body(request, answer) {
    const calls = toolCalls(request, answer);
    const message = {
      role: "assistant",
      content: answer.text ?? null,
      refusal: null,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    return {
      ...head(request, "chat.completion"),
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
      usage: usageOf(answer),
    };
  },
  events,
  errorBody: openaiErrorBody,
  errorEvent: (error) => `data: ${JSON.stringify(openaiErrorBody(error))}\n\n`,
};

export function openaiKeyProblem(headers: IncomingHttpHeaders, key: string): WireError | undefined {
  const given = headers.authorization;
  if (given === `Bearer ${key}`) return undefined;
  const message =
    given === undefined
      ? "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth."
      : `Incorrect API key provided: ${given.slice(7, 12)}*****${given.slice(-4)}. You can find your API key at https://platform.openai.com/account/api-keys.`;
  return { status: 401, message, code: "invalid_api_key" };
}

export function openaiErrorBody({ status, message, code, type }: WireError): Json {
  const usual = status >= 500 ? "server_error" : status === 429 ? "requests" : "invalid_request_error";
  const usualCode = status === 429 ? "rate_limit_exceeded" : status === 404 ? "model_not_found" : null;
  return { error: { message, type: type ?? usual, param: null, code: code ?? usualCode } };
}

/** Rules that both APIs share; `tools` are the functions, wherever the API puts them. */
export function openaiToolProblem(body: Json, tools: readonly Json[], field: string): WireError | undefined {
  if (text(body["model"]) === "") return invalid("you must provide a model parameter");
  if (Array.isArray(body["tools"]) && tools.length === 0) {
    return invalid(
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    );
  }
  if (tools.length > 128)
    return invalid("Invalid 'tools': array too long. Expected an array with maximum length 128.");
  for (const [index, tool] of tools.entries()) {
    const name = text(tool["name"]);
    if (name === "") return invalid(`Missing required parameter: 'tools[${index}].${field}name'.`);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
      return invalid(
        `Invalid 'tools[${index}].${field}name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      );
    }
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
    if (calls.some((call) => typeof record(call["function"])["arguments"] !== "string")) {
      return invalid(
        `Invalid type for 'messages[${index}].tool_calls[0].function.arguments': expected a string.`,
      );
    }
    open = calls.map(({ id }) => text(id));
  }
  return open.length > 0 ? unanswered(open) : undefined;
}

function unanswered(ids: readonly string[]): WireError {
  return invalid(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`,
  );
}

function read(body: Json, number: number): WireRequest {
  const messages: WireMessage[] = [];
  for (const message of list(body["messages"])) {
    const { role } = message;
    if (role === "tool") {
      const result = { id: text(message["tool_call_id"]), text: textOf(message["content"]), error: false };
      const last = messages.at(-1);
      if (last !== undefined && last.toolResults.length > 0) last.toolResults.push(result);
      else messages.push({ role: "user", text: "", toolCalls: [], toolResults: [result] });
      continue;
    }
    messages.push({
      role: role === "assistant" ? "assistant" : role === "user" ? "user" : "system",
      text: textOf(message["content"]),
      toolCalls: list(message["tool_calls"]).map((call) => {
        const { name, arguments: args } = record(call["function"]);
        return { id: text(call["id"]), name: text(name), args: record(JSON.parse(text(args))) };
      }),
      toolResults: [],
    });
  }
  return {
    protocol: "openai-chat",
    model: text(body["model"]),
    stream: body["stream"] === true,
    messages,
    tools: list(body["tools"]).map((tool) => text(record(tool["function"])["name"])),
    number,
    body,
  };
}

function head({ model, number }: WireRequest, object: string): Json {
  return { id: `chatcmpl-${number}`, object, created: 1_700_000_000, model, system_fingerprint: "fp_wire" };
}

function toolCalls({ number }: WireRequest, { toolCalls = [] }: WireAnswer): Json[] {
  return toolCalls.map(({ id, name, args }, index) => ({
    id: id ?? `call_${number}_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
}

function finishReason({ toolCalls = [], truncated }: WireAnswer): string {
  return truncated ? "length" : toolCalls.length > 0 ? "tool_calls" : "stop";
}

function usageOf({ usage }: WireAnswer): Json {
  const { inputTokens = 100, outputTokens = 20, cachedInputTokens = 0 } = usage ?? {};
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}

function events(request: WireRequest, answer: WireAnswer): string[] {
  const chunk = (delta: Json, finish_reason: string | null = null): string =>
    data({
      ...head(request, "chat.completion.chunk"),
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    });
  const calls = toolCalls(request, answer).flatMap((call, index) => {
    const { name, arguments: args } = record(call["function"]);
    return [
      chunk({ tool_calls: [{ index, id: call["id"], type: "function", function: { name, arguments: "" } }] }),
      ...pieces(text(args)).map((piece) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
    ];
  });
  const wantsUsage = record(request.body["stream_options"])["include_usage"] === true;
  return [
    chunk({ role: "assistant", content: "" }),
    ...pieces(answer.text ?? "").map((piece) => chunk({ content: piece })),
    ...calls,
    chunk({}, finishReason(answer)),
    ...(wantsUsage
      ? [data({ ...head(request, "chat.completion.chunk"), choices: [], usage: usageOf(answer) })]
      : []),
    "data: [DONE]\n\n",
  ];
}

function data(value: Json): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
