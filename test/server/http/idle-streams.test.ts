/** Proxies close connections that say nothing for a minute: cloudflare/agents#1583, agentdeals#1098, withings-mcp#24. */
import { expect, test } from "vitest";
import type { AgUiEndpoint } from "../../../src/server/ag-ui/ag-ui.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { serve } from "./support.ts";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const call = (url: string, name: string, params: object, signal?: AbortSignal): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, ...params, _meta: META },
    }),
    ...(signal !== undefined && { signal }),
  });

test("a call without a progress token that takes long becomes a stream with comments, then its answer", async () => {
  const { url, gate } = await serve({ keepAliveMs: 20 });
  const response = await call(url, "wait", { arguments: {} });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  let text = "";
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.split(": keepalive").length === 4) gate.resolve();
  }
  const [, data = ""] = text.split("event: message\ndata: ");
  expect(text.replace(/event.*/s, "")).toMatch(/^(: keepalive\n\n){3,}$/);
  expect(JSON.parse(data)).toMatchObject({ id: 1, result: { content: [{ text: "waited" }] } });
  expect(data).toMatch(/\n\n$/);
});

test("a call that is answered at once, or refused, is answered by JSON", async () => {
  const { url } = await serve({ keepAliveMs: 60_000 });
  const echo = await call(url, "echo", { arguments: { text: "hi" } });
  expect(echo.headers.get("content-type")).toContain("application/json");
  expect(await echo.json()).toMatchObject({ result: { content: [{ text: "hi" }] } });
});

test("a client that leaves such a stream ends its call", async () => {
  const { url, gate } = await serve({ keepAliveMs: 20 });
  const gone = new AbortController();
  const response = await call(url, "wait", { arguments: {} }, gone.signal);
  gone.abort();
  await expect(response.text()).rejects.toThrow();
  gate.resolve();
  const next = await call(url, "echo", { arguments: { text: "still here" } });
  expect(await next.text()).toContain("still here");
});

test("AG-UI has the same comments, and tells proxies to pass on each part", async () => {
  const gate = deferred();
  const agUi: AgUiEndpoint = async (_body, _auth, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    await gate.promise;
    response.end("data: {}\n\n");
  };
  const { origin } = await serve({ keepAliveMs: 20, agUi });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${origin}/ag-ui`, { method: "POST", headers, body: "{}" });
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  let text = "";
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.split(": keepalive").length === 3) gate.resolve();
  }
  expect(text).toMatch(/^(: keepalive\n\n){2,}data: \{\}\n\n$/);
});
