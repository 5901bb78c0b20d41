/** Gives the SDK's errors the code of the revision, and words for people. */
import {
  type JSONRPCMessage,
  type McpServer,
  ProtocolErrorCode,
  isJSONRPCErrorResponse,
} from "@modelcontextprotocol/server";
import { z } from "zod";
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

/**
 * Puts the first problem of a validator's list into words. The SDK shows its lists as they are, and takes most of
 * them for failures of the server. `undefined`: the text is no list about the params of a request.
 */
export function paramsProblem(text: string): string | undefined {
  const start = text.indexOf("[");
  if (start === -1 || !text.includes('"params"')) return undefined;
  try {
    const [issue] = Issues.parse(JSON.parse(text.slice(start)));
    const { path, expected, message } = innermost(issue);
    const [first, ...members] = path;
    if (first !== "params") return undefined;
    const name = members.map(String).join(".") || "params";
    const wanted = expected === undefined ? undefined : (NOUNS[expected] ?? `a ${expected}`);
    return wanted === undefined ? `${name}: ${message}` : `${name} must be ${wanted}`;
  } catch {
    return undefined;
  }
}

const NOUNS: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "a list",
  int: "a whole number",
};

interface Issue {
  path: (string | number)[];
  message: string;
  expected?: string | undefined;
  /** Problems with each form that a value may have. */
  errors?: Issue[][] | undefined;
}

const Issue: z.ZodType<Issue> = z.object({
  path: z.array(z.union([z.string(), z.number()])),
  message: z.string(),
  expected: z.string().optional(),
  errors: z.lazy(() => z.array(z.array(Issue))).optional(),
});
const Issues = z.tuple([Issue], z.unknown());

/** The first problem with the first form of a value, with its whole path. */
function innermost(issue: Issue): Issue {
  const inner = issue.errors?.[0]?.[0];
  return inner === undefined ? issue : innermost({ ...inner, path: [...issue.path, ...inner.path] });
}
