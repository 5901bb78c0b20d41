import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import type { HttpOptions } from "../../../src/server/http/http.ts";
import { INITIALIZE, send } from "../../support/clients-raw.ts";
import { entry, withTokens } from "../auth/support.ts";
import { serve as serveFixture } from "./support.ts";

async function serve(options: Partial<HttpOptions> = {}) {
  const named = { allowedHosts: ["agent.example"], allowedOrigins: ["app.example"] };
  const server = await serveFixture({ ...named, ...options });
  return { ...server, port: Number(new URL(server.url).port) };
}

interface Raw {
  socket: Socket;
  /** All that came in until the server closed the connection. */
  closed: Promise<string>;
  seen(): string;
}

function dial(port: number): Raw {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8").on("data", (part) => (text += part));
  // A reset is a way to close, too.
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const closed = new Promise<string>((resolve) => void socket.once("close", () => resolve(text)));
  return { socket, closed, seen: () => text };
}

const head = (lines: readonly string[], { method = "POST", path = "/mcp" } = {}): string =>
  [`${method} ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n");
const HOST = "Host: 127.0.0.1";
const JSON_TYPE = "Content-Type: application/json";
const ACCEPT = "Accept: application/json, text/event-stream";
const FRAMES = [HOST, JSON_TYPE, ACCEPT];

describe("a client that sends", () => {
  test.each<[string, string]>([
    ["its headers without an end", `POST /mcp HTTP/1.1\r\n${HOST}\r\nX-Slow: `],
    ["no body after its headers", head([...FRAMES, "Content-Length: 100"])],
    ["a body without an end", `${head([...FRAMES, "Transfer-Encoding: chunked"])}5\r\n{"a":\r\n`],
  ])("%s is cut off, and others are served meanwhile", async (_name, text) => {
    const { url, port } = await serve({ receiveMs: 200 });
    const slow = Array.from({ length: 20 }, () => dial(port));
    for (const { socket } of slow) socket.write(text);
    // On a busy machine anybody's request may take too long.
    const served = async () => (await send(url, { body: INITIALIZE })).status;
    await expect.poll(served).toBe(200);
    for (const { closed } of slow) expect(await closed).toMatch(/^(HTTP\/1\.1 408 |$)/);
    await expect.poll(served).toBe(200);
  });

  test("headers without limit gets 431", async () => {
    const { port } = await serve();
    const { socket, closed } = dial(port);
    socket.write(head([HOST, `X-Large: ${"x".repeat(40_000)}`]));
    expect(await closed).toMatch(/^HTTP\/1\.1 431 /);
  });

  test.each<[string, readonly string[], string]>([
    ["two lengths", ["Content-Length: 2", "Content-Length: 3"], "{}"],
    ["a length and chunks", ["Content-Length: 2", "Transfer-Encoding: chunked"], "0\r\n\r\n"],
    ["a chunk of a size that is none", ["Transfer-Encoding: chunked"], "zz\r\n"],
    ["a header without a name", [": x", "Content-Length: 2"], "{}"],
  ])("%s gets 400 and no second request", async (_name, lines, body) => {
    const { port } = await serve();
    const { socket, closed } = dial(port);
    socket.write(head([...FRAMES, ...lines]) + body + head([HOST], { method: "GET", path: "/healthz" }));
    const answer = await closed;
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).not.toContain("ok\n");
  });

  test.each([
    ["Host: evil.example"],
    ["Authorization: Bearer bob-token"],
    ["Content-Type: text/plain"],
    ["Mcp-Session-Id: other"],
    ["MCP-Protocol-Version: 2025-06-18"],
    ["Mcp-Method: tools/list"],
    ["Mcp-Name: other"],
    ["Last-Event-ID: 2"],
    ["Origin: http://evil.example"],
    ["Content-Encoding: gzip"],
  ])("a second %s gets 400", async (line) => {
    const { port } = await serve({ authenticator: withTokens(entry("alice-token", "alice")) });
    const name = line.split(":")[0] ?? "";
    const own = { Host: HOST, "Content-Type": JSON_TYPE, Origin: "Origin: http://localhost" };
    const first: Record<string, string> = { ...own, Authorization: "Authorization: Bearer alice-token" };
    const others = Object.entries(first).flatMap(([known, value]) => (known === name ? [] : [value]));
    const { socket, closed } = dial(port);
    const lines = [...others, first[name] ?? `${name}: x`, line, ACCEPT, "Connection: close"];
    socket.write(head([...lines, `Content-Length: ${INITIALIZE.length}`]) + INITIALIZE);
    expect(await closed).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("several requests at once on one connection gets the answers in their order", async () => {
    const { port } = await serve();
    const { socket, seen } = dial(port);
    const post = (body: string): string => head([...FRAMES, `Content-Length: ${body.length}`]) + body;
    const probe = head([HOST], { method: "GET", path: "/healthz" });
    socket.write(post("{") + probe + post(INITIALIZE) + probe);
    await expect
      .poll(() => seen().match(/HTTP\/1\.1 \d+/g))
      .toEqual(["HTTP/1.1 400", "HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200"]);
    const answer = seen();
    expect(answer.indexOf("-32700")).toBeLessThan(answer.indexOf("protocolVersion"));
    expect(answer.indexOf("protocolVersion")).toBeLessThan(answer.lastIndexOf("ok\n"));
  });

  test.each(["gzip", "br", "deflate", "GZIP", "identity, gzip"])(
    "a body in %s gets 415",
    async (encoding) => {
      const { url } = await serve();
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
      const refused = await send(url, { body: bomb, headers: { "content-encoding": encoding } });
      expect(refused.status).toBe(415);
      expect(refused.headers["accept-encoding"]).toBe("identity");
      const plain = await send(url, { body: INITIALIZE, headers: { "content-encoding": "identity" } });
      expect(plain.status).toBe(200);
    },
  );

  test("bytes that are no UTF-8 gets 400 instead of other text than it sent", async () => {
    const { url } = await serve();
    const body = Buffer.from(INITIALIZE.replace("raw", "r\u00e9"), "latin1");
    expect((await send(url, { body })).status).toBe(400);
    const marked = Buffer.from(`\ufeff${INITIALIZE}`);
    expect((await send(url, { body: marked })).status).toBe(200);
  });
});

describe("methods", () => {
  test.each(["HEAD", "OPTIONS", "PUT", "PATCH", "TRACE"])("%s on the endpoint gets 405", async (method) => {
    const { url } = await serve();
    const answer = await send(url, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe("GET, POST, DELETE");
  });

  test("HEAD of a probe has no body", async () => {
    const { url } = await serve();
    const answer = await send(url.replace("/mcp", "/healthz"), { method: "HEAD" });
    expect([answer.status, answer.body]).toEqual([200, ""]);
  });
});

describe("pages of other origins", () => {
  const preflight = (url: string, origin: string) =>
    send(url, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, mcp-session-id",
      },
    });

  test("may read answers when they are configured, after asking without a token", async () => {
    const { url } = await serve({ authenticator: withTokens(entry("alice-token", "alice")) });
    const origin = "https://app.example";
    const asked = await preflight(url, origin);
    expect(asked.status).toBe(204);
    expect(asked.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, DELETE",
      vary: "Origin",
    });
    expect(asked.headers["access-control-allow-headers"]).toContain("mcp-session-id");
    expect(asked.headers["access-control-allow-credentials"]).toBeUndefined();
    const bearer = { origin, authorization: "Bearer alice-token" };
    const opened = await send(url, { body: INITIALIZE, headers: bearer });
    expect(opened.status).toBe(200);
    expect(opened.headers["access-control-allow-origin"]).toBe(origin);
    expect(opened.headers["access-control-expose-headers"]).toContain("mcp-session-id");
    const refused = await send(url, { body: INITIALIZE, headers: { origin } });
    expect(refused.status).toBe(401);
    expect(refused.headers["access-control-allow-origin"]).toBe(origin);
  });

  test.each(["http://localhost:3000", "http://127.0.0.1"])("are not let in from %s", async (origin) => {
    const { url } = await serve();
    const asked = await preflight(url, origin);
    expect(asked.status).toBe(204);
    expect(Object.keys(asked.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test.each(["https://evil.example", "null", "https://app.example.evil.example"])(
    "are refused from %s",
    async (origin) => {
      const { url } = await serve();
      expect((await preflight(url, origin)).status).toBe(403);
    },
  );
});

describe("sessions", () => {
  test("have ids that the server makes, whatever a client proposes", async () => {
    const { url } = await serve();
    const proposed = { "mcp-session-id": "11111111-1111-4111-8111-111111111111" };
    const ids = await Promise.all(
      Array.from({ length: 10 }, () => send(url, { body: INITIALIZE, headers: proposed })),
    );
    const made = new Set([
      ...ids.map(({ headers }) => headers["mcp-session-id"]),
      proposed["mcp-session-id"],
    ]);
    expect(made.size).toBe(11);
  });
});

test("while the server closes, an open connection is told to go elsewhere", async () => {
  const { port, close } = await serve();
  const { socket, seen, closed } = dial(port);
  const probe = head([HOST], { method: "GET", path: "/healthz" });
  socket.write(probe);
  await expect.poll(seen).toContain("ok\n");
  // Written in one go with a request that is being answered, so that the connection is in use.
  socket.write(head([...FRAMES, `Content-Length: ${INITIALIZE.length}`]));
  const closing = close();
  socket.write(INITIALIZE);
  await closing;
  expect((await closed).slice(seen().indexOf("ok\n"))).not.toContain("protocolVersion");
});

test("what a proxy says about the request is not believed", async () => {
  const { url } = await serve();
  const forged = {
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
    "x-forwarded-for": "10.0.0.1",
    forwarded: "for=10.0.0.1;host=evil.example;proto=https",
    "x-original-url": "/metrics",
    "x-http-method-override": "DELETE",
  };
  const plain = await send(url, { body: "{" });
  const answer = await send(url, { body: "{", headers: forged });
  expect([answer.status, answer.body]).toEqual([plain.status, plain.body]);
  // Nor does a forwarded name make a foreign Host acceptable.
  const headers = { ...forged, "x-forwarded-host": "agent.example", host: "evil.example" };
  expect((await send(url, { body: INITIALIZE, headers })).status).toBe(403);
  expect((await send(url, { body: INITIALIZE, headers: { host: "agent.example" } })).status).toBe(200);
});
