import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { defined } from "../../../src/core/unknown.ts";
import { tokenVerifier, authInfoOf, ownerOf, principalOf } from "../../../src/server/auth/auth.ts";
import { bearer, INITIALIZE, send } from "../../support/clients-raw.ts";
import { serve as serveFixture } from "../http/support.ts";
import { entry, sha256, withTokens } from "./support.ts";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" });

const reads = entry("alice-reads", "alice", ["read"]);
const authenticator = withTokens(entry("alice-token", "alice"), reads, entry("bob-token", "bob"));
const serve = async (host?: string) => (await serveFixture({ authenticator, ...defined({ host }) })).url;

describe("requests", () => {
  test.each<[string, Record<string, string>]>([
    ["no token", {}],
    ["an unknown token", bearer("carol-token")],
    ["the hash of a token", bearer(sha256("alice-token"))],
    ["an empty token", { authorization: "Bearer " }],
    ["another scheme", { authorization: `Basic ${btoa("alice:alice-token")}` }],
    ["a token in another case", bearer("ALICE-TOKEN")],
  ])("with %s get 401 and a challenge, whatever they ask for", async (_name, headers) => {
    const url = await serve();
    for (const request of [
      { body: INITIALIZE },
      { body: "{" },
      { method: "GET" },
      { method: "DELETE", headers: { "mcp-session-id": "x" } },
    ]) {
      const response = await send(url, { ...request, headers: { ...request.headers, ...headers } });
      expect(response.status).toBe(401);
      expect(response.headers["www-authenticate"]).toMatch(/^Bearer error="invalid_token"/);
      expect(response.body).not.toContain("alice");
    }
    expect((await send(url.replace("/mcp", "/other"), { method: "GET", headers })).status).toBe(401);
  });

  test("a foreign Host is refused before the token is looked at", async () => {
    const url = await serve();
    expect((await send(url, { headers: { ...bearer("x"), host: "attacker.example" } })).status).toBe(403);
  });

  test("a session answers the token that opened it; every other gets what an unknown session gives", async () => {
    const url = await serve();
    const opened = await send(url, { body: INITIALIZE, headers: bearer("alice-token") });
    expect(opened.status).toBe(200);
    const session = { "mcp-session-id": String(opened.headers["mcp-session-id"]) };
    const ping = (token: string, headers: Record<string, string>) =>
      send(url, { body: PING, headers: { ...headers, ...bearer(token) } });
    const unknown = await ping("bob-token", { "mcp-session-id": "unknown" });
    expect(unknown.status).toBe(404);
    for (const token of ["bob-token", "alice-reads"]) {
      const answer = await ping(token, session);
      expect([answer.status, answer.body]).toEqual([404, unknown.body]);
      const ended = await send(url, { method: "DELETE", headers: { ...session, ...bearer(token) } });
      expect(ended.status).toBe(404);
    }
    expect((await ping("alice-token", session)).status).toBe(200);
  });

  test("with authentication the server may listen beyond this machine, and still checks Host", async () => {
    const url = new URL(await serve("0.0.0.0"));
    url.hostname = "127.0.0.1";
    expect((await send(url.href, { body: INITIALIZE })).status).toBe(401);
    expect((await send(url.href, { body: INITIALIZE, headers: bearer("alice-token") })).status).toBe(200);
    const headers = { ...bearer("alice-token"), host: "agent.example" };
    expect((await send(url.href, { body: INITIALIZE, headers })).status).toBe(403);
  });
});

test("the principal and scopes are those of the entry whose hash matches, of no other", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 }),
      fc.string(),
      (tokens, guess) => {
        const entries = tokens.map((token, index) => entry(token, `user${index}`, ["read"]));
        const known = tokenVerifier(() => entries);
        const verify = (token: string) => known(token, { mayAsk: true });
        for (const [index, token] of tokens.entries()) {
          expect(verify(token)).toMatchObject({ extra: { principal: `user${index}` }, scopes: ["read"] });
        }
        if (!tokens.includes(guess)) expect(verify(guess)).toBeUndefined();
      },
    ),
  );
});

test("what is passed on about a request does not hold its token", () => {
  expect(
    JSON.stringify(tokenVerifier(() => [entry("alice-token", "alice")])("alice-token", { mayAsk: true })),
  ).not.toContain("alice-token");
});

test("owners differ by principal and by scopes, not by their order", () => {
  const owner = (principal: string, ...scopes: string[]) => ownerOf(authInfoOf({ principal, scopes }));
  expect(owner("a", "run", "read")).toBe(owner("a", "read", "run"));
  expect(new Set([owner("a", "run"), owner("b", "run"), owner("a", "read"), ownerOf(undefined)]).size).toBe(
    4,
  );
  expect(principalOf(undefined)).toBe("local");
});

test.each([
  [{ sha256: "abc", principal: "alice" }, /SHA-256/],
  [{ sha256: sha256("t"), principal: "" }, /letters/],
  [{ sha256: sha256("t"), principal: "https://issuer#x" }, /letters/],
  [{ sha256: sha256("t"), principal: "alice", scopes: ["admin"] }, /run/],
])("the configuration refuses the entry %j", (token, message) => {
  const parsed = ConfigSchema.safeParse({ dataDir: "/data", http: { tokens: [token] } });
  expect(parsed.error?.message).toMatch(message);
});

test("the configuration refuses one token for two principals", () => {
  const tokens = ["alice", "bob"].map((principal) => ({ sha256: sha256("same"), principal }));
  expect(ConfigSchema.safeParse({ dataDir: "/data", http: { tokens } }).error?.message).toMatch(
    /same sha256/,
  );
});
