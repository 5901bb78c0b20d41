import { describe, expect, test } from "vitest";
import { RateLimit } from "../../../src/server/http/admission.ts";
import { INITIALIZE, send } from "../../support/clients-raw.ts";
import { openWithIssuer } from "./issuer.ts";
import { sha256 } from "./support.ts";

const TOKENS = [{ sha256: sha256("alice-token"), principal: "alice" }];

describe("an address whose tokens are refused too often", () => {
  test("gets 429, and the authorization server is left alone; good tokens go on being accepted", async () => {
    const { ask, opaque, state } = await openWithIssuer("introspection", {
      refusalsPerMinute: 3,
      tokens: TOKENS,
    });
    const [known, late] = [opaque(), opaque()];
    expect((await ask(known)).status).toBe(200);
    const statuses = [];
    for (let guess = 0; guess < 5; guess += 1) statuses.push((await ask(`guess-${guess}`)).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    const asked = state.asked.length;
    const refused = await ask("guess");
    expect(refused.headers["retry-after"]).toBe("20");
    expect((await ask(known)).status).toBe(200);
    expect((await ask("alice-token")).status).toBe(200);
    // Whether this one is good cannot be known without asking.
    expect((await ask(late)).status).toBe(429);
    expect(state.asked).toHaveLength(asked);
  });

  test("is told about no token at all as before: that is no guess", async () => {
    const { server, ask } = await openWithIssuer("keys", { refusalsPerMinute: 1, tokens: TOKENS });
    const nameless = async () => (await send(server.url, { body: INITIALIZE })).status;
    expect([await nameless(), await nameless(), (await ask("guess")).status]).toEqual([401, 401, 401]);
    expect([await nameless(), (await ask("guess")).status]).toEqual([401, 429]);
    const headers = { authorization: "Bearer alice-token" };
    const { body } = await send(server.url.replace("/mcp", "/metrics"), { method: "GET", headers });
    for (const line of ['{reason="no_token"} 3', '{reason="invalid_token"} 2']) {
      expect(body).toContain(`deepagent_http_auth_refusals_total${line}\n`);
    }
  });
});

test.each([
  ["whose word counts, by the address it names", ["127.0.0.1"], [401, 401, 429]],
  ["that nobody knows, as one address", [], [401, 429, 429]],
])("requests through a proxy %s are limited", async (_name, trustedProxies, expected) => {
  const http = { refusalsPerMinute: 1, tokens: TOKENS, trustedProxies };
  const { server } = await openWithIssuer("keys", http);
  const statuses = [];
  for (const client of ["198.51.100.1", "198.51.100.2", "198.51.100.1"]) {
    const headers = { authorization: "Bearer guess", "x-forwarded-for": client };
    statuses.push((await send(server.url, { body: INITIALIZE, headers })).status);
  }
  expect(statuses).toEqual(expected);
});

test("only so many addresses are remembered, those seen last", () => {
  let now = 0;
  const limit = new RateLimit({ perMinute: 1, clock: () => now, keys: 3 });
  for (const key of ["a", "b", "c", "a", "d"]) {
    now += 1;
    limit.take(key);
  }
  expect(limit.size).toBe(3);
  expect(["a", "b", "c", "d"].filter((key) => limit.wait(key) > 0)).toEqual(["a", "c", "d"]);
  expect(limit.size).toBe(3);
});
