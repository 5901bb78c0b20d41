import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, onTestFinished, test } from "vitest";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { runIdOf, untilStatus } from "../../e2e/support.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { INITIALIZE, send } from "../../support/clients-raw.ts";
import { connect as connectTo } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { entry, openGuarded, withTokens } from "./support.ts";

const GUIDE = join(import.meta.dirname, "../../../docs/http.md");

/** What the guide tells to configure, with a token of the test. */
function configured() {
  const [, chapter = ""] = readFileSync(GUIDE, "utf8").split("## Behind a reverse proxy");
  const json = /```json\n([^]*?)```/.exec(chapter)?.[1] ?? "";
  const { http } = ConfigSchema.parse({ dataDir: "/data", ...(JSON.parse(json) as object) });
  return http;
}

/** Passes requests on as the guide tells a proxy to: with the public name, and the client's address added. */
async function openProxy(target: string, clientAddress: string) {
  const { port } = new URL(target);
  const proxy = createServer((request, response) => {
    const given = request.headers["x-forwarded-for"];
    const headers = {
      ...request.headers,
      host: "agent.example.org",
      "x-forwarded-for": [...(given === undefined ? [] : [given]), clientAddress].join(", "),
    };
    const { method, url: path } = request;
    const onward = httpRequest({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return new URL(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`);
}

async function open(clientAddress = "198.51.100.7") {
  const { allowedHosts, trustedProxies } = configured();
  const server = await openGuarded(play({ "Say hello": [{ text: "hello" }] }), {
    allowedHosts,
    trustedProxies,
    refusalsPerMinute: 1,
    authenticator: withTokens(entry("alice-token", "alice")),
  });
  return { server, url: await openProxy(server.url, clientAddress) };
}

test.each(CLIENT_KINDS)("%s works through a proxy that is set up as the guide says", async (kind) => {
  const { url } = await open();
  const init = { requestInit: { headers: { authorization: "Bearer alice-token" } } };
  const transports = { first: () => new FirstHttp(url, init), modern: () => new ModernHttp(url, init) };
  const client = await connectTo(transports, kind);
  await client.watch("deepagent://files/workspace/x");
  const lines: string[] = [];
  const onProgress = (line: string) => void lines.push(line);
  const outcome = await client.call("run_deep_agent", { task: "Say hello" }, { onProgress });
  expect(await untilStatus(client, runIdOf(outcome), "completed")).toMatchObject({ answer: "hello" });
  expect(lines.length).toBeGreaterThan(0);
});

test("an address that the client itself wrote is not its address", async () => {
  const { server, url } = await open();
  const guess = (to: string, forwarded: string) =>
    send(to, {
      body: INITIALIZE,
      headers: { authorization: "Bearer guess", "x-forwarded-for": forwarded },
    });
  expect((await guess(url.href, "192.0.2.1")).status).toBe(401);
  expect((await guess(url.href, "192.0.2.2")).status).toBe(429);
  // Another client of the same proxy is another address.
  const other = await openProxy(server.url, "203.0.113.5");
  expect((await guess(other.href, "192.0.2.1")).status).toBe(401);
});

test("a name that the proxy does not replace is refused all the same", async () => {
  const { server } = await open();
  const headers = { authorization: "Bearer alice-token", host: "evil.example" };
  expect((await send(server.url, { body: INITIALIZE, headers })).status).toBe(403);
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let answer = "";
  socket.setEncoding("utf8").on("data", (part) => (answer += part));
  socket.write("GET http://evil.example/metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
  await once(socket, "close");
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
});
