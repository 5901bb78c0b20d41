/**
 * Recognizes the first messages of a client. Strict: the program gets all unusual messages, and repairs or refuses
 * them.
 */
import { isRecord, memberOf, parsedJson, textMemberOf } from "../core/unknown.ts";

export interface FirstMessage {
  readonly id?: string | number;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** The message of a line; `undefined` if anything in it would have to be repaired or refused. */
export function readMessage(line: string): FirstMessage | undefined {
  const message = parsedJson(line);
  if (!isRecord(message)) return undefined;
  const { jsonrpc, id, method, params, ...others } = message;
  if (jsonrpc !== "2.0" || typeof method !== "string" || Object.keys(others).length > 0) return undefined;
  if ("params" in message && !isRecord(params)) return undefined;
  if ("id" in message && !isToken(id)) return undefined;
  return { method, ...(isToken(id) ? { id } : {}), ...(isRecord(params) ? { params } : {}) };
}

/** The revision that an `initialize` asks for, if it is one of `revisions`, those with a handshake. */
export function sessionRevision(
  { method, params = {} }: FirstMessage,
  revisions: readonly string[],
): string | undefined {
  const { protocolVersion, capabilities, clientInfo, ...others } = params;
  const revision = revisions.find((known) => known === protocolVersion);
  if (method !== "initialize" || revision === undefined) return undefined;
  return areCapabilities(capabilities) && isClient(clientInfo) && isBare(others) ? revision : undefined;
}

/** True for a request of the revision `latest`, in which each request names its revision and its client. */
export function isLatest({ params = {} }: FirstMessage, latest: string): boolean {
  const { _meta: meta, ...others } = params;
  if (!isRecord(meta) || Object.keys(others).length > 0) return false;
  const {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": client,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...rest
  } = meta;
  return revision === latest && isClient(client) && areCapabilities(capabilities) && isBare({ _meta: rest });
}

/** The name of the client that a message declares: in the handshake, or in the envelope of the latest revision. */
export function clientName({ params = {} }: FirstMessage): string {
  const info = params["clientInfo"] ?? memberOf(params["_meta"], "io.modelcontextprotocol/clientInfo");
  return textMemberOf(info, "name") ?? "";
}

/** True for parameters that change no answer of a handshake: none, or a token for progress, as Codex sends. */
export const isBare = (params: Record<string, unknown> = {}): boolean =>
  Object.entries(params).every(
    ([name, meta]) =>
      name === "_meta" &&
      isRecord(meta) &&
      Object.entries(meta).every(([key, token]) => key === "progressToken" && isToken(token)),
  );

const isToken = (value: unknown): value is string | number =>
  typeof value === "string" || Number.isSafeInteger(value);

const isClient = (client: unknown): boolean =>
  isRecord(client) &&
  "name" in client &&
  "version" in client &&
  Object.entries(client).every(
    ([name, value]) =>
      ["name", "title", "version", "description", "websiteUrl"].includes(name) && typeof value === "string",
  );

/** Accepts a subset of the protocol's schemas: nested objects, with its switches and lists of texts. */
const areCapabilities = (value: unknown, level = 0): boolean =>
  isRecord(value) &&
  level < 6 &&
  Object.entries(value).every(([name, member]) => {
    if (typeof member === "boolean") return level > 0 && ["listChanged", "applyDefaults"].includes(name);
    if (Array.isArray(member)) return level > 1 && member.every((one) => typeof one === "string");
    return areCapabilities(member, level + 1);
  });
