import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { executionAsyncResource } from "node:async_hooks";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.ts";
import { SessionEvents } from "../../../src/server/http/event-store.ts";
import { readJsonBody } from "../../../src/server/http/request.ts";
import { Sessions } from "../../../src/server/http/sessions.ts";
import { openStreams } from "../../../src/storage/sqlite/streams.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Serves sessions that end when they are idle for a second. */
async function served(
  clock = () => 0,
): Promise<{ sessions: Sessions; streams: Promise<unknown>[]; url: URL }> {
  const events = new SessionEvents({
    open: () => openStreams(":memory:"),
    clock,
    logger: silentLogger,
  });
  cleanups.push(() => events.close());
  const sessions = new Sessions({
    factory: () => new McpServer({ name: "fixture", version: "1" }, { capabilities: { tools: {} } }),
    logger: silentLogger,
    clock,
    limit: 10,
    limitPerOwner: 10,
    events,
    idleMs: 1000,
    keepAliveMs: 0,
  });
  const streams: Promise<unknown>[] = [];
  const server = createServer((request, response) => {
    const id = request.headers["mcp-session-id"];
    if (request.method === "GET") streams.push(once(response, "close"));
    const serve = async (): Promise<void> => {
      const body = request.method === "POST" ? await readJsonBody(request) : undefined;
      const value = body?.ok ? body.value : undefined;
      await (typeof id === "string"
        ? sessions.serve(id, request, response, value)
        : sessions.open(request, response, value));
    };
    void serve();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { sessions, streams, url: new URL(`http://127.0.0.1:${port}`) };
}

async function connected(url: URL): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(url));
  cleanups.push(() => client.close());
  return client;
}

test("a session expires when it was idle for long enough, not while a stream is open", async () => {
  let now = 0;
  const { sessions, streams, url } = await served(() => now);
  const client = await connected(url);
  await expect.poll(() => streams.length).toBe(1);

  now = 5000;
  await sessions.expire();
  expect(sessions.size).toBe(1);

  await client.close();
  await Promise.all(streams);
  now = 5999;
  await sessions.expire();
  expect(sessions.size).toBe(1);
  now = 6000;
  await sessions.expire();
  expect(sessions.size).toBe(0);
});

test("promises carry no more after many sessions than after one", async () => {
  const { url } = await served();
  // Node keeps in each promise, as properties, what belongs to the work that made it.
  const carried = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve));
    return Object.getOwnPropertySymbols(executionAsyncResource()).length;
  };
  await (await connected(url)).close();
  const once = await carried();
  for (let count = 0; count < 5; count += 1) await (await connected(url)).close();
  expect(await carried()).toBe(once);
});
