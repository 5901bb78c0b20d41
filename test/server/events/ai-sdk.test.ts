import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.ts";
import { type Callbacks, subscriberSend } from "../../../src/news/subscriber.ts";
import { Courier } from "../../../src/runs/courier.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { ME, cleanUpWith, connect, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { openHttp } from "../../support/harness-http.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { depsFor } from "../support.ts";

const HERE: Callbacks = { network: { isNamed: () => true }, isTrusted: () => true };

interface Kept {
  key: string;
  id?: string;
}

/** The parts of the package that the test uses; it is not among those of this repository. */
interface AiSdk {
  createMCPClient(options: object): Promise<{
    experimental_events: {
      list(): Promise<{ events: { name: string }[] }>;
      subscribe(wanted: object): Promise<{ id: string }>;
      unsubscribe(which: object): Promise<unknown>;
    };
    close(): Promise<void>;
  }>;
  experimental_createMCPEventWebhook(options: object): (request: Request) => Promise<Response>;
}

/** The store that its users bring. */
function memoryStore() {
  const all = new Map<string, Kept>();
  return {
    get: async (key: string) => all.get(key),
    getById: async (id: string) => [...all.values()].find((one) => one.id === id),
    set: async (kept: Kept) => void all.set(kept.key, kept),
    update: async (key: string, more: object) => void all.set(key, { ...all.get(key), key, ...more }),
    delete: async (key: string) => void all.delete(key),
  };
}

test("the AI SDK lists, subscribes, receives and unsubscribes", { tags: "ai-sdk" }, async () => {
  const module = join(process.cwd(), "examples/ai-sdk/node_modules/@ai-sdk/mcp/dist/index.js");
  const sdk = (await import(pathToFileURL(module).href)) as AiSdk;
  const file = databaseFile();
  const { service } = openServer(file, { model: scriptedModel(() => ({ text: "done" })) });
  const { url } = await openHttp({ ...depsFor(service), callbacks: HERE }, cleanUpWith);
  const { news } = sqliteRuns(connect(file));
  const store = memoryStore();
  const received: { data: { run_id: string } }[] = [];
  const handle = sdk.experimental_createMCPEventWebhook({
    store,
    onEvent: ({ event }: { event: { data: { run_id: string } } }) => void received.push(event),
  });
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = await text(request);
      const headers = new Headers(request.headers as Record<string, string>);
      const web = new Request(`http://127.0.0.1${request.url ?? ""}`, { method: "POST", headers, body });
      const given = await handle(web);
      response.writeHead(given.status, Object.fromEntries(given.headers));
      response.end(await given.text());
    };
    void answer();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUpWith(() => server.close());
  const callback = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;

  const client = await sdk.createMCPClient({
    transport: { type: "http", url },
    experimental_events: { store },
  });
  cleanUpWith(() => client.close());
  const { events } = await client.experimental_events.list();
  expect(events.map(({ name }) => name)).toContain("run.finished");
  const delivery = { mode: "webhook", url: callback, allowInsecureLocalhost: true };
  const { id } = await client.experimental_events.subscribe({ name: "run.finished", delivery });
  const context = { callbacks: HERE, clock: Date.now, holds: async () => true, pageOf: () => undefined };
  const courier = new Courier({
    news,
    channels: [],
    subscriber: (id) => subscriberSend(() => news.subscriptionById(id), context),
    environment: "test",
    clock: Date.now,
    log: silentLogger,
    checkMs: 10,
  });
  cleanUpWith(() => courier.close());
  const run = await startRun(service, "one");
  await reach(service, run.id, "completed");
  await expect.poll(() => received.map(({ data }) => data.run_id), { timeout: 5000 }).toEqual([run.id]);
  expect(await news.subscription(ME, id, Date.now())).toBeDefined();
  await client.experimental_events.unsubscribe({ id });
  expect(await news.subscription(ME, id, Date.now())).toBeUndefined();
});
