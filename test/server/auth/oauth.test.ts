import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { authenticationOf } from "../../../src/commands/serve/over-http.ts";
import { ConfigSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { send } from "../../support/clients-raw.ts";
import { play } from "../../support/harness-brain.ts";
import { runIdOf, untilStatus } from "../../e2e/support.ts";
import { openGuarded, sha256 } from "./support.ts";

const RESOURCE = "https://agent.example/mcp";
const HOUR = 3600;
const think = play({ "Say hello": [{ text: "hello" }] });
const now = (): number => Math.floor(Date.now() / 1000);

let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let foreignKeys: typeof keys;
beforeAll(async () => {
  [keys, foreignKeys] = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256")]);
});

/** An authorization server on this machine: publishes a key and signs what it is told to. */
async function openIssuer() {
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: "k1", alg: "ES256", use: "sig" };
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ keys: [jwk] }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const claims = { iss: issuer, aud: RESOURCE, sub: "alice", scope: "run approve read", exp: now() + HOUR };
  return {
    issuer,
    /** `undefined` leaves a claim out. */
    token: (changes: JWTPayload = {}, key = keys.privateKey) =>
      new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(key),
  };
}

async function open(http: Partial<ConfigInput["http"]> = {}) {
  const authority = await openIssuer();
  const { issuer } = authority;
  const oauth = { issuer, jwksUrl: `${issuer}/jwks`, resource: RESOURCE };
  const config = ConfigSchema.parse({ dataDir: "/data", http: { oauth, ...http } });
  const { authenticator, ...options } = await authenticationOf(config.http, silentLogger);
  const server = await openGuarded(think, { authenticator, ...options });
  const ask = (token: string) =>
    send(server.url, { body: INITIALIZE, headers: { authorization: `Bearer ${token}` } });
  return { ...authority, server, ask };
}

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

describe("an access token", () => {
  test.each<[string, JWTPayload]>([
    ["of another issuer", { iss: "https://other.example" }],
    ["for another audience", { aud: "https://other.example/mcp" }],
    ["without an audience", { aud: undefined }],
    ["that has expired", { exp: now() - HOUR }],
    ["without expiry", { exp: undefined }],
    ["that is not valid yet", { nbf: now() + HOUR }],
    ["without a subject", { sub: undefined }],
    ["with an empty subject", { sub: "" }],
  ])("%s is refused with the way to a better one", async (_name, changes) => {
    const { token, ask } = await open();
    expect((await ask(await token())).status).toBe(200);
    const refused = await ask(await token(changes));
    expect(refused.status).toBe(401);
    expect(refused.headers["www-authenticate"]).toContain(
      'resource_metadata="https://agent.example/.well-known/oauth-protected-resource/mcp"',
    );
  });

  test("that was signed by someone else, or by nobody, is refused", async () => {
    const { token, ask } = await open();
    expect((await ask(await token({}, foreignKeys.privateKey))).status).toBe(401);
    const [, payload] = (await token()).split(".");
    const header = (alg: string): string => Buffer.from(JSON.stringify({ alg })).toString("base64url");
    expect((await ask(`${header("none")}.${payload}.`)).status).toBe(401);
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(keys.publicKey)));
    const shared = await new SignJWT({ iss: "x" }).setProtectedHeader({ alg: "HS256" }).sign(secret);
    expect((await ask(`${header("HS256")}.${payload}.${shared.split(".")[2]}`)).status).toBe(401);
    expect((await ask("not.a.token")).status).toBe(401);
  });

  test.each<[JWTPayload]>([[{ scope: "openid profile" }], [{ scope: undefined }], [{ scope: "RUN" }]])(
    "with scopes %j may do nothing here",
    async (changes) => {
      const { token, ask } = await open();
      const refused = await ask(await token(changes));
      expect(refused.status).toBe(403);
      expect(refused.headers["www-authenticate"]).toContain('error="insufficient_scope"');
    },
  );
});

test("without the issuer's keys the server says that it is at fault, not the token", async () => {
  const { token, issuer } = await openIssuer();
  const oauth = { issuer, jwksUrl: "http://127.0.0.1:1/jwks", resource: RESOURCE };
  const { http } = ConfigSchema.parse({ dataDir: "/data", http: { oauth } });
  const { authenticator } = await authenticationOf(http, silentLogger);
  const outcome = await authenticator!.authenticate(`Bearer ${await token()}`);
  expect(outcome).toMatchObject({ ok: false, response: { status: 500 } });
});

test("anyone may read which authorization server to ask", async () => {
  const { server, issuer } = await open();
  const { origin } = new URL(server.url);
  for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
    const found = await send(`${origin}${path}`, { method: "GET" });
    expect(found.status).toBe(200);
    expect(JSON.parse(found.body)).toMatchObject({
      resource: RESOURCE,
      authorization_servers: [issuer],
      scopes_supported: ["run", "approve", "read"],
    });
    expect((await send(`${origin}${path}`, { body: "{}" })).status).toBe(405);
  }
  const named = { method: "GET", headers: { host: "agent.example" } };
  expect((await send(`${origin}/.well-known/oauth-protected-resource`, named)).status).toBe(200);
});

test.each(CLIENT_KINDS)("%s: a subject has runs of its own, and scopes by its token", async (kind) => {
  const { server, token } = await open({ tokens: [{ sha256: sha256("alice-token"), principal: "alice" }] });
  const alice = await server.connect(await token(), kind);
  const runId = runIdOf(await alice.call("run_deep_agent", { task: "Say hello" }));
  await untilStatus(alice, runId, "completed");
  const fresh = await server.connect(await token({ scope: undefined, scp: ["read"] }), kind);
  expect(await untilStatus(fresh, runId, "completed")).toMatchObject({ answer: "hello" });
  expect((await fresh.call("run_deep_agent", { task: "Say hello" })).text).toContain("scope run");
  for (const stranger of [await token({ sub: "bob" }), "alice-token"]) {
    const client = await server.connect(stranger, kind);
    expect((await client.call("check_deep_agent", { run_id: runId })).isError).toBe(true);
  }
});

test.each(["http://issuer.example", "ftp://127.0.0.1", "issuer", "https://issuer.example/#x"])(
  "the configuration refuses the issuer %s",
  (issuer) => {
    const oauth = { issuer, jwksUrl: "https://issuer.example/jwks", resource: RESOURCE };
    expect(ConfigSchema.safeParse({ dataDir: "/data", http: { oauth } }).success).toBe(false);
  },
);
