import { once } from "node:events";
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { accepts } from "../../../src/server/http/request.ts";
import { INITIALIZE, send, sessionHeaders, type RawRequest } from "../../support/clients-raw.ts";
import { entry, withTokens } from "../auth/support.ts";
import { serve } from "./support.ts";

const message = (method: string, params: object = {}, id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });

/** The headers of a session that was opened. */
const session = async (url: string) => sessionHeaders(await send(url, { body: INITIALIZE }));

/** Where it was seen, or why; what differs from a usual `initialize`; the status. */
type Row = readonly [source: string, request: RawRequest & { path?: string }, status: number];
const accept = (value: string): RawRequest => ({ headers: { accept: value } });
const type = (value: string): RawRequest => ({ headers: { "content-type": value } });
const EARLIER = "11111111-1111-4111-8111-111111111111";

const ODD: readonly Row[] = [
  ["modelcontextprotocol/csharp-sdk#429", accept("*/*"), 200],
  ["ranges of types", accept("application/*, text/*"), 200],
  ["capitals", accept("APPLICATION/JSON, Text/Event-Stream"), 200],
  ["qualities", accept("application/json;q=0.9, text/event-stream;q=0.8"), 200],
  ["modelcontextprotocol/python-sdk#2349", accept("text/event-stream"), 200],
  ["no stream", accept("application/json"), 406],
  ["a stream of no quality", accept("*/*, text/event-stream;q=0"), 406],
  ["another type", accept("text/html"), 406],
  ["a charset", type("application/json; charset=utf-8"), 200],
  ["capitals in the type", type("Application/JSON;Charset=UTF-8"), 200],
  ["a form, which pages send without asking", type("text/plain"), 415],
  ["open-webui/mcpo#209", { path: "/mcp/" }, 200],
  ["a query behind the slash", { path: "/mcp/?x=1" }, 200],
  ["two slashes", { path: "/mcp//" }, 404],
  ["below the endpoint", { path: "/mcp/sse" }, 404],
  ["diegosouzapw/OmniRoute#5957", { headers: { "mcp-session-id": EARLIER } }, 200],
  ["an empty session", { headers: { "mcp-session-id": "" } }, 200],
  ["a revision of an earlier session", { headers: { "mcp-protocol-version": "2024-11-05" } }, 200],
  ["a revision that does not exist", { headers: { "mcp-protocol-version": "2030-01-01" } }, 200],
  ["a revision without sessions", { headers: { "mcp-protocol-version": "2026-07-28" } }, 200],
  ["an empty revision", { headers: { "mcp-protocol-version": "" } }, 200],
  ["a byte order mark", { body: `\uFEFF${INITIALIZE}` }, 200],
  ["no handshake", { body: message("ping") }, 400],
];

test.each(ODD)("%s: %j is answered with %i", async (_source, { path = "/mcp", ...odd }, status) => {
  const { url } = await serve();
  const response = await send(url.replace("/mcp", path), { body: INITIALIZE, ...odd });
  expect(response.status).toBe(status);
  if (status === 200) expect(response.headers["mcp-session-id"]).toMatch(/^(?!1111)/);
});

test("a request without Accept accepts everything", async () => {
  const { url } = await serve();
  const headers = { "content-type": "application/json" };
  const [response] = await once(request(url, { method: "POST", headers }).end(INITIALIZE), "response");
  expect(response.statusCode).toBe(200);
  response.resume();
});

test.each([
  ["text/event-stream", true],
  ["text/*;q=0, text/event-stream", true],
  ["text/event-stream;q=0.0, */*", false],
  ["text/event-stream; q=1.000", true],
  ["*/*;q=0", false],
  ["", false],
])("Accept: %s covers a stream: %s", (header, isCovered) => {
  expect(accepts(header, "text/event-stream")).toBe(isCovered);
});

describe("wrong messages", () => {
  test.each<[source: string, body: string, code: number, id: unknown]>([
    ["elgorro/aiquila#442", '{"jsonrpc":"2.0","id":4,"method":"ping","params":"x"}', -32_602, 4],
    ["no version", '{"id":4,"method":"ping"}', -32_600, 4],
    ["an id that is null", '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32_600, null],
    ["a notification of another version", '{"method":"notifications/initialized"}', -32_600, null],
    ["an empty batch", "[]", -32_600, null],
    ["initialize with text for a client", message("initialize", { clientInfo: "x" }, 4), -32_602, 4],
  ])("%s: %s is answered with its id", async (_source, body, code, id) => {
    const { url } = await serve();
    const headers = await session(url);
    const response = await send(url, { headers, body });
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body)).toMatchObject({ id, error: { code } });
  });

  test("params that are null or a list are none", async () => {
    const { url } = await serve();
    const headers = await session(url);
    for (const params of ["null", "[]"]) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`;
      expect((await send(url, { headers, body })).body).toContain('"tools":[');
    }
  });

  test("one in a batch leaves the others as they are", async () => {
    const { url } = await serve();
    const headers = await session(url);
    const body = `[${message("ping", {}, 1)},{"id":2,"method":"ping"},${message("tools/list", {}, 3)}]`;
    const answers = (await send(url, { headers, body })).body.match(/"id":\d/g) ?? [];
    expect(answers.toSorted()).toEqual(['"id":1', '"id":2', '"id":3']);
    const notified = await send(url, {
      headers,
      body: '[{"jsonrpc":"2.0","method":"notifications/initialized"},{"id":2,"method":"ping"}]',
    });
    expect(JSON.parse(notified.body)).toMatchObject([{ id: 2, error: { code: -32_600 } }]);
  });
});

describe("a new stream takes the place of one that a proxy still holds", () => {
  const open = (url: string, headers: Record<string, string>) =>
    fetch(url, { headers: { ...headers, accept: "text/event-stream" } });

  test("kaeawc/auto-mobile#1942: the stream of a session", async () => {
    const { url } = await serve();
    const headers = await session(url);
    const [first, second] = [await open(url, headers), await open(url, headers)];
    expect([first.status, second.status]).toEqual([200, 200]);
    // The earlier one ends.
    expect(await first.text()).toBe("");
    const third = await open(url, headers);
    await second.text();
    await third.body?.cancel();
  });

  test("the stream of a call, resumed while its first answer is open", async () => {
    const { url, gate, entered } = await serve();
    const headers = await session(url);
    const held = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "*/*" },
      body: message("tools/call", { name: "wait", arguments: {} }, 5),
    });
    const reader = held.body?.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = (await reader?.read()) ?? {};
    await entered.promise;
    const last = /id: (\S+)/.exec(value)?.[1] ?? "";
    const resumed = await open(url, { ...headers, "last-event-id": last });
    expect(resumed.status).toBe(200);
    expect(await reader?.read()).toEqual({ done: true, value: undefined });
    const again = await open(url, { ...headers, "last-event-id": last });
    await resumed.text();
    gate.resolve();
    expect(await again.text()).toContain("waited");
  });
});

describe("metadata", () => {
  const documents = new Map([["/.well-known/oauth-protected-resource/mcp", { resource: "x" }]]);
  test.each([
    ["xpzouying/xiaohongshu-mcp#636", "/.well-known/oauth-authorization-server"],
    ["akutishevsky/nutrition-mcp#51", "/mcp/.well-known/oauth-authorization-server"],
    ["outline/outline#11572", "/.well-known/openid-configuration/mcp"],
  ])("%s: %s is 404 as JSON, without a token", async (_source, path) => {
    const authenticator = withTokens(entry("alice-token", "alice"));
    const { url } = await serve({ authenticator, documents, allowedOrigins: ["https://app.example"] });
    const origin = "https://app.example";
    const response = await send(url.replace("/mcp", path), { method: "GET", headers: { origin } });
    expect([response.status, response.headers["content-type"]]).toEqual([404, "application/json"]);
    expect(JSON.parse(response.body)).toEqual({ error: "not_found" });
    expect(response.headers["access-control-allow-origin"]).toBe(origin);
    expect(response.headers["www-authenticate"]).toBeUndefined();
  });

  test.each(["GET", "HEAD"])("%s finds a document that is there, with or without a slash", async (method) => {
    const { url } = await serve({ documents });
    for (const path of documents.keys()) {
      for (const address of [path, `${path}/`]) {
        const { status, headers } = await send(url.replace("/mcp", address), { method });
        expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
      }
    }
  });
});
