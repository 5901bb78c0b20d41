import { anthropicProblem, contentBlocks, merged, signatureOf } from "./wire-rules-anthropic.ts";
import {
  argumentsText,
  invalid,
  type Json,
  list,
  pieces,
  record,
  text,
  textOf,
  type WireAnswer,
  type WireMessage,
  type WireProtocol,
  type WireRequest,
} from "./wire-server-protocol.ts";

/** The Anthropic Messages API, version 2023-06-01. */
export const anthropic: WireProtocol = {
  keyProblem(headers, key) {
    const given = headers["x-api-key"];
    if (given === undefined) return { status: 401, message: "x-api-key header is required" };
    if (given !== key) return { status: 401, message: "invalid x-api-key" };
    return headers["anthropic-version"] === undefined
      ? invalid("anthropic-version: header is required")
      : undefined;
  },
  problem: anthropicProblem,
  read,
  body(request, answer) {
    return { ...message(request, answer), content: blocks(request, answer) };
  },
  events,
  errorBody: ({ status, message, type = ERROR_TYPES[status] ?? "api_error" }) => ({
    type: "error",
    error: { type, message },
    request_id: "req_wire",
  }),
  errorEvent: (error) => event("error", anthropic.errorBody(error)),
};

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

function read(body: Json, number: number): WireRequest {
  const system = textOf(body["system"]);
  const messages = merged(list(body["messages"])).map((message): WireMessage => {
    const content = contentBlocks(message);
    return {
      role: message["role"] === "assistant" ? "assistant" : "user",
      text: textOf(content.filter(({ type }) => type === "text")),
      toolCalls: content
        .filter(({ type }) => type === "tool_use")
        .map(({ id, name, input }) => ({ id: text(id), name: text(name), args: record(input) })),
      toolResults: content
        .filter(({ type }) => type === "tool_result")
        .map((block) => ({
          id: text(block["tool_use_id"]),
          text: textOf(block["content"]),
          error: block["is_error"] === true,
        })),
    };
  });
  return {
    protocol: "anthropic",
    model: text(body["model"]),
    stream: body["stream"] === true,
    messages:
      system === ""
        ? messages
        : [{ role: "system", text: system, toolCalls: [], toolResults: [] }, ...messages],
    tools: list(body["tools"]).map(({ name }) => text(name)),
    number,
    body,
  };
}

function blocks({ number }: WireRequest, { text = "", thinking, toolCalls = [] }: WireAnswer): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", thinking, signature: signatureOf(thinking) }]),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...toolCalls.map(({ id, name, args }, index) => ({
      type: "tool_use",
      id: id ?? `toolu_${number}_${index}`,
      name,
      input: args,
    })),
  ];
}

function message({ model, number }: WireRequest, { toolCalls = [], usage, truncated }: WireAnswer): Json {
  const { inputTokens = 100, outputTokens = 20, cachedInputTokens = 0 } = usage ?? {};
  return {
    id: `msg_${number}`,
    type: "message",
    role: "assistant",
    model,
    stop_reason: truncated ? "max_tokens" : toolCalls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: inputTokens - cachedInputTokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cachedInputTokens,
      output_tokens: outputTokens,
    },
  };
}

function events(request: WireRequest, answer: WireAnswer): string[] {
  const { stop_reason, stop_sequence, usage, ...start } = message(request, answer);
  const opening = {
    ...start,
    content: [],
    stop_reason: null,
    stop_sequence,
    usage: { ...record(usage), output_tokens: 1 },
  };
  return [
    event("message_start", { message: opening }),
    event("ping", {}),
    ...blocks(request, answer).flatMap((block, index) => blockEvents(block, index, answer)),
    event("message_delta", {
      delta: { stop_reason, stop_sequence },
      usage: { output_tokens: record(usage)["output_tokens"] },
    }),
    event("message_stop", {}),
  ];
}

function blockEvents(block: Json, index: number, answer: WireAnswer): string[] {
  if (block["type"] === "thinking") return thinkingEvents(block, index, answer);
  const isText = block["type"] === "text";
  const whole = isText ? text(block["text"]) : argumentsText(block["input"] as Json | string);
  const empty = isText ? { type: "text", text: "" } : { ...block, input: {} };
  return [
    event("content_block_start", { index, content_block: empty }),
    ...pieces(whole, answer).map((piece) =>
      event("content_block_delta", {
        index,
        delta: isText
          ? { type: "text_delta", text: piece }
          : { type: "input_json_delta", partial_json: piece },
      }),
    ),
    event("content_block_stop", { index }),
  ];
}

function thinkingEvents({ thinking, signature }: Json, index: number, answer: WireAnswer): string[] {
  return [
    event("content_block_start", { index, content_block: { type: "thinking", thinking: "", signature: "" } }),
    ...pieces(text(thinking), answer).map((piece) =>
      event("content_block_delta", { index, delta: { type: "thinking_delta", thinking: piece } }),
    ),
    event("content_block_delta", { index, delta: { type: "signature_delta", signature } }),
    event("content_block_stop", { index }),
  ];
}

function event(type: string, data: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
