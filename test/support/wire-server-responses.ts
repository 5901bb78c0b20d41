import {
  argumentsText,
  type Json,
  list,
  parsedArguments,
  pieces,
  text,
  textOf,
  type WireAnswer,
  type WireMessage,
  type WireProtocol,
  type WireRequest,
} from "./wire-server-protocol.ts";
import { inputItems, responsesProblem } from "./wire-rules-responses.ts";
import { openaiErrorBody, openaiKeyProblem } from "./wire-server-openai.ts";

/** The OpenAI Responses API. */
export const openaiResponses: WireProtocol = {
  keyProblem: openaiKeyProblem,
  problem: responsesProblem,
  read,
  body: response,
  events,
  errorBody: openaiErrorBody,
  errorEvent: ({ message, code = "server_error" }) =>
    event("response.failed", { response: { id: "resp_failed", status: "failed", error: { code, message } } }),
};

function read(body: Json, number: number): WireRequest {
  const messages: WireMessage[] = [];
  const last = (role: WireMessage["role"], fits: (message: WireMessage) => boolean): WireMessage => {
    const message = messages.at(-1);
    if (message?.role === role && fits(message)) return message;
    const added: WireMessage = { role, text: "", toolCalls: [], toolResults: [] };
    messages.push(added);
    return added;
  };
  for (const item of inputItems(body)) {
    const { type, role } = item;
    if (type === "function_call") {
      const call = {
        id: text(item["call_id"]),
        name: text(item["name"]),
        args: parsedArguments(item["arguments"]),
      };
      last("assistant", () => true).toolCalls.push(call);
    } else if (type === "function_call_output") {
      const result = { id: text(item["call_id"]), text: textOf(item["output"]), error: false };
      last("user", ({ toolResults }) => toolResults.length > 0).toolResults.push(result);
    } else if (type === "message" || type === undefined) {
      const name = role === "assistant" ? "assistant" : role === "user" ? "user" : "system";
      messages.push({ role: name, text: textOf(item["content"]), toolCalls: [], toolResults: [] });
    }
  }
  const instructions = text(body["instructions"]);
  if (instructions !== "")
    messages.unshift({ role: "system", text: instructions, toolCalls: [], toolResults: [] });
  return {
    protocol: "openai-responses",
    model: text(body["model"]),
    stream: body["stream"] === true,
    messages,
    tools: list(body["tools"]).map(({ name }) => text(name)),
    number,
    body,
  };
}

function output({ number }: WireRequest, { text = "", toolCalls = [] }: WireAnswer): Json[] {
  const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
  const message = { type: "message", id: `msg_${number}`, status: "completed", role: "assistant", content };
  const calls = toolCalls.map(({ id, name, args }, index) => ({
    type: "function_call",
    id: `fc_${number}_${index}`,
    call_id: id ?? `call_${number}_${index}`,
    name,
    arguments: argumentsText(args),
    status: "completed",
  }));
  return text === "" ? calls : [message, ...calls];
}

function response(request: WireRequest, answer: WireAnswer): Json {
  const { inputTokens = 100, outputTokens = 20, cachedInputTokens = 0 } = answer.usage ?? {};
  const { instructions = null, tools = [], store = true } = request.body;
  return {
    id: `resp_${request.number}`,
    object: "response",
    created_at: 1_700_000_000,
    status: answer.truncated ? "incomplete" : "completed",
    error: null,
    incomplete_details: answer.truncated ? { reason: "max_output_tokens" } : null,
    instructions,
    model: request.model,
    output: output(request, answer),
    parallel_tool_calls: true,
    store,
    tools,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedInputTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens + outputTokens,
    },
  };
}

function events(request: WireRequest, answer: WireAnswer): string[] {
  const whole = response(request, answer);
  const started = { ...whole, status: "in_progress", output: [], usage: null };
  const all = [
    event("response.created", { response: started }),
    event("response.in_progress", { response: started }),
    ...list(whole["output"]).flatMap((item, index) =>
      item["type"] === "message" ? textEvents(item, index, answer) : callEvents(item, index, answer),
    ),
    event(answer.truncated ? "response.incomplete" : "response.completed", { response: whole }),
  ];
  return all;
}

function textEvents(item: Json, output_index: number, answer: WireAnswer): string[] {
  const at = { item_id: item["id"], output_index, content_index: 0 };
  const part = list(item["content"])[0] ?? {};
  const whole = text(part["text"]);
  return [
    event("response.output_item.added", {
      output_index,
      item: { ...item, status: "in_progress", content: [] },
    }),
    event("response.content_part.added", { ...at, part: { ...part, text: "" } }),
    ...pieces(whole, answer).map((delta) => event("response.output_text.delta", { ...at, delta })),
    event("response.output_text.done", { ...at, text: whole }),
    event("response.content_part.done", { ...at, part }),
    event("response.output_item.done", { output_index, item }),
  ];
}

function callEvents(item: Json, output_index: number, answer: WireAnswer): string[] {
  const at = { item_id: item["id"], output_index };
  const whole = text(item["arguments"]);
  return [
    event("response.output_item.added", {
      output_index,
      item: { ...item, status: "in_progress", arguments: "" },
    }),
    ...pieces(whole, answer).map((delta) =>
      event("response.function_call_arguments.delta", { ...at, delta }),
    ),
    event("response.function_call_arguments.done", { ...at, arguments: whole }),
    event("response.output_item.done", { output_index, item }),
  ];
}

function event(type: string, data: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
