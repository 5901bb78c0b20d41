/** Writes a request as its server takes it: a pure function of the request's JSON and the rules of a profile. */
import { createHash } from "node:crypto";
import { isRecord, recordOf } from "../../../core/unknown.ts";
import { type Json, textOrEmpty } from "../strict-chunks.ts";
import { asArray, plainSchema } from "../tool-schema.ts";
import type { RequestRules } from "./schema.ts";

/** The API that a request is for: OpenAI's two, and Anthropic's. */
export type Wire = "chat" | "responses" | "messages";

/** The messages of a request. */
export const messageList = (body: Json): Json[] => asArray(body["messages"]).map(recordOf);

/** The blocks of a message whose content is a list. */
const blockList = ({ content }: Json): Json[] => asArray(content).map(recordOf);

/**
 * The request with the rules applied; the same object if none changes it. `refused`: digests of signatures that the
 * server refused; the reasoning that they sign is left out.
 */
export function outgoing(
  body: Json,
  wire: Wire,
  rules: RequestRules,
  refused: ReadonlySet<string> = new Set(),
): Json {
  const bodyRules = [...BODY_RULES[wire], ...BODY_RULES.all];
  const changed = bodyRules.reduce((before, rule) => rule(before, rules), body);
  if (!Array.isArray(changed["messages"])) return changed;
  const before = messageList(changed);
  const isKept = (block: Json): boolean => {
    if (!THINKING.has(block["type"])) return true;
    const digest = signatureDigest(block);
    return digest !== undefined && rules.thoughts?.field !== "none" && !refused.has(digest);
  };
  // Reasoning that a server of Anthropic's API refuses is left out, and a message without anything else.
  const withoutForeign = (message: Json): Json[] => {
    const content = blockList(message);
    const kept = content.filter(isKept);
    if (kept.length === content.length) return [message];
    return kept.length > 0 ? [{ ...message, content: kept }] : [];
  };
  const history = wire === "chat" ? chatHistory(before, rules) : before.flatMap(withoutForeign);
  const isSame = history.length === before.length && history.every((message, at) => message === before[at]);
  const written = isSame ? changed : { ...changed, messages: history };
  return wire === "messages" ? settleThinking(written, rules) : written;
}

/**
 * Switches thinking off for a request whose calls were just answered, if the reply that made them does not begin with
 * thinking: the reasoning of another model was taken out, or it had none. Anthropic refuses such a request.
 */
function settleThinking(body: Json, { thoughts }: RequestRules): Json {
  const messages = messageList(body);
  // Some servers reason by default, and require the thinking of all replies with calls.
  if (thoughts?.missing === "off" && messages.some(isUnthought))
    return { ...body, thinking: { type: "disabled" } };
  if (recordOf(body["thinking"])["type"] !== "enabled") return body;
  const isAnswered = blockList(messages.at(-1) ?? {}).some(({ type }) => type === "tool_result");
  const [first] = blockList(messages.findLast(({ role }) => role === "assistant") ?? {});
  return isAnswered && !THINKING.has(first?.["type"]) ? without(body, "thinking") : body;
}

/** True for a reply of Anthropic's API with calls and without thinking. */
export function isUnthought(message: Json): boolean {
  const types = blockList(message).map(({ type }) => type);
  return types.includes("tool_use") && !types.some((type) => THINKING.has(type));
}

const without = (body: Json, name: string): Json => {
  const { [name]: _dropped, ...rest } = body;
  return rest;
};

/** True for a choice that makes a model call a tool. */
export const isForced = (choice: unknown): boolean =>
  typeof choice === "string"
    ? choice === "required" || choice === "any"
    : isRecord(choice) && choice["type"] !== "auto" && choice["type"] !== "none";

const toolCalls = (message: Json): Json[] => asArray(message["tool_calls"]).map(recordOf);

/** True for a message of chat completions with calls. */
export const hasCalls = (message: Json): boolean => toolCalls(message).length > 0;

const contentBlocks = ({ content }: Json): unknown[] =>
  typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : asArray(content);

/** A message with a cache mark at its end. */
function markMessage(message: Json): Json {
  const blocks = contentBlocks(message);
  const last = blocks.at(-1);
  if (!isRecord(last) || "cache_control" in last) return message;
  return { ...message, content: [...blocks.slice(0, -1), { ...last, cache_control: { type: "ephemeral" } }] };
}

/** A tool of any of the APIs with a simpler schema, or with its parameters in its description. */
function simplifyTool({ strict: _strict, ...tool }: Json, form: "plain" | "text"): Json {
  if (isRecord(tool["function"])) return { ...tool, function: simplifyTool(tool["function"], form) };
  const name = isRecord(tool["input_schema"]) ? "input_schema" : "parameters";
  const schema = tool[name];
  if (!isRecord(schema) || Object.keys(recordOf(schema["properties"])).length === 0) return tool;
  if (form === "plain") return { ...tool, [name]: plainSchema(schema) };
  const words = Object.entries(recordOf(schema["properties"])).map(([parameter, part]) => {
    const { type = "any value", description, enum: values } = recordOf(part);
    const required = asArray(schema["required"]).includes(parameter) ? ", required" : "";
    const choice = asArray(values).length > 0 ? ` One of ${asArray(values).join(", ")}.` : "";
    const words = `${textOrEmpty(description)}${choice}`.trim();
    return `- ${parameter} (${[type].flat().join(" or ")}${required}): ${words}`;
  });
  const lines = [textOrEmpty(tool["description"]), "", "Its arguments are a JSON object.", ...words];
  return { ...tool, description: lines.join("\n"), [name]: { type: "object", properties: {} } };
}

/** Changes of a request to one API, and of all. */
const BODY_RULES: Readonly<Record<Wire | "all", ReadonlyArray<(body: Json, rules: RequestRules) => Json>>> = {
  chat: [
    (body, { rename = {} }) =>
      Object.entries(rename)
        .filter(([from, to]) => from in body && !(to in body))
        .reduce((before, [from, to]) => ({ ...without(before, from), [to]: body[from] }), body),
    (body, { needsTools }) => {
      const calls = messageList(body).flatMap(toolCalls);
      if (needsTools !== true || asArray(body["tools"]).length > 0 || calls.length === 0) return body;
      const names = new Set(calls.map((call) => String(recordOf(call["function"])["name"])));
      const parameters = { type: "object", properties: {} };
      const tools = [...names].map((name) => ({
        type: "function",
        function: { name, description: "Not available any more.", parameters },
      }));
      return { ...body, tools, tool_choice: "none" };
    },
  ],
  responses: [],
  messages: [
    (body, { marks }) => {
      if (marks === "blocks" && "cache_control" in body) {
        const messages = messageList(body);
        const marked = [...messages.slice(0, -1), ...messages.slice(-1).map(markMessage)];
        return { ...without(body, "cache_control"), messages: marked };
      }
      const text = marks === "none" ? JSON.stringify(body) : "";
      if (!text.includes('"cache_control"')) return body;
      const unmarked: unknown = JSON.parse(text, (_name, part: unknown) =>
        isRecord(part) && recordOf(part["cache_control"])["type"] === "ephemeral"
          ? without(part, "cache_control")
          : part,
      );
      return recordOf(unmarked);
    },
  ],
  all: [
    (body, { forced }) =>
      forced === "no" && isForced(body["tool_choice"]) ? without(body, "tool_choice") : body,
    (body, { schema = "full" }) =>
      schema !== "full" && Array.isArray(body["tools"])
        ? { ...body, tools: body["tools"].map((tool) => simplifyTool(recordOf(tool), schema)) }
        : body,
    (body, { put = {} }) => {
      const missing = Object.keys(put).filter((name) => body[name] === undefined);
      return missing.length > 0 ? { ...put, ...missing.reduce(without, body) } : body;
    },
    (body, { most = {} }) => {
      const larger = Object.entries(most).filter(([name, limit]) => Number(body[name]) > limit);
      return larger.length > 0 ? { ...body, ...Object.fromEntries(larger) } : body;
    },
    (body, { drop = [] }) => drop.filter((name) => name in body).reduce(without, body),
  ],
};

/** An id of nine letters and digits, always the same for one id. */
const shortenId = (id: unknown): unknown =>
  typeof id !== "string" || /^[a-zA-Z0-9]{9}$/.test(id)
    ? id
    : BigInt(`0x${createHash("sha256").update(id).digest("hex")}`)
        .toString(36)
        .slice(0, 9);

/** The messages of chat completions by the rules. */
function chatHistory(messages: Json[], rules: RequestRules): Json[] {
  const { afterTool, markText, systemRole } = rules;
  const history: Json[] = [];
  for (const message of messages.map((one) => chatMessage(one, rules))) {
    const last = history.at(-1);
    const isUser = message["role"] === "user";
    if (systemRole === "user" && isUser && last?.["role"] === "user") {
      // Servers without the role `system` mostly want messages of the user and replies in turn.
      const parts = [last, message];
      const content = parts.every((part) => typeof part["content"] === "string")
        ? parts.map((part) => part["content"]).join("\n\n")
        : parts.flatMap(contentBlocks);
      history[history.length - 1] = { ...last, content };
      continue;
    }
    if (afterTool === "notUser" && isUser && last?.["role"] === "tool")
      history.push({ role: "assistant", content: "I have read the results." });
    history.push(message);
  }
  const isMarked = (part: unknown): boolean => isRecord(part) && "cache_control" in part;
  if (markText !== true || history.some((one) => [one, ...asArray(one["content"])].some(isMarked)))
    return history;
  const marks = [history.findLastIndex(isPrompt), history.length - 1];
  return history.map((message, at) => (marks.includes(at) ? markMessage(message) : message));
}

const isPrompt = ({ role }: Json): boolean => role === "system" || role === "developer";

function chatMessage(given: Json, { thoughts, emptyContent, systemRole, callIds }: RequestRules): Json {
  if (systemRole !== undefined && isPrompt(given)) return { ...given, role: systemRole };
  if (callIds === "nine" && given["role"] === "tool")
    return { ...given, tool_call_id: shortenId(given["tool_call_id"]) };
  if (given["role"] !== "assistant") return given;
  const message = thoughts === undefined ? given : withThoughts(given, thoughts);
  const calls = toolCalls(message);
  if (calls.length === 0) return message;
  const { content, ...others } = message;
  const isEmpty = content === "" || content === null || (Array.isArray(content) && content.length === 0);
  const contents = { text: { content }, null: { content: null }, none: {}, filled: { content: "…" } };
  const written = isEmpty && emptyContent !== undefined ? { ...others, ...contents[emptyContent] } : message;
  return callIds === "nine"
    ? { ...written, tool_calls: calls.map((call) => ({ ...call, id: shortenId(call["id"]) })) }
    : written;
}

/** Members of a reply with its reasoning, in the protocols of different services. */
export const THOUGHT_MEMBERS = ["reasoning_content", "reasoning", "reasoning_details"] as const;

function withThoughts(
  message: Json,
  { field, on = "calls", missing }: NonNullable<RequestRules["thoughts"]>,
): Json {
  const calls = toolCalls(message);
  const { reasoning_content: one, reasoning: other, ...rest } = message;
  const thoughts = [one, other].find((text) => typeof text === "string");
  switch (field) {
    case "signature": {
      // Gemini signs the first of the calls that it makes at the same time.
      const isUnsigned = missing === "skip" && !calls.some((call) => isRecord(call["extra_content"]));
      // Google takes this in place of a signature for calls of other models (ai.google.dev, thought signatures).
      const none = { google: { thought_signature: "skip_thought_signature_validator" } };
      const signed = calls.map((call) => ({ extra_content: none, ...call }));
      return isUnsigned && calls.length > 0 ? { ...message, tool_calls: signed } : message;
    }
    case "none":
      return THOUGHT_MEMBERS.filter((name) => name in message).reduce(without, message);
    case "tags": {
      if (thoughts === undefined) return message;
      const tagged = `<think>${thoughts}</think>`;
      return Array.isArray(rest["content"])
        ? { ...rest, content: [{ type: "text", text: tagged }, ...contentBlocks(rest)] }
        : { ...rest, content: `${tagged}${textOrEmpty(rest["content"])}` };
    }
    case "reasoning_details":
    case "blocks":
      return message;
    default:
      if (on === "calls" && calls.length === 0) return message;
      if (thoughts === undefined) return missing === "empty" ? { ...rest, [field]: "" } : message;
      return { ...rest, [field]: thoughts };
  }
}

const THINKING: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/** Digests the signature of a reasoning block. Returns undefined if it has none. */
function signatureDigest({ signature, data }: Json): string | undefined {
  const signed = textOrEmpty(signature) || textOrEmpty(data);
  return signed === "" ? undefined : createHash("sha256").update(signed).digest("base64url").slice(0, 22);
}

/** Digests of the signatures in a request of Anthropic's API. */
export const signatureDigests = (body: Json): string[] =>
  messageList(body)
    .flatMap(blockList)
    .filter(({ type }) => THINKING.has(type))
    .flatMap((block) => signatureDigest(block) ?? []);
