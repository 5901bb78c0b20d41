/** Reads the requests of editors as they write them: entries of MCP servers may lack what is empty, or have it as an object. */
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { isRecord } from "../../core/unknown.ts";

/** The same stream, with requests in the form of the protocol. */
export const strictRequests = ({ readable, writable }: Stream): Stream => ({
  writable,
  readable: readable.pipeThrough(
    new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => controller.enqueue(strictRequest(message)),
    }),
  ),
});

const OPENING: ReadonlySet<string> = new Set(["session/new", "session/load"]);

function strictRequest(message: AnyMessage): AnyMessage {
  if (!("method" in message) || !OPENING.has(message.method) || !isRecord(message.params)) return message;
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
    ? { ...others, args: args ?? [], env: pairsOf(env) }
    : { type: "http", ...others, headers: pairsOf(headers) };
}

const pairsOf = (given: unknown): unknown =>
  isRecord(given) ? Object.entries(given).map(([name, value]) => ({ name, value })) : (given ?? []);
