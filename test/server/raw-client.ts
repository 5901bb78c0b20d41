import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServerFactory } from "../../src/server/create-server.ts";
import type { ServerDeps } from "../../src/server/deps.ts";
import { cleanUpWith } from "../runs/support.ts";

export interface Asked {
  resultType: string;
  inputRequests: Record<string, { params: { message: string } }>;
  requestState: string;
}

export interface Ended {
  resultType: string;
  isError?: boolean;
  content: { text: string }[];
  structuredContent: { run_id: string; status: string; approvals: { id: string }[]; answer: string };
}

/** What an accepted form says. */
export const APPROVE = { action: "accept", content: { decision: "approve" } };

/** A 2026-07-28 client that shows what is on the wire. */
export async function rawClient(deps: ServerDeps, capabilities: object = { elicitation: { form: {} } }) {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const handle = serveStdio(createServerFactory(deps), { transport: server });
  cleanUpWith(() => handle.close());
  const waiting = new Map<number, (message: JSONRPCMessage) => void>();
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  client.onmessage = (message) => {
    if ("id" in message && typeof message.id === "number") waiting.get(message.id)?.(message);
  };
  await client.start();
  let id = 0;
  const call = async (name: string, args: object, extra: object = {}): Promise<Record<string, unknown>> => {
    id += 1;
    const answered = new Promise<JSONRPCMessage>((resolve) => waiting.set(id, resolve));
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    };
    const params = { name, arguments: { ...args }, _meta, ...extra };
    await client.send({ jsonrpc: "2.0", id, method: "tools/call", params });
    return { ...(await answered) };
  };
  const result = async <Result>(name: string, args: object, extra?: object): Promise<Result> =>
    (await call(name, args, extra))["result"] as Result; // each test names the shape it looks at
  return { call, result };
}
