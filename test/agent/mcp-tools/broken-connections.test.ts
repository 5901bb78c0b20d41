import { describe, expect, it } from "vitest";
import {
  type Exchange,
  type Handler,
  json,
  olderSse,
  ordinary,
  refuse,
  sloppyHttp,
  to,
} from "../../support/sloppy-mcp-server.ts";
import { FINE, POLICY, at, connect, reason, used } from "./connect-to.ts";

describe("a call whose session was lost is made again at once", () => {
  const losses: Array<[source: string, status: number, body: string]> = [
    ["modelcontextprotocol/python-sdk#1676", 404, ""],
    [
      "punkpeye/mcp-remote#106",
      404,
      '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}',
    ],
    [
      "punkpeye/fastmcp#121",
      400,
      '{"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
    ],
    ["DAWNCR0W/affine-mcp-server#301", 400, "Bad Request: No valid session ID or not an initialize request"],
    ["samanhappy/mcphub#427", 400, "Bad Request: Server not initialized"],
    ["modelcontextprotocol/rust-sdk#559", 401, "Unauthorized: Session not found"],
  ];

  /** A server that forgets its sessions before the first call. */
  const forgetful = (status: number, body: string) => {
    let isGone = false;
    let calls = 0;
    const handle: Handler = ({ message, request, response }) => {
      if (message.method === "initialize") response.setHeader("mcp-session-id", isGone ? "two" : "one");
      if (message.method === "tools/call") isGone = true;
      const id = request.headers["mcp-session-id"];
      if (isGone && id === "one")
        return refuse(response, status, body.replace('"id":null', `"id":${String(message.id)}`));
      if (message.method === "tools/call") calls += 1;
      return undefined;
    };
    return { handle, calls: () => calls };
  };

  it.each(losses)("%s: %i %s", async (_source, status, body) => {
    const { handle, calls } = forgetful(status, body);
    const { url } = await sloppyHttp(handle);
    const { call } = connect(at(url));
    expect(await Promise.all([call(), call(), call()])).toEqual([FINE, FINE, FINE]);
    expect(calls()).toBe(3);
  });

  it("spring-projects/spring-ai#2785: over HTTP+SSE, too", async () => {
    let refused = 0;
    const older = olderSse(405, ({ message, response }) =>
      message.method === "tools/call" && refused++ === 0
        ? refuse(response, 404, "Session not found")
        : undefined,
    );
    const { url } = await sloppyHttp(older);
    expect(await used(at(url, { isOlder: true }))).toMatchObject({ answer: FINE });
  });

  it.each([
    ["another error", 400, "Bad Request: no such word"],
    ["a failure", 500, "Session not found"],
  ])("but not after %s", async (_name, status, body) => {
    let calls = 0;
    const { url } = await sloppyHttp(({ message, response }) => {
      if (message.method === "initialize") response.setHeader("mcp-session-id", "one");
      return message.method === "tools/call" && (calls += 1) ? refuse(response, status, body) : undefined;
    });
    const { call } = connect(at(url));
    await expect(call()).rejects.toThrow(body);
    expect(calls).toBe(1);
  });
});

describe("a call whose connection broke", () => {
  const breaks: Array<[name: string, broken: (exchange: Exchange) => boolean]> = [
    ["before the answer", ({ request }) => Boolean(request.socket.destroy())],
    [
      "within the answer",
      ({ request, response }) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "500" });
        response.write('{"jsonrpc":');
        setTimeout(() => request.socket.destroy(), 20);
        return true;
      },
    ],
    ["with a stream that ends", ({ response }) => json(response, ": nothing\n\n", "text/event-stream")],
  ];

  it.each(breaks)("%s is not made again, and others of its server go on", async (_name, broken) => {
    let calls = 0;
    let release = (): void => {};
    const { url } = await sloppyHttp(
      to("tools/call", (exchange) => {
        calls += 1;
        if (calls === 2) return broken(exchange);
        release = () => void json(exchange.response, ordinary(exchange.message));
        return true;
      }),
    );
    const { connection, call } = connect(at(url));
    const other = call();
    await expect.poll(() => calls).toBe(1);
    const error: unknown = await call().catch((thrown: unknown) => thrown);
    expect(connection.reason(error)).toMatch(/^it closed the connection$/);
    release();
    expect(await other).toEqual(FINE);
    expect(calls).toBe(2);
  });

  it.each(breaks)("%s is made again once if it changes nothing", async (_name, broken) => {
    let calls = 0;
    const { url } = await sloppyHttp(
      to("tools/call", (exchange) => (++calls === 1 ? broken(exchange) : undefined)),
    );
    const { call } = connect(at(url));
    expect(await call(true)).toEqual(FINE);
    expect(calls).toBe(2);
  });
});

describe("a server that cannot be used is named with its reason", () => {
  it.each([
    [401, "it needs a token (HTTP 401); set or correct headers.Authorization"],
    [403, "it refused access (HTTP 403); check its headers"],
    [404, "it has no endpoint at this address (HTTP 404); check the path of its url"],
    [405, "it does not accept MCP requests at this address (HTTP 405); check the path of its url"],
    [407, "the proxy in front of it needs a login (HTTP 407); add it to HTTPS_PROXY"],
    [429, "it has had too many requests (HTTP 429); try again later"],
    [302, "it redirects to another address; configure that address"],
    [500, "it answered with HTTP 500: out of words, [hidden]"],
  ])("%i", async (status, text) => {
    const { url } = await sloppyHttp(({ response }) => {
      response.writeHead(status, { location: "https://elsewhere.example/" }).end("out of words, very-secret");
      return true;
    });
    const headers = { "X-Key": "${KEY}" };
    expect(await reason(at(url, { headers }), { KEY: "very-secret" })).toBe(text);
    expect(await reason(at(url, { headers, isOlder: true }), { KEY: "very-secret" })).toBe(
      text.replace(/: out.*/, ""),
    );
  });

  it.each([
    ["http://127.0.0.1:1/mcp", "no response"],
    ["http://no-such-host.invalid/mcp", "its address was not found"],
    ["nowhere", "its url is not a valid address"],
  ])("%s", async (url, text) => {
    const found = await reason(at(url));
    expect([text, "its address could not be looked up; check the network"]).toContain(found);
    expect(await reason(at(url, { isOlder: true }))).toBe(found);
  });

  it("a proxy that Node does not use", async () => {
    expect(await reason(at("http://127.0.0.1:1/mcp"), { HTTPS_PROXY: "http://proxy:3128" })).toBe(
      "no response. HTTPS_PROXY is set; Node uses it with NODE_USE_ENV_PROXY=1, from 22.21 on",
    );
  });

  it("a page instead of MCP, and TLS where there is none", async () => {
    const { url } = await sloppyHttp(({ response }) => json(response, "<title>Welcome</title>", "text/html"));
    expect(await reason(at(url))).toBe("it does not answer in MCP; check its url");
    expect(await reason(at(url.replace("http:", "https:")))).toBe(
      "it does not speak TLS at this address; check the scheme and the port of its url",
    );
  });

  it.each([
    ["process.exit(7)", "its process ended (exit code 7)"],
    [
      'console.error("loading"); console.error("KEY very-secret is missing"); process.exit(1)',
      "its process ended (exit code 1): KEY [hidden] is missing",
    ],
    [
      'require("/home/somebody/project/index.js")',
      "its process ended (exit code 1): Error: Cannot find module '…/index.js'",
    ],
    [
      'console.log("Usage: server FOLDER"); process.exit(2)',
      "its process ended (exit code 2): Usage: server FOLDER",
    ],
    ["process.kill(process.pid)", "its process ended (SIGTERM)"],
  ])("a process that does %s", async (source, text) => {
    const program = {
      command: process.execPath,
      args: ["-e", source],
      env: { KEY: "very-secret" },
      ...POLICY,
    };
    expect(await reason(program)).toBe(text);
  });

  it("a process that asks on its standard output, while it starts", async () => {
    const source = 'console.log("Ok to proceed? (y)"); setInterval(() => undefined, 1000)';
    const program = { command: process.execPath, args: ["-e", source], env: {}, ...POLICY };
    const { connection } = connect(program, {}, 2000);
    const error: unknown = await connection.listTools().catch((thrown: unknown) => thrown);
    expect(connection.reason(error)).toBe(
      "it is still starting; later runs may find it ready (its standard output is not MCP so far: Ok to proceed? (y))",
    );
  });
});
