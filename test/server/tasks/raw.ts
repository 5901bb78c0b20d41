import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServerFactory } from "../../../src/server/protocol/create-server.ts";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { cleanUpWith } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { openHttp } from "../../support/harness-http.ts";

export const TASKS = { "io.modelcontextprotocol/tasks": {} };
export const FORMS = { elicitation: { form: {} } };

/** What came back for one request, as it was on the wire. */
export interface Reply {
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
  /** Over HTTP. */
  status?: number;
}

/** Sends one 2026-07-28 request with these client capabilities. */
export type Rpc = (method: string, params: object, capabilities?: object) => Promise<Reply>;

export const envelope = (capabilities: object) => ({
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
});

/** Declares tasks and forms where a test does not say otherwise. */
const ALL = { ...FORMS, extensions: TASKS };

export async function overMemory(deps: ServerDeps): Promise<Rpc> {
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
  return async (method, params, capabilities = ALL) => {
    id += 1;
    const answered = new Promise<JSONRPCMessage>((resolve) => waiting.set(id, resolve));
    const _meta = envelope(capabilities);
    await client.send({ jsonrpc: "2.0", id, method, params: { ...params, _meta } });
    return (await answered) as Reply; // the server's answer to a request is a result or an error
  };
}

export async function overHttp(deps: ServerDeps): Promise<Rpc> {
  return rpcTo((await openHttp(deps, cleanUpWith)).url);
}

/** To a server that listens at `url`. */
export function rpcTo(url: string): Rpc {
  let id = 0;
  return async (method, params, capabilities = ALL) => {
    id += 1;
    const { name = "", taskId = "" } = params as { name?: string; taskId?: string };
    const { status, body } = await send(url, {
      headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name || taskId },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id,
        method,
        params: { ...params, _meta: envelope(capabilities) },
      }),
    });
    return { ...(JSON.parse(body) as Reply), status };
  };
}
