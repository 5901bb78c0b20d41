/** Gives the SDK's errors the code of the revision, and words for people. */
import {
  type JSONRPCMessage,
  type McpServer,
  ProtocolErrorCode,
  isJSONRPCErrorResponse,
} from "@modelcontextprotocol/server";
import type { Revision } from "./revisions.ts";

/** Rewrites errors on their way out of one server instance. */
export function rewriteErrors(mcp: McpServer, { errorCodes }: Revision): void {
  const connect = mcp.server.connect.bind(mcp.server);
  mcp.server.connect = async (transport) => {
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => send(rewritten(message, errorCodes), options);
    await connect(transport);
  };
}

function rewritten(message: JSONRPCMessage, codes: Revision["errorCodes"]): JSONRPCMessage {
  if (!isJSONRPCErrorResponse(message)) return message;
  const { error } = message;
  // The SDK sends the code of the latest revision in all of them.
  if (error.message.startsWith("Resource not found") && hasUri(error.data))
    return { ...message, error: { ...error, code: codes.resourceNotFound } };
  const problem = paramsProblem(error.message);
  if (problem === undefined) return message;
  return {
    ...message,
    error: { code: ProtocolErrorCode.InvalidParams, message: `Invalid params: ${problem}` },
  };
}

const hasUri = (data: unknown): boolean => typeof data === "object" && data !== null && "uri" in data;

/** A problem that zod found. `errors`: those with each form that the value may have. */
interface Issue {
  path: string[];
  message: string;
  expected?: string;
  errors?: Issue[][];
}

/**
 * Puts the first problem of a list of zod's into words. The SDK shows such lists as they are, and takes most of them
 * for failures of the server. `undefined`: the text is not a list about the params of a request.
 */
export function paramsProblem(text: string): string | undefined {
  const list = /^(?:Invalid [^[]*)?(\[\s*\{.*\])$/s.exec(text)?.[1];
  if (list === undefined) return undefined;
  try {
    let [issue] = JSON.parse(list) as Issue[]; // as zod writes them
    const path = [...(issue?.path ?? [])];
    for (let inner = issue?.errors; inner !== undefined; inner = issue?.errors) {
      issue = inner[0]?.[0];
      path.push(...(issue?.path ?? []));
    }
    if (issue === undefined || path.shift() !== "params") return undefined;
    const { expected, message } = issue;
    const name = path.join(".") || "params";
    return expected === undefined
      ? `${name}: ${message}`
      : `${name} must be ${NOUNS[expected] ?? `a ${expected}`}`;
  } catch {
    return undefined;
  }
}

const NOUNS: Readonly<Record<string, string>> = { object: "an object", record: "an object", array: "a list" };
