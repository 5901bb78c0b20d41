import { describe, expect, test } from "vitest";
import {
  INITIALIZE,
  send,
  sessionHeaders,
  type RawRequest,
  type RawResponse,
} from "../../support/clients-raw.ts";
import { entry, withTokens } from "../auth/support.ts";
import { serve } from "./support.ts";

const errorOf = ({ body }: RawResponse): unknown => (JSON.parse(body) as { error: unknown }).error;

const openSession = (url: string) => send(url, { body: INITIALIZE });

const call = (name: string, id = 2): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: { text: "hi" } } });

describe("guards", () => {
  test.each(["0.0.0.0", "::", "192.168.1.1", "example.org"])("does not start on %s", async (host) => {
    await expect(serve({ host })).rejects.toMatchObject({ code: "http_host_not_loopback" });
  });

  test("says which port is taken", async () => {
    const { url } = await serve();
    const { port } = new URL(url);
    await expect(serve({ port: Number(port) })).rejects.toThrow(`${port}: the port is in use`);
  });

  test.each([
    ["a foreign Host", "allowedHosts", { host: "attacker.example" }],
    ["a foreign Origin", "allowedOrigins", { origin: "https://attacker.example" }],
    ["an opaque Origin", "allowedOrigins", { origin: "null" }],
  ])("answers %s with 403 and the setting %s before anything else", async (_name, setting, headers) => {
    const { url } = await serve();
    const response = await send(url, { headers, body: "not json" });
    expect(response.status).toBe(403);
    expect(response.body).toContain(`http.${setting}`);
  });

  test("accepts loopback and configured hosts and origins with any port", async () => {
    const { url } = await serve({ allowedHosts: ["agent.test"], allowedOrigins: ["agent.test"] });
    for (const name of ["localhost:1", "127.0.0.1", "[::1]:9", "agent.test:8443"]) {
      const headers = { host: name, origin: `http://${name}` };
      expect((await send(url, { headers, body: INITIALIZE })).status).toBe(200);
    }
  });
});

describe("malformed requests", () => {
  test.each<[string, number, RawRequest, object]>([
    ["bad JSON", 400, { body: "{" }, { code: -32700 }],
    ["an empty body", 400, {}, { code: -32700 }],
    ["another media type", 415, { body: "{}", headers: { "content-type": "text/plain" } }, { code: -32000 }],
    ["no session", 400, { body: call("echo") }, { code: -32000 }],
    ["a GET without a session", 400, { method: "GET" }, { code: -32000 }],
    [
      "an unknown session",
      404,
      { body: call("echo"), headers: { "mcp-session-id": "x" } },
      { code: -32001, message: "Session not found" },
    ],
    ["a declared body over 768 KiB", 413, { body: Buffer.alloc(768 * 1024 + 1, " ") }, { code: -32000 }],
    [
      "a streamed body over 768 KiB",
      413,
      { body: Buffer.alloc(768 * 1024 + 1, " "), chunked: true },
      { code: -32000 },
    ],
  ])("%s is answered with %i", async (_name, status, request, error) => {
    const { url } = await serve();
    const response = await send(url, request);
    expect(response.status).toBe(status);
    expect(errorOf(response)).toMatchObject(error);
    expect((await openSession(url)).status).toBe(200);
  });

  test("there is nothing beside the endpoint", async () => {
    const { url } = await serve();
    expect((await send(url.replace("/mcp", "/"), { body: "{}" })).status).toBe(404);
    expect((await send(`${url}?x=1`, { body: INITIALIZE })).status).toBe(200);
  });

  test("an initialize that is refused leaves no session", async () => {
    const { url } = await serve({ sessions: 1 });
    const refused = await send(url, { body: INITIALIZE, headers: { accept: "text/html" } });
    expect(refused.status).toBe(406);
    const first = await openSession(url);
    expect(first.status).toBe(200);
    expect((await send(url, { headers: sessionHeaders(first), body: call("echo") })).status).toBe(200);
  });
});

describe("sessions", () => {
  test("end with DELETE", async () => {
    const { url } = await serve();
    const headers = sessionHeaders(await openSession(url));
    expect((await send(url, { headers, body: call("echo") })).body).toContain("hi");
    expect((await send(url, { method: "DELETE", headers })).status).toBe(200);
    expect((await send(url, { headers, body: call("echo") })).status).toBe(404);
  });

  test("the one idle for longest makes room for a new one", async () => {
    let now = 0;
    const { url } = await serve({ sessions: 2, clock: () => now });
    const first = sessionHeaders(await openSession(url));
    now = 1;
    const second = sessionHeaders(await openSession(url));
    now = 60_001;
    expect((await send(url, { headers: first, body: call("echo") })).status).toBe(200);
    const third = sessionHeaders(await openSession(url));
    expect((await send(url, { headers: second, body: call("echo") })).status).toBe(404);
    expect((await send(url, { headers: first, body: call("echo") })).status).toBe(200);
    expect((await send(url, { headers: third, body: call("echo") })).status).toBe(200);
  });

  test("those of one principal make room for each other only", async () => {
    const authenticator = withTokens(entry("a", "alice"), entry("b", "bob"));
    let now = 0;
    const { url } = await serve({ authenticator, sessionsPerPrincipal: 1, clock: () => now });
    const open = async (token: string) => {
      const authorization = `Bearer ${token}`;
      const opened = await send(url, { body: INITIALIZE, headers: { authorization } });
      return { ...sessionHeaders(opened), authorization };
    };
    const bob = await open("b");
    const first = await open("a");
    now = 60_000;
    const second = await open("a");
    expect((await send(url, { headers: first, body: call("echo") })).status).toBe(404);
    expect((await send(url, { headers: second, body: call("echo") })).status).toBe(200);
    expect((await send(url, { headers: bob, body: call("echo") })).status).toBe(200);
  });

  test("clients that are at work never push each other out: one too many is told when to come back", async () => {
    let now = 0;
    const { url } = await serve({ sessions: 3, sessionsPerPrincipal: 2, clock: () => now });
    const opened = [sessionHeaders(await openSession(url)), sessionHeaders(await openSession(url))];
    for (const _round of [1, 2, 3]) {
      now += 45_000;
      for (const headers of opened) {
        expect((await send(url, { headers, body: call("echo") })).status).toBe(200);
      }
      const refused = await openSession(url);
      expect(refused.status).toBe(429);
      expect(refused.headers["retry-after"]).toBe("60");
      expect(errorOf(refused)).toMatchObject({ message: expect.stringContaining("2 sessions, all in use") });
    }
    now += 60_000;
    expect((await openSession(url)).status).toBe(200);
  });

  test("one with a request in it is not evicted", async () => {
    const { url, gate, entered } = await serve({ sessions: 1 });
    const headers = sessionHeaders(await openSession(url));
    const waiting = send(url, { headers, body: call("wait") });
    await entered.promise;
    const refused = await openSession(url);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "60"]);
    gate.resolve();
    expect((await waiting).body).toContain("waited");
  });
});

test("closing ends open calls and streams and frees the port", async () => {
  const server = await serve();
  const headers = sessionHeaders(await openSession(server.url));
  const waiting = send(server.url, { headers, body: call("wait") });
  const listening = fetch(server.url, { headers: { ...headers, accept: "text/event-stream" } });
  await server.entered.promise;
  const stream = await listening;
  await server.close();
  await waiting;
  await stream.text();
  await serve({ port: Number(new URL(server.url).port) });
});
