import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { TokenConfig } from "../../../src/config/sections.ts";
import {
  tokenVerifier,
  authInfoOf,
  createAuthenticator,
  issuerUnavailable,
  type Authenticator,
} from "../../../src/server/auth/auth.ts";
import { bearer, INITIALIZE, send, sessionHeaders } from "../../support/clients-raw.ts";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { startProgram } from "../../support/harness-process.ts";
import { serve } from "../http/support.ts";
import { entry } from "./support.ts";

const HOUR_MS = 3_600_000;
const CALL = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "wait" } });
const LISTEN = JSON.stringify({
  jsonrpc: "2.0",
  id: 3,
  method: "subscriptions/listen",
  params: {
    notifications: { resourceSubscriptions: ["test://a"] },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});

/** A server with a tool that waits, and a clock that can be moved on. */
async function open(authenticator: Authenticator) {
  let ahead = 0;
  const server = await serve({ authenticator, clock: () => Date.now() + ahead });
  const accept = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const headers = (token: string) => ({ ...bearer(token), ...accept });
  const listening = { "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };
  const startSession = async (token: string) => {
    const opened = await send(server.url, { body: INITIALIZE, headers: headers(token) });
    expect(opened.status).toBe(200);
    return sessionHeaders(opened);
  };
  return {
    ...server,
    pass: (milliseconds: number): void => {
      ahead += milliseconds;
    },
    startSession,
    listen: (token: string, session: Record<string, string>) =>
      fetch(server.url, {
        headers: { ...headers(token), accept: "text/event-stream", ...session },
      }),
    call: (token: string, session: Record<string, string>) =>
      fetch(server.url, { method: "POST", headers: { ...headers(token), ...session }, body: CALL }),
    subscribe: (token: string) =>
      fetch(server.url, { method: "POST", headers: { ...headers(token), ...listening }, body: LISTEN }),
    resume: (token: string, session: Record<string, string>, id: string) =>
      fetch(server.url, {
        headers: { ...headers(token), accept: "text/event-stream", ...session, "last-event-id": id },
      }),
  };
}

/** Tokens `<principal>-<any>` of principals; those of `expiring` for an hour. */
const expiring = createAuthenticator({
  verifiers: [
    (token) =>
      authInfoOf({
        principal: token.split("-")[0] ?? "",
        scopes: ["run", "approve", "read"],
        ...(token.endsWith("-long") ? {} : { expiresAt: (Date.now() + HOUR_MS) / 1000 }),
      }),
  ],
});

/** Reads up to `wanted`; the end of the stream is an answer too. */
async function readUntil(response: Response, wanted: RegExp): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  while (!wanted.test(seen)) {
    const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return `${seen}[end]`;
    seen += value;
  }
  void reader?.cancel();
  return seen;
}

describe("when a token expires", () => {
  test("its streams end, a call that began in time is answered, and other streams stay", async () => {
    const server = await open(expiring);
    const session = await server.startSession("alice-short");
    const stream = await server.listen("alice-short", session);
    const subscription = await server.subscribe("alice-short");
    const lasting = await server.subscribe("alice-long");
    const call = await server.call("alice-short", session);
    await server.entered.promise;
    server.pass(2 * HOUR_MS);
    await stream.text();
    expect(await subscription.text()).toContain("subscriptions/acknowledged");
    server.gate.resolve();
    expect(await call.text()).toContain("waited");
    expect(await readUntil(lasting, /acknowledged/)).not.toContain("[end]");
  });

  test("the stream goes on with the next token of the same principal, and of nobody else", async () => {
    const server = await open(expiring);
    const session = await server.startSession("alice-short");
    const call = await server.call("alice-short", session);
    const id = /id: (\S+)/.exec(await readUntil(call, /id: \S+\n/))?.[1] ?? "";
    await server.entered.promise;
    server.gate.resolve();
    const stranger = await server.resume("bob-short", session, id);
    const unknown = await server.resume("bob-short", { ...session, "mcp-session-id": "unknown" }, id);
    expect([stranger.status, await stranger.text()]).toEqual([404, await unknown.text()]);
    const resumed = await server.resume("alice-next", session, id);
    expect(await readUntil(resumed, /waited/)).not.toContain("[end]");
  });
});

describe("when a token is taken away", () => {
  const setUp = async () => {
    const tokens: TokenConfig[] = [entry("alice-token", "alice"), entry("bob-token", "bob")];
    let silent = false;
    const known = tokenVerifier(() => tokens);
    const authenticator = createAuthenticator({
      verifiers: [
        (token, options) => {
          if (silent) throw issuerUnavailable();
          return known(token, options);
        },
      ],
    });
    const server = await open(authenticator);
    return { server, tokens, silence: (value: boolean) => void (silent = value) };
  };

  test("all that is open with it ends, and nothing else", async () => {
    const { server, tokens } = await setUp();
    const session = await server.startSession("alice-token");
    const stream = await server.listen("alice-token", session);
    const subscription = await server.subscribe("alice-token");
    const call = await server.call("alice-token", session);
    const other = await server.subscribe("bob-token");
    await server.entered.promise;
    await server.recheck();
    tokens.splice(0, 1);
    await server.recheck();
    await stream.text();
    await subscription.text();
    expect(await call.text()).not.toContain("waited");
    expect(await readUntil(other, /acknowledged/)).not.toContain("[end]");
    expect((await server.listen("alice-token", session)).status).toBe(401);
  });

  test("also when it is there still but allows less, or belongs to somebody else", async () => {
    for (const changed of [entry("alice-token", "alice", ["run"]), entry("alice-token", "carol")]) {
      const { server, tokens } = await setUp();
      const subscription = await server.subscribe("alice-token");
      tokens[0] = changed;
      await server.recheck();
      await subscription.text();
    }
  });

  test("what nobody can tell ends nothing", async () => {
    const { server, silence } = await setUp();
    const subscription = await server.subscribe("alice-token");
    silence(true);
    await server.recheck();
    silence(false);
    await server.recheck();
    expect(await readUntil(subscription, /acknowledged/)).not.toContain("[end]");
  });
});

test("a running server follows its configuration: a token that is taken out ends its streams", async () => {
  const home = await openHome({ think: play({}) });
  const config = join(home.workspace, "../config.json");
  const configure = (...tokens: TokenConfig[]): void =>
    writeFileSync(config, JSON.stringify({ http: { port: 0, tokens } }));
  configure(entry("alice-token", "alice"), entry("bob-token", "bob"));
  const env = { ...home.env, DEEPAGENT_LOG_LEVEL: "warn" };
  const child = await startProgram(["serve", "--http", "--config", config], env);
  const find = (): string => /Serving MCP at (\S+)/.exec(child.errors())?.[1] ?? "";
  await expect.poll(find).not.toBe("");
  const opened = await send(find(), { body: INITIALIZE, headers: bearer("alice-token") });
  const session = { "mcp-session-id": String(opened.headers["mcp-session-id"]) };
  const stream = await fetch(find(), {
    headers: { ...bearer("alice-token"), ...session, accept: "text/event-stream" },
  });
  expect(stream.status).toBe(200);
  writeFileSync(config, "{ half a file");
  await expect.poll(() => child.errors()).toContain("config.not_reloaded");
  configure(entry("bob-token", "bob"));
  await stream.text();
  expect((await send(find(), { body: INITIALIZE, headers: bearer("alice-token") })).status).toBe(401);
  expect((await send(find(), { body: INITIALIZE, headers: bearer("bob-token") })).status).toBe(200);
});
