import { isJSONRPCErrorResponse, type JSONRPCMessage, type McpServer } from "@modelcontextprotocol/server";

/** Of revisions up to 2025-11-25; since then it is "invalid params". */
const RESOURCE_NOT_FOUND = -32_002;

/**
 * Lets a 2025-era instance answer for a resource that does not exist with the code of its revisions. The SDK
 * sends the one of 2026-07-28 in both eras, so it is replaced on the way out.
 */
export function sendLegacyCodes(mcp: McpServer): void {
  const connect = mcp.server.connect.bind(mcp.server);
  mcp.server.connect = async (transport) => {
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => send(recoded(message), options);
    await connect(transport);
  };
}

function recoded(message: JSONRPCMessage): JSONRPCMessage {
  if (!isJSONRPCErrorResponse(message)) return message;
  const { error } = message;
  const isNotFound = error.message.startsWith("Resource not found") && hasUri(error.data);
  return isNotFound ? { ...message, error: { ...error, code: RESOURCE_NOT_FOUND } } : message;
}

const hasUri = (data: unknown): boolean => typeof data === "object" && data !== null && "uri" in data;
