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
  problem: (body) =>
    parameterProblem(body) ?? toolProblem(body) ?? messageProblem(body) ?? cacheProblem(body),
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

function parameterProblem(body: Json): WireError | undefined {
  if (text(body["model"]) === "") return invalid("model: Field required");
  if (typeof body["max_tokens"] !== "number") return invalid("max_tokens: Field required");
  if (list(body["messages"]).length === 0) return invalid("messages: at least one message is required");
  const system = body["system"];
  const empty = Array.isArray(system) && list(system).some((block) => text(block["text"]) === "");
  return empty ? invalid("system: text content blocks must be non-empty") : undefined;
}

function toolProblem(body: Json): WireError | undefined {
  const tools = list(body["tools"]);
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}.custom`;
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(text(tool["name"]))) {
      return invalid(`${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    const schema = record(tool["input_schema"]);
    if (schema["type"] === undefined) return invalid(`${at}.input_schema.type: Field required`);
    if (schema["type"] !== "object") return invalid(`${at}.input_schema.type: Input should be 'object'`);
    if (["oneOf", "anyOf", "allOf"].some((word) => word in schema)) {
      return invalid(
        `${at}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`,
      );
    }
    const problem = schemaProblem(schema);
    if (problem !== undefined) {
      return invalid(
        `${at}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (${problem})`,
      );
    }
  }
  const names = tools.map((tool) => tool["name"]);
  return new Set(names).size < names.length ? invalid("tools: Tool names must be unique.") : undefined;
}

function messageProblem(body: Json): WireError | undefined {
  const messages = merged(list(body["messages"]));
  if (messages[0]?.["role"] !== "user") return invalid('messages: first message must use the "user" role');
  const used = new Set<string>();
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const { role } = message;
    const content = contentBlocks(message);
    if (role !== "user" && role !== "assistant") {
      return invalid(
        `messages: Unexpected role "${text(role)}". The Messages API accepts a top-level \`system\` parameter, not "system" as an input message role.`,
      );
    }
    const isLast = index === messages.length - 1;
    if (content.length === 0 && !(isLast && role === "assistant")) {
      return invalid(
        `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
      );
    }
    if (content.some((block) => block["type"] === "text" && text(block["text"]) === "")) {
      return invalid("messages: text content blocks must be non-empty");
    }
    const results = content
      .filter(({ type }) => type === "tool_result")
      .map((block) => text(block["tool_use_id"]));
    const problem = resultProblem(index, open, results, content);
    if (problem !== undefined) return problem;
    open = content.filter(({ type }) => type === "tool_use").map(({ id }) => text(id));
    for (const id of open) {
      if (!/^[a-zA-Z0-9_-]+$/.test(id))
        return invalid(
          `messages.${index}.content: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`,
        );
      if (used.has(id)) return invalid(`messages.${index}: \`tool_use\` ids must be unique`);
      used.add(id);
    }
    if (isLast && role === "assistant" && /\s$/.test(textOf(content))) {
      return invalid("messages: final assistant content cannot end with trailing whitespace");
    }
  }
  if (open.length > 0) return withoutResult(messages.length - 1, open);
  const defined = list(body["tools"]).length > 0;
  return used.size > 0 && !defined
    ? invalid("Requests which include `tool_use` or `tool_result` blocks must define tools")
    : undefined;
}

function resultProblem(
  index: number,
  open: readonly string[],
  results: readonly string[],
  content: readonly Json[],
): WireError | undefined {
  const missing = open.filter((id) => !results.includes(id));
  if (missing.length > 0) return withoutResult(index - 1, missing);
  const stray = results.find((id) => !open.includes(id));
  if (stray !== undefined) {
    return invalid(
      `messages.${index}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    );
  }
  if (new Set(results).size < results.length) {
    return invalid(
      `messages.${index}.content: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${results[0]}`,
    );
  }
  const late =
    results.length > 0 && content.slice(0, results.length).some(({ type }) => type !== "tool_result");
  return late ? withoutResult(index - 1, open) : undefined;
}

function withoutResult(index: number, ids: readonly string[]): WireError {
  return invalid(
    `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function cacheProblem(body: Json): WireError | undefined {
  const marks = JSON.stringify(body).match(/"cache_control":\s*\{/g)?.length ?? 0;
  return marks > 4
    ? invalid(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`)
    : undefined;
}

/** The service joins neighbours of the same role. */
function merged(messages: readonly Json[]): Json[] {
  const joined: Json[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.["role"] === message["role"] && last !== undefined) {
      joined[joined.length - 1] = { ...last, content: [...contentBlocks(last), ...contentBlocks(message)] };
    } else joined.push(message);
  }
  return joined;
}

function contentBlocks(message: Json): Json[] {
  const { content } = message;
  if (typeof content !== "string") return list(content);
  return content === "" ? [] : [{ type: "text", text: content }];
}

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

function blocks({ number }: WireRequest, { text = "", toolCalls = [] }: WireAnswer): Json[] {
  return [
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
    ...blocks(request, answer).flatMap((block, index) => blockEvents(block, index)),
    event("message_delta", {
      delta: { stop_reason, stop_sequence },
      usage: { output_tokens: record(usage)["output_tokens"] },
    }),
    event("message_stop", {}),
  ];
}

function blockEvents(block: Json, index: number): string[] {
  const isText = block["type"] === "text";
  const whole = isText ? text(block["text"]) : JSON.stringify(block["input"]);
  const empty = isText ? { type: "text", text: "" } : { ...block, input: {} };
  return [
    event("content_block_start", { index, content_block: empty }),
    ...pieces(whole).map((piece) =>
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

function event(type: string, data: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
