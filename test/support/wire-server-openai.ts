import type { IncomingHttpHeaders } from "node:http";
import { chatProblem } from "./wire-rules-openai.ts";
import {
  argumentsText,
  type Json,
  list,
  parsedArguments,
  pieces,
  record,
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
  problem: chatProblem,
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

export function openaiErrorBody({ status, message, code, type, details }: WireError): Json {
  const usual = status >= 500 ? "server_error" : status === 429 ? "requests" : "invalid_request_error";
  const usualCode = status === 429 ? "rate_limit_exceeded" : status === 404 ? "model_not_found" : null;
  return { error: { message, type: type ?? usual, param: null, code: code ?? usualCode, ...details } };
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
        return { id: text(call["id"]), name: text(name), args: parsedArguments(args) };
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
    function: { name, arguments: argumentsText(args) },
  }));
}

function finishReason({ toolCalls = [], truncated, finishReason: given }: WireAnswer): string {
  if (given !== undefined) return given;
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
      ...pieces(text(args), answer).map((piece) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
    ];
  });
  const wantsUsage = record(request.body["stream_options"])["include_usage"] === true;
  return [
    chunk({ role: "assistant", content: "" }),
    ...pieces(answer.text ?? "", answer).map((piece) => chunk({ content: piece })),
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
