import { createHash } from "node:crypto";
import {
  invalid,
  type Json,
  list,
  record,
  schemaProblem,
  text,
  type WireError,
} from "./wire-server-protocol.ts";

/** The first rule of the Messages API that a request breaks. */
export const anthropicProblem = (body: Json): WireError | undefined =>
  parameterProblem(body) ??
  toolProblem(body) ??
  messageProblem(body) ??
  thinkingProblem(body) ??
  cacheProblem(body);

function parameterProblem(body: Json): WireError | undefined {
  if (text(body["model"]) === "") return invalid("model: Field required");
  if (typeof body["max_tokens"] !== "number") return invalid("max_tokens: Field required");
  if (list(body["messages"]).length === 0) return invalid("messages: at least one message is required");
  const { system, tool_choice } = body;
  const choice = record(tool_choice);
  const names = list(body["tools"]).map(({ name }) => name);
  if (tool_choice !== undefined && names.length === 0)
    return invalid("tool_choice: tool_choice may only be specified while providing tools.");
  if (choice["type"] === "tool" && !names.includes(choice["name"]))
    return invalid(`Tool '${text(choice["name"])}' not found in provided tools`);
  const thinking = record(body["thinking"]);
  const isThinking = ["enabled", "adaptive"].includes(text(thinking["type"]));
  if (isThinking && ["any", "tool"].includes(text(choice["type"])))
    return invalid("Thinking may not be enabled when tool_choice forces tool use.");
  if (isThinking && (body["temperature"] ?? 1) !== 1)
    return invalid("`temperature` may only be set to 1 when thinking is enabled.");
  const budget = thinking["budget_tokens"];
  if (typeof budget === "number" && budget < 1024)
    return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
  if (typeof budget === "number" && budget >= body["max_tokens"])
    return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.");
  return Array.isArray(system) ? blankProblem("system", list(system)) : undefined;
}

function toolProblem(body: Json): WireError | undefined {
  const tools = list(body["tools"]);
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}.custom`;
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(text(tool["name"]))) {
      return invalid(`${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    // Tools of Anthropic's own are named by a type, and have no schema.
    if (!["", "custom"].includes(text(tool["type"]))) continue;
    const schema = record(tool["input_schema"]);
    if (schema["type"] === undefined) return invalid(`${at}.input_schema.type: Field required`);
    if (schema["type"] !== "object") return invalid(`${at}.input_schema.type: Input should be 'object'`);
    if (["oneOf", "anyOf", "allOf"].some((word) => word in schema)) {
      return invalid(
        `${at}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`,
      );
    }
    const bad = Object.keys(record(schema["properties"])).find((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key));
    if (bad !== undefined) {
      return invalid(
        `${at}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`,
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
    if (content.length === 0) {
      return invalid(
        `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
      );
    }
    const broken =
      blankProblem("messages", content) ?? blockProblem(text(role), `messages.${index}`, content);
    if (broken !== undefined) return broken;
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
  }
  if (open.length > 0) return withoutResult(messages.length - 1, open);
  // Older models go on with what is there; nothing here is to depend on it.
  if (messages.at(-1)?.["role"] === "assistant")
    return invalid(
      "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
  const defined = list(body["tools"]).length > 0;
  return used.size > 0 && !defined
    ? invalid("Requests which include `tool_use` or `tool_result` blocks must define tools")
    : undefined;
}

/** Blocks by the role of their message; `tool_result` stands for what is inside of one. */
const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image", "document", "search_result", "tool_result"],
  assistant: ["text", "tool_use", "thinking", "redacted_thinking"],
  tool_result: ["text", "image", "document", "search_result"],
};
const MEDIA: Readonly<Record<string, readonly string[]>> = {
  image: ["image/jpeg", "image/png", "image/gif", "image/webp"],
  document: ["application/pdf", "text/plain"],
};

function blockProblem(role: string, at: string, content: readonly Json[]): WireError | undefined {
  for (const [index, block] of content.entries()) {
    const type = text(block["type"]);
    const place = `${at}.content.${index}`;
    if (!(BLOCKS[role] ?? []).includes(type)) {
      return invalid(
        `${place}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${(BLOCKS[role] ?? []).join(", ")}`,
      );
    }
    const source = record(block["source"]);
    if (source["type"] === "base64" && !MEDIA[type]?.includes(text(source["media_type"])))
      return invalid(
        `${place}.${type}.source.base64.media_type: Input should be one of ${MEDIA[type]?.join(", ")}`,
      );
    const refused = source["type"] === "base64" ? sourceProblem(type, source, place) : undefined;
    if (refused !== undefined) return refused;
    if (type === "tool_use" && !/^[a-zA-Z0-9_-]{1,200}$/.test(text(block["name"])))
      return invalid(`${place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'`);
    if (type.endsWith("thinking") && "cache_control" in block)
      return invalid(`${place}.${type}.cache_control: Extra inputs are not permitted`);
    const { input } = block;
    if (type === "tool_use" && (typeof input !== "object" || input === null || Array.isArray(input)))
      return invalid(`${place}.tool_use.input: Input should be a valid dictionary`);
    const problem = type === "tool_result" ? toolResultProblem(block, place) : undefined;
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Beginnings of files in base64. */
const MAGIC: Readonly<Record<string, string>> = {
  "image/png": "iVBORw0KGgo",
  "image/jpeg": "/9j/",
  "image/gif": "R0lGOD",
  "image/webp": "UklGR",
  "application/pdf": "JVBERi0",
};

/** The service opens what it is sent, and refuses what it cannot read. */
function sourceProblem(type: string, source: Json, place: string): WireError | undefined {
  const [media, data] = [text(source["media_type"]), text(source["data"])];
  const at = `${place}.${type}.source.base64`;
  if (data === "") return invalid(`${at}.data: ${type} cannot be empty`);
  const found = Object.keys(MAGIC).find((kind) => data.startsWith(MAGIC[kind] ?? ""));
  if (found !== media) {
    return invalid(
      `${at}: The image was specified using the ${media} media type, but the image appears to be a ${found ?? "unknown"} image`,
    );
  }
  const bytes = Buffer.from(data, "base64");
  if (data.length > 5 * 1024 ** 2 && type === "image")
    return invalid(`${at}: image exceeds 5 MB maximum: ${data.length} bytes > 5242880 bytes`);
  if (media === "image/png" && !bytes.includes("IEND")) return invalid("Could not process image");
  if (media === "image/png" && Math.max(bytes.readUInt32BE(16), bytes.readUInt32BE(20)) > 8000)
    return invalid(`${at}.data: At least one of the image dimensions exceed max allowed size: 8000 pixels`);
  return media === "application/pdf" && !bytes.includes("%%EOF")
    ? invalid("The PDF specified was not valid.")
    : undefined;
}

function toolResultProblem(block: Json, at: string): WireError | undefined {
  const { content, is_error } = block;
  const inner = list(content);
  if (
    is_error === true &&
    (content === "" || content === undefined || (Array.isArray(content) && inner.length === 0))
  )
    return invalid(`${at}.tool_result: content cannot be empty if \`is_error\` is true`);
  if (is_error === true && inner.some(({ type }) => type !== "text"))
    return invalid(`${at}.tool_result: all content must be type \`text\` if \`is_error\` is true`);
  return blankProblem("messages", inner) ?? blockProblem("tool_result", `${at}.tool_result`, inner);
}

function blankProblem(where: string, content: readonly Json[]): WireError | undefined {
  const texts = content.filter(({ type }) => type === "text");
  if (texts.some((block) => text(block["text"]) === "" && "cache_control" in block))
    return invalid(`${where}: cache_control cannot be set for empty text blocks`);
  if (texts.some((block) => text(block["text"]) === ""))
    return invalid(`${where}: text content blocks must be non-empty`);
  return texts.some((block) => text(block["text"]).trim() === "")
    ? invalid(`${where}: text content blocks must contain non-whitespace text`)
    : undefined;
}

/** What the service signs a thought with. */
export const signatureOf = (thinking: string): string =>
  createHash("sha256").update(thinking).digest("base64");

function thinkingProblem(body: Json): WireError | undefined {
  const messages = merged(list(body["messages"]));
  for (const [index, message] of messages.entries()) {
    const content = contentBlocks(message);
    const changed = content.findIndex(
      (block) => block["type"] === "thinking" && block["signature"] !== signatureOf(text(block["thinking"])),
    );
    if (changed >= 0)
      return invalid(`messages.${index}.content.${changed}: Invalid \`signature\` in \`thinking\` block`);
    const isCurrent = index === messages.length - 2 && messages.length > 1;
    if (!isCurrent || record(body["thinking"])["type"] !== "enabled") continue;
    const first = text(content[0]?.["type"]);
    if (
      message["role"] === "assistant" &&
      content.some(({ type }) => type === "tool_use") &&
      !first.endsWith("thinking")
    ) {
      return invalid(
        `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
      );
    }
  }
  return undefined;
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
export function merged(messages: readonly Json[]): Json[] {
  const joined: Json[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.["role"] === message["role"] && last !== undefined) {
      joined[joined.length - 1] = { ...last, content: [...contentBlocks(last), ...contentBlocks(message)] };
    } else joined.push(message);
  }
  return joined;
}

export function contentBlocks(message: Json): Json[] {
  const { content } = message;
  if (typeof content !== "string") return list(content);
  return content === "" ? [] : [{ type: "text", text: content }];
}
