import { setImmediate as nextTurn } from "node:timers/promises";
import { McpServer, type McpServerFactory } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { HttpOptions } from "../../../src/server/http/http.ts";
import type { ChangeSink, ResourceChanges } from "../../../src/server/contracts/changes.ts";
import { send } from "../../support/clients-raw.ts";
import { deferred, type Deferred } from "../../support/harness-deferred.ts";
import { askWithoutReading, legacyAsker, modernAsker, openSession } from "../../support/slow-clients.ts";
import { serve } from "./support.ts";

/** More than any system takes for a connection that is not read: of it all, 40 MB. */
const MESSAGES = 4000;
const LONG = "x".repeat(10_000);
const MOST = 20_000_000;

/** A server whose tool `storm` tells its progress to those who want it, and answers when `gate` opens. */
async function stormy(options: Partial<HttpOptions> = {}) {
  const stormed = deferred();
  const gate: Deferred = deferred();
  const sinks: ChangeSink[] = [];
  const changes: ResourceChanges = {
    attach: (_principal, sink) => {
      sinks.push(sink);
      return () => {};
    },
    follow: () => {},
    watch: () => {},
    runStarted: () => {},
    close: async () => {},
  };
  const factory: McpServerFactory = () => {
    const mcp = new McpServer(
      { name: "fixture", version: "1" },
      { capabilities: { resources: { subscribe: true } } },
    );
    mcp.registerTool("storm", { inputSchema: z.object({}) }, async (_args, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      const last = progressToken === undefined ? 0 : MESSAGES;
      for (let progress = 1; progress <= last; progress += 1) {
        const params = { progressToken, progress, message: `${LONG} line ${progress} of it` };
        await mcpReq.notify({ method: "notifications/progress", params });
        if (progress % 4 === 0) await nextTurn();
      }
      stormed.resolve();
      await gate.promise;
      return { content: [{ type: "text", text: "the answer" }] };
    });
    return mcp;
  };
  const server = await serve({ factory, changes, ...options });
  onTestFinished(gate.resolve);
  const metric = async (): Promise<string> => {
    const { body } = await send(server.url.replace("/mcp", "/metrics"), { method: "GET" });
    return /^deepagent_http_readers_cut_total\{.*$/m.exec(body)?.[0] ?? "";
  };
  return { url: server.url, stormed, gate, sinks, metric };
}

const STORM = { name: "storm", arguments: {}, _meta: { progressToken: "p" } };

test.each(["2025-11-25", "2026-07-28"])(
  "%s: a late reader is told the newest progress and the answer",
  async (era) => {
    const { url, stormed, gate } = await stormy();
    const ask = era === "2026-07-28" ? modernAsker : legacyAsker(url);
    const slow = await askWithoutReading(url, await ask("tools/call", STORM));
    await stormed.promise;
    gate.resolve();
    const came = await slow.readUntil("the answer");
    expect(came.length).toBeLessThan(MOST);
    expect(came).toContain(`line ${MESSAGES} of it`);
    expect(came.lastIndexOf(`line ${MESSAGES} of it`)).toBeLessThan(came.indexOf("the answer"));
  },
);

test("who listens and reads late hears once more of each resource that changed", async () => {
  const { url, sinks } = await stormy();
  const [early = "", late = "", last = ""] = ["early", "late", "last"].map(
    (name) => `test://${LONG}/${name}`,
  );
  const notifications = { resourceSubscriptions: [early, late, last] };
  const listen = await modernAsker("subscriptions/listen", { notifications });
  const slow = await askWithoutReading(url, listen);
  await expect.poll(() => sinks.length).toBe(1);
  // The subscription begins when the request has arrived.
  await expect
    .poll(async () => (await send(url.replace("/mcp", "/healthz"), { method: "GET" })).status)
    .toBe(200);
  for (let n = 0; n < MESSAGES; n += 1) {
    sinks[0]?.resourceUpdated(n < MESSAGES - 1000 ? early : late);
    if (n % 4 === 0) await nextTurn();
  }
  sinks[0]?.resourceUpdated(last);
  const came = await slow.readUntil(`"uri":"${last}"`);
  expect(came.length).toBeLessThan(MOST);
  expect(came.lastIndexOf(`"uri":"${early}"`)).toBeLessThan(came.indexOf(`"uri":"${late}"`));
  expect(came).toContain(`"uri":"${early}"`);
});

test("who reads nothing for too long loses the connection, and gets the answer on the next", async () => {
  const { url, stormed, gate, metric } = await stormy({ readMs: 200 });
  const headers = await openSession(url);
  const body = { jsonrpc: "2.0", id: 2, method: "tools/call", params: STORM };
  const slow = await askWithoutReading(url, { headers, body });
  await stormed.promise;
  await expect.poll(metric).toBe('deepagent_http_readers_cut_total{reason="stalled"} 1');
  gate.resolve();
  const came = await slow.readUntil("the answer");
  expect(came).not.toContain("the answer");
  const id = /^id: (\S+)$/m.exec(came)?.[1] ?? "";
  const next = await askWithoutReading(url, { headers: { ...headers, "last-event-id": id } });
  expect(await next.readUntil("the answer")).toContain("the answer");
});

test("who waits for an answer without reading, because there is nothing yet, keeps the connection", async () => {
  const { url, stormed, gate, metric } = await stormy({ readMs: 20 });
  const { headers, body } = await modernAsker("tools/call", { ...STORM, _meta: {} });
  const patient = send(url, { headers, body: JSON.stringify(body) });
  await stormed.promise;
  for (let n = 0; n < 50; n += 1) await metric();
  gate.resolve();
  expect((await patient).body).toContain("the answer");
  expect(await metric()).toBe("");
});
