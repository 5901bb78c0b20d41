/** Reads JSON-RPC messages of clients. Repairs unambiguous mistakes, and describes all others. */
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/server";
import {
  ProtocolErrorCode,
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
} from "@modelcontextprotocol/server";
import { isRecord, defined } from "../../core/unknown.ts";

/** An error about a message. The id is null if the message has none that can be used. */
export interface ErrorAnswer {
  jsonrpc: "2.0";
  id: RequestId | null;
  error: { code: number; message: string };
}

/** A message in the form of the protocol, or an error about it. */
type Incoming =
  | { ok: true; message: JSONRPCMessage }
  /** `isExpected`: its sender waits for an answer. Senders of notifications and of answers do not. */
  | { ok: false; answer: ErrorAnswer; isExpected: boolean };

/** The messages that one line or body holds, and the errors about the rest of it. */
export interface Received {
  messages: JSONRPCMessage[];
  errors: ErrorAnswer[];
}

type Members = Record<string, unknown>;

/** The SDK takes no more over HTTP. */
const MAX_BATCH = 100;
/** Reads one message, or a batch of them in a revision that `takesBatches`. A bad one leaves the others as they are. */
export function readMessages(value: unknown, takesBatches: boolean): Received {
  const isBatch = Array.isArray(value);
  if (isBatch && (value.length === 0 || value.length > MAX_BATCH))
    return { messages: [], errors: [invalidRequest(null, `a batch must have 1 to ${MAX_BATCH} messages`)] };
  const received: Received = { messages: [], errors: [] };
  const noBatches = "this revision of the protocol has no batches; send each message by itself";
  for (const read of (isBatch ? value : [value]).map(readMessage)) {
    if (!read.ok) received.errors.push(...(read.isExpected ? [read.answer] : []));
    else if (!isBatch || takesBatches) received.messages.push(read.message);
    else if (isJSONRPCRequest(read.message)) received.errors.push(invalidRequest(read.message.id, noBatches));
  }
  return received;
}

/**
 * Reads one message. Members that are null count as left out, and an empty list counts as an empty object where an
 * object belongs: languages without the difference write them so.
 */
function readMessage(value: unknown): Incoming {
  if (!isRecord(value)) return refuse(null, "a message must be a JSON object");
  const { method } = value;
  const id = value["id"] ?? undefined;
  if (method == null && ("result" in value || "error" in value)) {
    const { result, error } = value;
    // Some clients add `error: null` to results, and the reverse.
    const content = error == null ? { result: withoutNulls(result ?? {}) } : { error: withoutNulls(error) };
    const message = { jsonrpc: "2.0", id: value["id"], ...content };
    if (isJSONRPCResponse(message)) return { ok: true, message };
    return refuse(null, "this is not an answer to a request of the server", false);
  }
  const isExpected = id !== undefined || ("id" in value && !String(method).startsWith("notifications/"));
  const shown = typeof id === "string" || typeof id === "number" ? id : null;
  if (typeof method !== "string") return refuse(shown, "method must be a string");
  if (value["jsonrpc"] !== "2.0") return refuse(shown, 'jsonrpc must be "2.0"', isExpected);
  if (isExpected && !isId(id)) return refuse(shown, `id must be ${AN_ID}`);
  const params = readParams(method, emptied(value["params"]) ?? undefined);
  const message = { jsonrpc: "2.0", ...(isExpected && { id }), method, ...defined({ params }) };
  if (isMessage(message)) return { ok: true, message };
  const problem =
    params === undefined || isRecord(params) ? paramsProblem(params) : "params must be an object";
  const answer = errorAnswer(shown, ProtocolErrorCode.InvalidParams, `Invalid params: ${problem}`);
  return { ok: false, answer, isExpected };
}

const isMessage = (message: {
  method: string;
  id?: unknown;
}): message is JSONRPCMessage & { method: string } =>
  isJSONRPCNotification(message) ||
  (isJSONRPCRequest(message) && (message.method !== "initialize" || isInitializeRequest(message)));

function readParams(method: string, given: unknown): unknown {
  if (given !== undefined && !isRecord(given)) return given;
  if (given === undefined && method !== "initialize") return undefined;
  const params: Members = { ...Object(withoutNulls(given)) };
  for (const name of ["_meta", "arguments", "capabilities"])
    if (name in params) params[name] = emptied(params[name]);
  // Models write null for arguments that they leave out.
  if (isRecord(params["arguments"])) params["arguments"] = withoutNullMembers(params["arguments"]);
  if (method !== "initialize") return params;
  const { clientInfo = {} } = params;
  const info = isRecord(clientInfo) ? { name: "unknown", version: "unknown", ...clientInfo } : clientInfo;
  // The server answers an unknown revision with one that it speaks.
  return { protocolVersion: "none", capabilities: {}, ...params, clientInfo: info };
}

/** Describes the error in the params of a request or notification whose other members are valid. */
function paramsProblem({ _meta: meta = {} }: Members = {}): string {
  if (!isRecord(meta)) return "_meta must be an object";
  if (!isId(meta["progressToken"] ?? "")) return `_meta.progressToken must be ${AN_ID}`;
  return "protocolVersion must be a string, and capabilities, clientInfo and what is in _meta must be objects";
}

const AN_ID = "a string or a whole number below 2^53 in size";

const isId = (value: unknown): value is RequestId => typeof value === "string" || Number.isSafeInteger(value);

/** An error about a message as a whole. */
export const errorAnswer = (id: ErrorAnswer["id"], code: number, message: string): ErrorAnswer => ({
  jsonrpc: "2.0",
  id,
  error: { code, message },
});

const invalidRequest = (id: ErrorAnswer["id"], problem: string): ErrorAnswer =>
  errorAnswer(id, ProtocolErrorCode.InvalidRequest, `Invalid request: ${problem}`);

const refuse = (id: ErrorAnswer["id"], problem: string, isExpected = true): Incoming => ({
  ok: false,
  answer: invalidRequest(id, problem),
  isExpected,
});

/** Leaves out members that are null, at any depth but in JSON of somebody else, in which null may have a meaning. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const kept = Object.entries(withoutNullMembers(value)).map(([name, member]) => {
    return [name, name === "arguments" || name === "input" ? member : withoutNulls(member)];
  });
  return Object.fromEntries(kept);
}

export const withoutNullMembers = (value: Members): Members =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));

const emptied = (value: unknown): unknown => (Array.isArray(value) && value.length === 0 ? {} : value);
