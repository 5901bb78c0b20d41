import { expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.ts";
import { introspectionVerifier } from "../../../src/server/auth/verifiers.ts";
import { createAuthenticator, madeWith } from "../../../src/server/auth/auth.ts";
import { bearer } from "../../support/clients-raw.ts";
import { envelope } from "../tasks/raw.ts";
import { authenticated, HOUR, now, openIssuer, openWithIssuer, RESOURCE } from "./issuer.ts";

const ASK = { mayAsk: true };

/** A verifier with a clock of its own, which starts at the time of the tokens and stands still. */
async function open() {
  const authority = await openIssuer();
  let time = Date.now();
  const verify = introspectionVerifier({
    oauth: { issuer: authority.issuer, resource: RESOURCE },
    url: authority.introspection.url,
    clientId: "agent",
    clientSecret: "s:e+c r%t",
    clock: () => time,
    logger: silentLogger,
  });
  const status = async (token: string, options = ASK): Promise<number> => {
    const outcome = await createAuthenticator({ verifiers: [verify] }).authenticate(
      `Bearer ${token}`,
      options,
    );
    return outcome.ok ? 200 : outcome.response.status;
  };
  return {
    ...authority,
    verify,
    status,
    pass: (milliseconds: number): void => {
      time += milliseconds;
    },
  };
}

test("an answer holds for a short time: one question for many requests, also at once", async () => {
  const { opaque, state, status, revoke, pass } = await open();
  const token = opaque();
  expect(await Promise.all(Array.from({ length: 20 }, () => status(token)))).toEqual(Array(20).fill(200));
  expect(state.asked).toEqual([token]);
  revoke(token);
  expect(await status(token)).toBe(200);
  pass(30_000);
  expect(await status(token)).toBe(401);
  expect(state.asked).toEqual([token, token]);
});

test("what stays open with a token ends within 5 seconds, for one question in that time", async () => {
  const { opaque, state, verify, status, revoke, pass, issuer } = await open();
  const authenticator = createAuthenticator({ verifiers: [verify] });
  const token = opaque();
  const outcome = await authenticator.authenticate(`Bearer ${token}`);
  const made = outcome.ok ? await madeWith(outcome.auth) : undefined;
  const access = { principal: `${issuer}#alice`, credential: made?.credential ?? "" };
  const twenty = () => Promise.all(Array.from({ length: 20 }, () => authenticator.holds(access)));
  expect(await twenty()).toEqual(Array(20).fill(true));
  expect(state.asked).toHaveLength(1);
  pass(5000);
  expect(await twenty()).toEqual(Array(20).fill(true));
  expect(state.asked).toHaveLength(2);
  // A server that does not answer takes nothing away, neither from what is open nor from requests.
  pass(5000);
  state.broken = { status: 500, body: "{}" };
  expect([await authenticator.holds(access), await status(token)]).toEqual([true, 200]);
  state.broken = undefined;
  revoke(token);
  expect(await twenty()).toEqual(Array(20).fill(false));
  expect(state.asked).toHaveLength(4);
  // What is known by then holds for requests too.
  expect(await status(token)).toBe(401);
});

test("open streams of a token are checked together, by one question that no earlier answer replaces", async () => {
  const { opaque, server, state, revoke } = await openWithIssuer("introspection");
  const [token, other] = [opaque(), opaque()];
  const listen = (by: string) =>
    fetch(server.url, {
      method: "POST",
      headers: {
        ...bearer(by),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "subscriptions/listen",
        params: { notifications: { resourceSubscriptions: ["test://a"] }, _meta: envelope({}) },
      }),
    });
  const [one, same, lasting] = [await listen(token), await listen(token), await listen(other)];
  const before = state.asked.length;
  await server.recheck();
  expect(state.asked.slice(before).toSorted()).toEqual([token, other]);
  revoke(token);
  await server.recheck();
  expect(await one.text()).toContain("subscriptions/acknowledged");
  await same.text();
  expect(state.asked).toHaveLength(before + 4);
  await lasting.body?.cancel();
});

test("an answer holds for no longer by a clock that was set back", async () => {
  const { opaque, status, revoke, pass } = await open();
  const token = opaque();
  expect(await status(token)).toBe(200);
  revoke(token);
  pass(-3_600_000);
  expect(await status(token)).toBe(401);
});

test("an answer never holds past the expiry of the token", async () => {
  const { opaque, state, status, pass } = await open();
  // Clocks may differ by a minute: it is good for ten more seconds.
  const token = opaque({ exp: now() - 50 });
  expect(await status(token)).toBe(200);
  pass(16_000);
  expect(await status(token)).toBe(401);
  expect(state.asked).toHaveLength(2);
});

test("a token of which the issuer does not say when it expires holds as long as it is active", async () => {
  const { opaque, status, revoke, pass } = await open();
  const token = opaque({ exp: undefined });
  expect(await status(token)).toBe(200);
  pass(HOUR * 1000);
  expect(await status(token)).toBe(200);
  revoke(token);
  pass(30_000);
  expect(await status(token)).toBe(401);
});

test("refused tokens are not remembered", async () => {
  const { opaque, state, status } = await open();
  expect(await status("opaque-1")).toBe(401);
  opaque();
  expect(await status("opaque-1")).toBe(200);
  expect(state.asked).toHaveLength(2);
});

test("only so many answers are kept, those that were used last", async () => {
  const { opaque, state, verify } = await open();
  const tokens = Array.from({ length: 1001 }, () => opaque());
  for (const token of tokens.slice(0, 2)) await verify(token, ASK);
  for (let at = 2; at < 1000; at += 50) {
    await Promise.all(tokens.slice(at, Math.min(at + 50, 1000)).map(async (token) => verify(token, ASK)));
  }
  await verify(tokens[0] ?? "", ASK);
  await verify(tokens[1000] ?? "", ASK);
  expect(state.asked).toHaveLength(1001);
  await verify(tokens[0] ?? "", ASK);
  expect(state.asked).toHaveLength(1001);
  await verify(tokens[1] ?? "", ASK);
  expect(state.asked).toHaveLength(1002);
});

test("whoever may not ask gets known tokens accepted and learns nothing about others", async () => {
  const { opaque, state, status } = await open();
  const [known, other] = [opaque(), opaque()];
  expect(await status(known)).toBe(200);
  expect(await status(known, { mayAsk: false })).toBe(200);
  expect(await status(other, { mayAsk: false })).toBe(429);
  expect(state.asked).toEqual([known]);
});

test.each<[string, { status: number; body: string }]>([
  ["an error", { status: 500, body: "{}" }],
  ["that it does not know this server", { status: 401, body: '{"error":"invalid_client"}' }],
  ["no JSON", { status: 200, body: "<html>" }],
  ["something else", { status: 200, body: '{"active":"true","sub":"alice"}' }],
  ["too much", { status: 200, body: JSON.stringify({ active: true, padding: "x".repeat(70_000) }) }],
])("an authorization server that answers %s leaves the token undecided", async (_name, broken) => {
  const { opaque, status, state } = await open();
  const token = opaque();
  state.broken = broken;
  expect(await status(token)).toBe(503);
  state.broken = undefined;
  expect(await status(token)).toBe(200);
});

test("a silent authorization server is not the fault of the token, and costs nobody an attempt", async () => {
  const { opaque, ask, state } = await openWithIssuer("introspection", { refusalsPerMinute: 1 });
  const token = opaque();
  state.broken = { status: 502, body: "" };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const refused = await ask(token);
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toBe("5");
    expect(refused.headers["www-authenticate"]).toBeUndefined();
  }
  state.broken = undefined;
  expect((await ask(token)).status).toBe(200);
});

test("redirects are not followed: they would carry the credentials of this server elsewhere", async () => {
  const { opaque, status, state } = await open();
  const elsewhere = await openIssuer();
  state.broken = { status: 307, body: "", location: elsewhere.introspection.url };
  expect(await status(opaque())).toBe(503);
  expect(elsewhere.state.asked).toEqual([]);
});

test("without the secret in the environment the server does not start", async () => {
  const { issuer, introspection } = await openIssuer();
  const unset = { ...introspection, clientSecretVariable: "NOT_SET" };
  const starting = authenticated({ oauth: { issuer, resource: RESOURCE, introspection: unset } });
  await expect(starting).rejects.toThrow(/environment variable NOT_SET/);
});
