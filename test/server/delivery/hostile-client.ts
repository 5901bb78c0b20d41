import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServerFactory } from "../../../src/server/protocol/create-server.ts";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { envelope, FORMS, type Reply } from "../tasks/raw.ts";

/** A 2026-07-28 client with forms that keeps to no rule, and its server. */
export interface HostileClient {
  /** `undefined` when no answer came in time: then the call hangs. */
  call(name: string, args: object, extra?: object): Promise<Reply | undefined>;
  /** Sends a call and does not wait: it is cancelled at once. */
  abandon(name: string, args: object): Promise<void>;
  /** Sends a call and leaves. */
  leave(name: string, args: object): Promise<void>;
  close(): Promise<void>;
}

export async function hostileClient(deps: ServerDeps, patienceMs: number): Promise<HostileClient> {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const handle = serveStdio(createServerFactory(deps), { transport: server });
  const waiting = new Map<number, (message: JSONRPCMessage) => void>();
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  client.onmessage = (message) => {
    if ("id" in message && typeof message.id === "number") waiting.get(message.id)?.(message);
  };
  await client.start();
  let id = 0;
  const send = async (name: string, args: object, extra: object = {}): Promise<number> => {
    id += 1;
    const params = { name, arguments: args, _meta: envelope(FORMS), ...extra };
    await client.send({ jsonrpc: "2.0", id, method: "tools/call", params });
    return id;
  };
  const close = async (): Promise<void> => {
    await client.close();
    await handle.close();
  };
  return {
    call: async (name, args, extra) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<undefined>((resolve) => {
        timer = setTimeout(() => resolve(undefined), patienceMs);
      });
      const answered = new Promise<JSONRPCMessage>((resolve) => waiting.set(id + 1, resolve));
      await send(name, args, extra);
      const message = await Promise.race([answered, late]).finally(() => clearTimeout(timer));
      return message as Reply | undefined; // the server's answer to a request is a result or an error
    },
    abandon: async (name, args) => {
      const requestId = await send(name, args);
      const params = { requestId, reason: "never mind" };
      await client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    },
    leave: async (name, args) => {
      await send(name, args);
      await close();
    },
    close,
  };
}
