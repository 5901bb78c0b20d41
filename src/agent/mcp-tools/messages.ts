/** Reads the messages of other MCP servers: accepts sloppy JSON-RPC, and passes on strict JSON-RPC. */
import type { JSONRPCErrorResponse, JSONRPCMessage, RequestId } from "@modelcontextprotocol/client";
import { defined, isRecord, parsedJson } from "../../core/unknown.ts";

/**
 * Returns the messages in `text`, a batch or one, in strict form; undefined if it has none. Invisible text before
 * the JSON, such as a byte order mark or colors, is skipped. `asked` is the id of the only request that this answers.
 */
export function parseMessages(text: string, asked?: RequestId): JSONRPCMessage[] | undefined {
  const value = parsedJson(text.replace(INVISIBLE, ""));
  const messages = (Array.isArray(value) ? value : [value]).flatMap((one) => strictMessage(one, asked) ?? []);
  return messages.length === 0 ? undefined : messages;
}

/** Blanks, byte order marks, NULs and control sequences of terminals: colors, and titles of windows. */
// oxlint-disable-next-line no-control-regex -- these characters are skipped
const INVISIBLE = /^(?:[\s\uFEFF\0]|\u001b\[[\d;?]{0,20}[A-Za-z]|\u001b\][^\u0007\u001b]{0,300}\u0007)+/;

const ENVELOPE: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);

function strictMessage(value: unknown, asked: RequestId | undefined): JSONRPCMessage | undefined {
  if (!isRecord(value)) return undefined;
  const isMarked = "jsonrpc" in value;
  // A log line in JSON has fields of its own.
  if (!isMarked && !Object.keys(value).every((key) => ENVELOPE.has(key))) return undefined;
  const { id: given, method, params, result, error } = value;
  const own = typeof given === "string" || Number.isSafeInteger(given) ? (given as RequestId) : undefined;
  if (typeof method === "string") {
    const named = {
      jsonrpc: "2.0" as const,
      method,
      ...(isRecord(params) && { params: strictMeta(params) }),
    };
    return own === undefined ? named : { ...named, id: own };
  }
  // Ids of ours are numbers, which some servers return as text.
  const id = asked ?? (typeof own === "string" && /^\d{1,15}$/.test(own) ? Number(own) : own);
  if (id === undefined) return undefined;
  // Some servers send `error: null`, `false`, `""` or `{}` beside a result.
  if (Boolean(error) && !(isRecord(error) && Object.keys(error).length === 0))
    return { jsonrpc: "2.0", id, error: strictError(error) };
  // Programs that leave out empty fields leave out an empty result, too.
  if (!isMarked && !("result" in value)) return undefined;
  if (isRecord(result)) return { jsonrpc: "2.0", id, result: strictMeta(result) };
  // A result is an object in MCP. Anything else can only be the words of a tool.
  const isEmpty = result === undefined || result === null;
  const words = isEmpty ? {} : { content: [{ type: "text", text: asText(result) }] };
  return { jsonrpc: "2.0", id, result: words };
}

/** Code of errors that have none. */
const INTERNAL_ERROR = -32_603;

function strictError(error: unknown): JSONRPCErrorResponse["error"] {
  if (!isRecord(error)) return { code: INTERNAL_ERROR, message: asText(error) };
  const { message = error, data } = error;
  const given = Number(error["code"] ?? INTERNAL_ERROR);
  const code = Number.isSafeInteger(given) ? given : INTERNAL_ERROR;
  return { code, message: asText(message), ...defined({ data }) };
}

function strictMeta(fields: Record<string, unknown>): Record<string, unknown> {
  const { _meta: meta, ...others } = fields;
  return meta === undefined || isRecord(meta) ? fields : others;
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/**
 * Returns an event of a `text/event-stream` with its messages in strict form, one event for each. A server of the
 * older transport may answer a request (`asked`) with the event that begins its stream; it becomes an error.
 */
export function strictEvent(event: string, asked?: RequestId): string {
  const lines = event.split(/\r\n|\r|\n/).filter((line) => line !== "");
  const others = lines.filter((line) => !DATA.test(line));
  const data = lines.filter((line) => DATA.test(line)).map((line) => line.replace(DATA, ""));
  const named = others.findLast((line) => line.startsWith("event:"));
  const type = named?.slice("event:".length).trim() ?? "message";
  if (type === "endpoint" && asked !== undefined) {
    const error = { jsonrpc: "2.0", error: "it speaks HTTP+SSE at this address" };
    return strictEvent(`data: ${JSON.stringify(error)}`, asked);
  }
  const messages = type === "message" ? parseMessages(data.join("\n"), asked) : undefined;
  const events = messages?.map((message) => [...others, `data: ${JSON.stringify(message)}`]) ?? [lines];
  return events.map((one) => `${one.join("\n")}\n\n`).join("");
}

const DATA = /^data(?:: ?|$)/;
/**
 * True if a server does not know the session of a request anymore, and so has done nothing. 404 is the rule; the
 * texts are those of widespread servers that answer 400, and 401.
 */
export function isSessionLost(status: number | undefined, text: string): boolean {
  const lost =
    /\bsession\b.{0,60}\b(?:not found|not exist|invalid|expired|unknown|terminated|closed)\b|\b(?:invalid|expired|unknown|(?:no|not a) valid|missing)\b.{0,20}\bsession\b|\bserver not initialized\b/i;
  return status === 404 || ((status === 400 || status === 401) && lost.test(text));
}
