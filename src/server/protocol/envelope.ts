/** Reads JSON-RPC messages of clients. Forgives what has one meaning only, and says what is wrong with the rest. */
import {
  type JSONRPCMessage,
  ProtocolErrorCode,
  type RequestId,
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
} from "@modelcontextprotocol/server";

/** An error about a message. The id is null if the message has none that can be used. */
export interface ErrorAnswer {
  jsonrpc: "2.0";
  id: RequestId | null;
  error: { code: number; message: string };
}

/** A message in the form of the protocol, or what is wrong with it. */
export type Incoming =
  | { ok: true; message: JSONRPCMessage }
  /** `isExpected`: its sender waits for an answer. Senders of notifications and of answers do not. */
  | { ok: false; answer: ErrorAnswer; isExpected: boolean };

type Members = Record<string, unknown>;

/**
 * Reads one message. Members that are null count as left out, and an empty list counts as an empty object where an
 * object belongs: languages without the difference write them so.
 */
export function readMessage(value: unknown): Incoming {
  if (!isObject(value)) return refuse(null, "a message must be a JSON object");
  const { jsonrpc, method } = value;
  const id = value["id"] ?? undefined;
  if (method == null && ("result" in value || "error" in value)) return readAnswer(value);
  if (typeof method !== "string") return refuse(idOf(id), "method must be a string");
  const isNotification = id === undefined && (!("id" in value) || method.startsWith("notifications/"));
  if (jsonrpc !== "2.0") return refuse(idOf(id), 'jsonrpc must be "2.0"', !isNotification);
  if (!isNotification && !isId(id))
    return refuse(idOf(id), "id must be a string or a whole number below 2^53 in size");
  const read = readParams(method, value["params"]);
  if (typeof read === "string")
    return refuse(idOf(id), read, !isNotification, ProtocolErrorCode.InvalidParams);
  const message = {
    jsonrpc: "2.0",
    ...(isNotification ? {} : { id }),
    method,
    ...(read.params && { params: read.params }),
  };
  if (method === "initialize" && !isNotification && !isInitializeRequest(message))
    return refuse(idOf(id), INITIALIZE, true, ProtocolErrorCode.InvalidParams);
  if (isJSONRPCRequest(message) || isJSONRPCNotification(message)) return { ok: true, message };
  return refuse(
    idOf(id),
    "_meta is not as the protocol describes it",
    !isNotification,
    ProtocolErrorCode.InvalidParams,
  );
}

/** The messages that one line or body holds, and the errors about the rest of it. */
export interface Received {
  messages: JSONRPCMessage[];
  errors: ErrorAnswer[];
}

/** As many as the transports over HTTP take. */
const MAX_BATCH = 100;

/** Reads one message, or a batch of them in a revision that `takesBatches`. A bad one leaves the others as they are. */
export function readMessages(value: unknown, takesBatches: boolean): Received {
  const isBatch = Array.isArray(value);
  if (isBatch && (value.length === 0 || value.length > MAX_BATCH))
    return { messages: [], errors: [errorAnswer(null, `a batch must have 1 to ${MAX_BATCH} messages`)] };
  const received: Received = { messages: [], errors: [] };
  for (const read of (isBatch ? value : [value]).map(readMessage)) {
    if (!read.ok) received.errors.push(...(read.isExpected ? [read.answer] : []));
    else if (!isBatch || takesBatches) received.messages.push(read.message);
    else if (isJSONRPCRequest(read.message)) received.errors.push(errorAnswer(read.message.id, NO_BATCHES));
  }
  return received;
}

const NO_BATCHES = "this revision of the protocol has no batches; send each message by itself";

/** An error about a message as a whole. */
export function errorAnswer(
  id: ErrorAnswer["id"],
  message: string,
  code = ProtocolErrorCode.InvalidRequest,
): ErrorAnswer {
  return { jsonrpc: "2.0", id, error: { code, message: `${TITLES[code]}: ${message}` } };
}

const TITLES: Readonly<Record<number, string>> = {
  [ProtocolErrorCode.ParseError]: "Parse error",
  [ProtocolErrorCode.InvalidRequest]: "Invalid request",
  [ProtocolErrorCode.InvalidParams]: "Invalid params",
};

const INITIALIZE =
  "initialize needs protocolVersion (a string), capabilities (an object of objects) and clientInfo (an object with name and version)";

const refuse = (
  id: ErrorAnswer["id"],
  problem: string,
  isExpected = true,
  code = ProtocolErrorCode.InvalidRequest,
): Incoming => ({ ok: false, answer: errorAnswer(id, problem, code), isExpected });

/** Reads an answer to a request of ours. Some clients add `error: null` to results, and the reverse. */
function readAnswer({ id, result, error }: Members): Incoming {
  const content = error == null ? { result: withoutNulls(result ?? {}) } : { error: withoutNulls(error) };
  const message = { jsonrpc: "2.0", id, ...content };
  return isJSONRPCResponse(message)
    ? { ok: true, message }
    : refuse(null, "it is not an answer to a request of this server", false);
}

/** Reads the params of a method, or tells what is wrong with them. */
function readParams(method: string, given: unknown): { params?: Members } | string {
  const value = emptied(given) ?? undefined;
  if (value === undefined && method !== "initialize") return {};
  if (value !== undefined && !isObject(value)) return "params must be an object";
  const params = membersOf(withoutNulls(value ?? {}));
  for (const name of ["_meta", "arguments", "capabilities"] as const) {
    if (name in params) params[name] = emptied(params[name]);
  }
  if (isObject(params["capabilities"])) {
    const declared = Object.entries(params["capabilities"]).map(([name, member]) => [name, emptied(member)]);
    params["capabilities"] = Object.fromEntries(declared);
  }
  // Models write null for arguments that they leave out.
  if (isObject(params["arguments"])) params["arguments"] = withoutNullMembers(params["arguments"]);
  const { _meta: meta } = params;
  if (meta !== undefined && !isObject(meta)) return "_meta must be an object";
  const token = meta?.["progressToken"];
  if (token !== undefined && !isId(token)) return "_meta.progressToken must be a string or a whole number";
  return {
    params: method === "initialize" ? { ...NOTHING_DECLARED, ...params, clientInfo: infoOf(params) } : params,
  };
}

/** A client that declares nothing about itself. The server answers an unknown revision with one that it speaks. */
const NOTHING_DECLARED = { protocolVersion: "none", capabilities: {} };
const infoOf = ({ clientInfo = {} }: Members): unknown =>
  isObject(clientInfo) ? { name: "unknown", version: "unknown", ...clientInfo } : clientInfo;

/** Members that hold JSON of somebody else, in which null may have a meaning. */
const VERBATIM: ReadonlySet<string> = new Set(["arguments", "input"]);

/** Leaves out members that are null, at any depth. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept = Object.entries(withoutNullMembers(value));
  return Object.fromEntries(
    kept.map(([name, member]) => [name, VERBATIM.has(name) ? member : withoutNulls(member)]),
  );
}

const withoutNullMembers = (value: Members): Members =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));

const emptied = (value: unknown): unknown => (Array.isArray(value) && value.length === 0 ? {} : value);

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const membersOf = (value: unknown): Members => (isObject(value) ? value : {});

const isId = (value: unknown): value is RequestId => typeof value === "string" || Number.isSafeInteger(value);

/** The id as the sender wrote it, for its error; null if it was not a string or a number. */
const idOf = (id: unknown): ErrorAnswer["id"] =>
  typeof id === "string" || typeof id === "number" ? id : null;
