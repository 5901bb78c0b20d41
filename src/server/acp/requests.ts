/** Normalizes requests of editors: entries of MCP servers may lack empty members, or have them as an object. */
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { isRecord } from "../../core/unknown.ts";

/** Wraps a stream, so that its requests have the protocol's form. */
export const strictRequests = ({ readable, writable }: Stream): Stream => ({
  writable,
  readable: readable.pipeThrough(
    new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => controller.enqueue(strictRequest(message)),
    }),
  ),
});

function strictRequest(message: AnyMessage): AnyMessage {
  const opens = "method" in message && ["session/new", "session/load"].includes(message.method);
  if (!opens || !isRecord(message.params)) return message;
  const { mcpServers = [], ...others } = message.params;
  return {
    ...message,
    params: { ...others, mcpServers: Array.isArray(mcpServers) ? mcpServers.map(strictServer) : mcpServers },
  };
}

function strictServer(server: unknown): unknown {
  if (!isRecord(server)) return server;
  const { args = [], env = [], headers = [], ...others } = server;
  return "command" in server
    ? { ...others, args: args ?? [], env: toPairs(env) }
    : { type: "http", ...others, headers: toPairs(headers) };
}

const toPairs = (given: unknown): unknown =>
  isRecord(given) ? Object.entries(given).map(([name, value]) => ({ name, value })) : (given ?? []);
