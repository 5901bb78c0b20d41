import type { IncomingHttpHeaders } from "node:http";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";

export type Json = Record<string, unknown>;

/** One message of a request, the same for all protocols. */
export interface WireMessage {
  role: "system" | "user" | "assistant";
  text: string;
  toolCalls: { id: string; name: string; args: Json }[];
  toolResults: { id: string; text: string; error: boolean }[];
}

export interface WireRequest {
  protocol: "anthropic" | "openai-chat" | "openai-responses" | "openai-embeddings";
  model: string;
  stream: boolean;
  messages: WireMessage[];
  /** Names of the offered tools. */
  tools: string[];
  /** Counts accepted requests from 0. */
  number: number;
  /** As it came. */
  body: Json;
}

export interface WireAnswer {
  text?: string;
  /** What the model thought before, where the protocol shows it. */
  thinking?: string;
  /** A string as `args` is sent as it is, valid JSON or not. */
  toolCalls?: { id?: string; name: string; args: Json | string }[];
  usage?: { inputTokens: number; outputTokens: number; cachedInputTokens?: number };
  /** Embeddings of the request's messages, instead of a text. */
  vectors?: number[][];
  /** Cut at the limit of output tokens. */
  truncated?: boolean;
  /** The reason for the end, as OpenAI's chat completions have it. Default: by the other fields. */
  finishReason?: string;
  /** How many characters come in one streamed piece. Default: a quarter of what is streamed. */
  pieceLength?: number;
  /** The second half of the stream comes after this. Default: at once. */
  rest?: Promise<void>;
}

export interface WireError {
  status: number;
  message: string;
  /** The provider's kind of error. Default: its usual one for the status. */
  type?: string;
  code?: string;
  /** Further fields of the error of OpenAI's chat completions. */
  details?: Json;
  headers?: Record<string, string>;
}

/**
 * `hang`: no answer. `stall`: half an answer, then silence. `cut`: half an answer, then a lost connection.
 * `end`: half an answer, then a proper end of the response. `report`: half an answer, then an error event.
 * `refuse`: the connection is closed without an answer.
 */
export type Fault =
  | { fault: "hang" | "stall" | "cut" | "end" | "refuse"; /** Default: some text. */ answer?: WireAnswer }
  | { fault: "report"; error: WireError };

export type WireReply = WireAnswer | WireError | Fault;

export interface WireProtocol {
  keyProblem(headers: IncomingHttpHeaders, key: string): WireError | undefined;
  /** The first rule of the provider that a request breaks. */
  problem(body: Json): WireError | undefined;
  read(body: Json, number: number): WireRequest;
  /** The answer in one piece. */
  body(request: WireRequest, answer: WireAnswer): Json;
  /** The answer as server-sent events. */
  events(request: WireRequest, answer: WireAnswer): string[];
  errorBody(error: WireError): Json;
  errorEvent(error: WireError): string;
}

export const isFault = (reply: WireReply): reply is Fault => "fault" in reply;
export const isWireError = (reply: WireReply): reply is WireError => "status" in reply;

export function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(record) : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The text of content that is a string or a list of blocks. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((block) => text(block["text"]))
    .join("");
}

/** The arguments of a call as they are sent. */
export const argumentsText = (args: Json | string): string =>
  typeof args === "string" ? args : JSON.stringify(args);

/** Arguments that came back; `{}` for what is no object. */
export function parsedArguments(json: unknown): Json {
  try {
    return record(JSON.parse(text(json)));
  } catch {
    return {};
  }
}

/** `whole` in pieces, as a model streams it. */
export function pieces(whole: string, { pieceLength }: WireAnswer): string[] {
  const size = pieceLength ?? Math.max(1, Math.ceil(whole.length / 4));
  return Array.from({ length: Math.ceil(whole.length / size) }, (_, n) =>
    whole.slice(n * size, (n + 1) * size),
  );
}

export const invalid = (message: string): WireError => ({ status: 400, message });

/** Describes the first problem of a tool's JSON schema in a few words, as providers find it. */
export const schemaProblem = (schema: Json): string | undefined =>
  partProblem(schema) ?? draftProblem(schema);

const validator = new AjvJsonSchemaValidator();
const compiled = new Map<string, string | undefined>();

/** Finds what draft 2020-12 forbids, references to nothing, and patterns that cannot be read. */
function draftProblem(schema: Json): string | undefined {
  const text = JSON.stringify(schema);
  if (!compiled.has(text)) {
    let problem: string | undefined;
    try {
      validator.getValidator(schema);
    } catch (error) {
      problem = String(error);
    }
    compiled.set(text, problem);
  }
  return compiled.get(text);
}

function partProblem(schema: unknown, path: readonly string[] = []): string | undefined {
  const { type, properties, items, required, additionalProperties } = record(schema);
  const types = ["object", "array", "string", "number", "integer", "boolean", "null"];
  if (
    type !== undefined &&
    !(Array.isArray(type) ? type : [type]).every((name: unknown) => types.includes(text(name)))
  ) {
    return `In context=(${path.join(", ")}), ${JSON.stringify(type)} is not a type`;
  }
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((name) => typeof name === "string"))
  ) {
    return `In context=(${path.join(", ")}), 'required' must be a list of names`;
  }
  if ([type].flat().includes("array") && items === undefined)
    return `In context=(${path.join(", ")}), array schema missing items`;
  const inner = (keyword: string): Array<[string, unknown]> =>
    list(record(schema)[keyword]).map((member, index) => [`${keyword}.${index}`, member]);
  const parts: Array<[string, unknown]> = [
    ...Object.entries(record(properties)).map(([name, part]): [string, unknown] => [
      `properties.${name}`,
      part,
    ]),
    ...["anyOf", "oneOf", "allOf", "prefixItems"].flatMap(inner),
    ["items", items],
    ["additionalProperties", additionalProperties],
  ];
  for (const [name, part] of parts) {
    const problem = part === undefined ? undefined : partProblem(part, [...path, name]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
