/** Writes a request as its server takes it: a pure function of the request's JSON and the rules of a profile. */
import { createHash } from "node:crypto";
import { isRecord, recordOf } from "../../../core/unknown.ts";
import { textOrEmpty } from "../strict-chunks.ts";
import { asArray, plainSchema } from "../tool-schema.ts";
import type { RequestRules } from "./profile.ts";

export type Json = Record<string, unknown>;

/** The API that a request is for: OpenAI's two, and Anthropic's. */
export type Wire = "chat" | "responses" | "messages";

/** What a request may have besides its rules. */
export interface Exceptions {
  /** Digests of signatures that this server refused: the reasoning that they sign is not sent. */
  refusedSignatures?: ReadonlySet<string>;
}

/** The request with the rules applied; the same object if none changes it. */
export function outgoing(body: Json, wire: Wire, rules: RequestRules, exceptions: Exceptions = {}): Json {
  const changes = [...CHANGES[wire], ...EVERYWHERE];
  return changes.reduce((before, change) => change(before, rules, exceptions), body);
}

type Change = (body: Json, rules: RequestRules, exceptions: Exceptions) => Json;

/** Changes for all APIs, after those of each. */
const EVERYWHERE: readonly Change[] = [
  (body, { forced }) =>
    forced === "no" && isForced(body["tool_choice"]) ? without(body, "tool_choice") : body,
  (body, { schema }) =>
    (schema === "plain" || schema === "text") && Array.isArray(body["tools"])
      ? { ...body, tools: body["tools"].map((tool) => simpleTool(recordOf(tool), schema)) }
      : body,
  (body, { put = {} }) => (Object.keys(put).some((name) => !(name in body)) ? { ...put, ...body } : body),
  (body, { most = {} }) => {
    const larger = Object.entries(most).filter(([name, limit]) => Number(body[name]) > limit);
    return larger.length > 0 ? { ...body, ...Object.fromEntries(larger) } : body;
  },
  (body, { drop = [] }) => drop.filter((name) => name in body).reduce(without, body),
];

const CHANGES: Readonly<Record<Wire, readonly Change[]>> = {
  chat: [
    (body, { rename = {} }) => {
      const renamed = Object.entries(rename).filter(([from, to]) => from in body && !(to in body));
      return renamed.reduce((before, [from, to]) => ({ ...without(before, from), [to]: body[from] }), body);
    },
    ofMessages((messages, { thoughts }) =>
      thoughts === undefined ? messages : messages.map(withThoughts(thoughts)),
    ),
    ofMessages((messages, { emptyContent }) =>
      emptyContent === undefined || emptyContent === "text"
        ? messages
        : messages.map((message) => withoutEmptyContent(message, emptyContent)),
    ),
    ofMessages((messages, { systemRole }) =>
      systemRole === undefined ? messages : messages.map((message) => withSystemRole(message, systemRole)),
    ),
    ofMessages((messages, { callIds }) => (callIds === "nine" ? messages.map(withNineLetters) : messages)),
    ofMessages((messages, { afterTool }) => (afterTool === "notUser" ? withTurns(messages) : messages)),
    (body, { needsTools }) => (needsTools === true ? withKnownTools(body) : body),
    ofMessages((messages, { markText }) => (markText === true ? withTextMarks(messages) : messages)),
  ],
  responses: [],
  messages: [
    ofMessages((messages, { thoughts }, { refusedSignatures }) =>
      messages.flatMap((message) =>
        signedOnly(message, thoughts?.field === "none" ? "all" : refusedSignatures),
      ),
    ),
    (body, { marks }) =>
      marks === "none" ? unmarked(body) : marks === "blocks" ? withBlockMark(body) : body,
  ],
};

function ofMessages(
  change: (messages: Json[], rules: RequestRules, exceptions: Exceptions) => Json[],
): Change {
  return (body, rules, exceptions) => {
    if (!Array.isArray(body["messages"])) return body;
    const given = body["messages"] as Json[]; // LangChain wrote them
    const messages = change(given, rules, exceptions);
    const isSame = messages.length === given.length && messages.every((message, at) => message === given[at]);
    return isSame ? body : { ...body, messages };
  };
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

const callsOf = (message: Json): Json[] => asArray(message["tool_calls"]).map(recordOf);

/** A tool of any of the three APIs with a simpler schema, or with its parameters in its description. */
function simpleTool({ strict: _strict, ...tool }: Json, form: "plain" | "text"): Json {
  if (isRecord(tool["function"])) return { ...tool, function: simpleTool(tool["function"], form) };
  const name = isRecord(tool["input_schema"]) ? "input_schema" : "parameters";
  if (!isRecord(tool[name])) return tool;
  if (form === "plain") return { ...tool, [name]: plainSchema(tool[name]) };
  const description = `${textOrEmpty(tool["description"])}\n\nIts arguments are a JSON object.${parameterWords(tool[name])}`;
  return { ...tool, description, [name]: { type: "object", properties: {} } };
}

function parameterWords(schema: Json): string {
  const required = asArray(schema["required"]);
  const words = Object.entries(recordOf(schema["properties"])).map(([name, part]) => {
    const { type = "any value", description, enum: values } = recordOf(part);
    const form = [type].flat().join(" or ") + (required.includes(name) ? ", required" : "");
    const one = asArray(values).length > 0 ? ` One of ${asArray(values).join(", ")}.` : "";
    return `\n- ${name} (${form}): ${textOrEmpty(description)}${one}`;
  });
  return words.join("");
}

/** Google takes this in place of a signature for calls that another model made (ai.google.dev, thought signatures). */
const NO_SIGNATURE = "skip_thought_signature_validator";

const withThoughts =
  ({ field, on = "calls", missing }: NonNullable<RequestRules["thoughts"]>) =>
  (message: Json): Json => {
    if (message["role"] !== "assistant") return message;
    const calls = callsOf(message);
    if (field === "signature") {
      if (missing !== "skip" || calls.every((call) => isRecord(call["extra_content"]))) return message;
      const extra_content = { google: { thought_signature: NO_SIGNATURE } };
      return { ...message, tool_calls: calls.map((call) => ({ extra_content, ...call })) };
    }
    const { reasoning_content: one, reasoning: other, ...rest } = message;
    const text = [one, other].find((thoughts) => typeof thoughts === "string");
    if (field === "reasoning_details") return message;
    if (field === "none") return text === undefined ? message : rest;
    if (field === "tags") {
      if (text === undefined) return message;
      const { content } = rest;
      return {
        ...rest,
        content: `<think>${text}</think>${typeof content === "string" ? content : ""}`,
      };
    }
    if (on === "calls" && calls.length === 0) return message;
    if (text === undefined) return missing === "empty" ? { ...rest, [field]: "" } : message;
    return { ...rest, [field]: text };
  };

function withoutEmptyContent(message: Json, form: "null" | "none"): Json {
  const { content } = message;
  const isEmpty = content === "" || content === null || (Array.isArray(content) && content.length === 0);
  if (message["role"] !== "assistant" || !isEmpty || callsOf(message).length === 0) return message;
  return form === "null" ? { ...message, content: null } : without(message, "content");
}

const withSystemRole = (message: Json, role: string): Json =>
  message["role"] === "system" || message["role"] === "developer"
    ? message["role"] === role
      ? message
      : { ...message, role }
    : message;

const nineLetters = (id: unknown): string =>
  typeof id === "string" && /^[a-zA-Z0-9]{9}$/.test(id)
    ? id
    : BigInt(`0x${createHash("sha256").update(String(id)).digest("hex")}`)
        .toString(36)
        .slice(0, 9);

function withNineLetters(message: Json): Json {
  if (message["role"] === "tool") return { ...message, tool_call_id: nineLetters(message["tool_call_id"]) };
  const calls = callsOf(message);
  if (calls.length === 0) return message;
  return { ...message, tool_calls: calls.map((call) => ({ ...call, id: nineLetters(call["id"]) })) };
}

/** Puts a short reply between a tool result and a message of the user. */
const withTurns = (messages: Json[]): Json[] =>
  messages.flatMap((message, at) =>
    message["role"] === "user" && messages[at - 1]?.["role"] === "tool"
      ? [{ role: "assistant", content: "I have read the results." }, message]
      : [message],
  );

/** A request for text only, with a description of each tool that its history calls. */
function withKnownTools(body: Json): Json {
  if (asArray(body["tools"]).length > 0) return body;
  const calls = asArray(body["messages"]).flatMap((message) => callsOf(recordOf(message)));
  const names = new Set(calls.map((call) => String(recordOf(call["function"])["name"])));
  if (names.size === 0) return body;
  const parameters = { type: "object", properties: {} };
  const tools = [...names].map((name) => ({
    type: "function",
    function: { name, description: "Not available any more.", parameters },
  }));
  return { ...body, tools, tool_choice: "none" };
}

const MARK = { type: "ephemeral" };

/** Marks the system prompt and the newest message, so that later requests find them in the cache. */
function withTextMarks(messages: Json[]): Json[] {
  const isMarked = (message: Json): boolean =>
    asArray(message["content"]).some((block) => isRecord(block) && "cache_control" in block);
  if (messages.some(isMarked)) return messages;
  const system = messages.findLastIndex(({ role }) => role === "system" || role === "developer");
  return messages.map((message, at) =>
    at === system || at === messages.length - 1 ? withMarkAtEnd(message) : message,
  );
}

function withMarkAtEnd(message: Json): Json {
  const { content } = message;
  const blocks: unknown[] =
    typeof content === "string"
      ? content === ""
        ? []
        : [{ type: "text", text: content }]
      : asArray(content);
  const last = blocks.at(-1);
  if (!isRecord(last) || "cache_control" in last) return message;
  return { ...message, content: [...blocks.slice(0, -1), { ...last, cache_control: MARK }] };
}

/** Moves the mark at the top to the end of the newest message. */
function withBlockMark(body: Json): Json {
  if (!("cache_control" in body)) return body;
  const messages = asArray(body["messages"]).map(recordOf);
  const last = messages.at(-1);
  const rest = without(body, "cache_control");
  return last === undefined ? rest : { ...rest, messages: [...messages.slice(0, -1), withMarkAtEnd(last)] };
}

function unmarked(value: Json): Json {
  const text = JSON.stringify(value);
  if (!text.includes('"cache_control"')) return value;
  const clean: unknown = JSON.parse(text, (_name, part: unknown) =>
    isRecord(part) && "cache_control" in part && part["type"] !== "object"
      ? without(part, "cache_control")
      : part,
  );
  return recordOf(clean);
}

const THINKING: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

export const digestOf = (signature: string): string =>
  createHash("sha256").update(signature).digest("base64url").slice(0, 22);

/** Signatures of the reasoning in a request of Anthropic's API. */
export const signaturesIn = (body: Json): string[] =>
  asArray(body["messages"])
    .flatMap((message) => asArray(recordOf(message)["content"]))
    .map(recordOf)
    .filter(({ type }) => THINKING.has(type))
    .flatMap(({ signature, data }) => [signature, data].filter((text) => typeof text === "string"));

/** A message without reasoning that its server would refuse: without a signature, or with one of these. */
function signedOnly(message: Json, refused: "all" | ReadonlySet<string> | undefined): Json[] {
  const content = asArray(message["content"]).map(recordOf);
  const isSent = ({ type, signature, data }: Json): boolean => {
    if (!THINKING.has(type)) return true;
    const proof = typeof signature === "string" ? signature : data;
    return (
      typeof proof === "string" && proof !== "" && refused !== "all" && refused?.has(digestOf(proof)) !== true
    );
  };
  if (content.every(isSent)) return [message];
  const kept = content.filter(isSent);
  return kept.length > 0 ? [{ ...message, content: kept }] : [];
}
