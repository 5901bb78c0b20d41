/** Sets the code of the SDK's errors to that of the revision, and rewrites their text for people. */
import type { JSONRPCMessage, McpServer } from "@modelcontextprotocol/server";
import { ProtocolErrorCode, isJSONRPCErrorResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { memberOf, parsedJson } from "../../core/unknown.ts";
import type { Revision } from "../contracts/revisions.ts";

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
  if (error.message.startsWith("Resource not found") && memberOf(error.data, "uri") !== undefined)
    return { ...message, error: { ...error, code: codes.resourceNotFound } };
  const problem = paramsProblem(error.message);
  if (problem === undefined) return message;
  return {
    ...message,
    error: { code: ProtocolErrorCode.InvalidParams, message: `Invalid params: ${problem}` },
  };
}

/**
 * Describes a problem in one of zod's lists. The SDK shows such lists unchanged, and takes most of them for failures
 * of the server. Returns undefined if the text is not a list about the params of a request.
 */
export function paramsProblem(text: string): string | undefined {
  const at = text.indexOf("[");
  if (!/^(?:Invalid .{0,100})?$/.test(text.slice(0, Math.max(0, at)))) return undefined;
  const problems = PROBLEMS.safeParse(parsedJson(text.slice(at))).data ?? [];
  const problem = problems.find(({ path: [first] }) => first === "params");
  if (problem === undefined) return undefined;
  const name = problem.path.slice(1).join(".") || "params";
  const words = problem.message.replace("Invalid input: ", "").replace("record", "object");
  return `${name}: ${words.replace(", received undefined", ", but it is missing")}`;
}

/** Problems as zod lists them. */
const PROBLEMS = z.array(z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() }));
