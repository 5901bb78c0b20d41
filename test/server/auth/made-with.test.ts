/** What is made with a token ends with it: links to runs, and subscriptions to events. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { TokenConfig } from "../../../src/config/sections.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { type Callbacks, subscriberSend } from "../../../src/news/subscriber.ts";
import { Courier } from "../../../src/runs/courier.ts";
import type { Access } from "../../../src/runs/shares.ts";
import { createAuthenticator, madeWith, tokenVerifier } from "../../../src/server/auth/auth.ts";
import { introspectionVerifier, jwtVerifier } from "../../../src/server/auth/verifiers.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { startReceiver } from "../../news/receiver.ts";
import {
  ME,
  mine,
  cleanUpWith,
  connect,
  databaseFile,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { attempts } from "../../support/effort.ts";
import { openHttp } from "../../support/harness-http.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { type Site, logIn, openSite } from "../page/log-in-support.ts";
import { linkTo, openPages, post, visit, visitorOf } from "../page/support.ts";
import { depsFor } from "../support.ts";
import { envelope } from "../tasks/raw.ts";
import { RESOURCE, openIssuer } from "./issuer.ts";
import { entry } from "./support.ts";

const SCOPES = ["run", "approve", "read"] as const;

async function credentialFor(authenticator: ReturnType<typeof createAuthenticator>, token: string) {
  const outcome = await authenticator.authenticate(`Bearer ${token}`);
  const made = outcome.ok ? await madeWith(outcome.auth) : undefined;
  if (made === undefined) throw new Error(`${token} was not accepted`);
  return made;
}

test("a token of the configuration holds while it is there, for the same principal, with all its scopes", async () => {
  const scopes = fc.subarray([...SCOPES], { minLength: 1 });
  const principal = fc.constantFrom("alice", "bob");
  const change = fc.record({ isThere: fc.boolean(), principal, scopes, hasOther: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(principal, scopes, change, async (owner, first, after) => {
      let tokens: TokenConfig[] = [entry("one", owner, first), entry("other", owner)];
      const authenticator = createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] });
      const { credential, until } = await credentialFor(authenticator, "one");
      expect(until).toBeGreaterThan(Date.now() * 2);
      expect(credential).not.toContain("one");
      expect(await authenticator.holds({ principal: owner, credential })).toBe(true);
      tokens = [
        ...(after.hasOther ? [entry("other", owner)] : []),
        ...(after.isThere ? [entry("one", after.principal, after.scopes)] : []),
      ];
      const isSame = after.isThere && after.principal === owner;
      const hasAll = first.every((scope) => after.scopes.includes(scope));
      expect(await authenticator.holds({ principal: owner, credential })).toBe(isSame && hasAll);
    }),
    attempts(200),
  );
});

test("what is made without a token is the local person's, whatever tokens there are", async () => {
  for (const verifiers of [[], [tokenVerifier(() => [entry("one", "alice")])]]) {
    const { holds } = createAuthenticator({ verifiers });
    expect(await holds({ principal: "local" })).toBe(true);
    expect(await holds({ principal: "alice" })).toBe(false);
  }
});

test("a token of an authorization server holds until that says otherwise, at every server with the key", async () => {
  const { issuer, introspection, opaque, revoke, state } = await openIssuer();
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const oauth = { issuer, resource: RESOURCE };
  const facts = {
    url: introspection.url,
    clientId: "agent",
    clientSecret: "s:e+c r%t",
    logger: silentLogger,
  };
  const serverWith = (key: number) => {
    const verifiers = [introspectionVerifier({ ...facts, oauth, clock })];
    return createAuthenticator({ verifiers, key: async () => Buffer.alloc(32, key) });
  };
  const [one, same, other] = [serverWith(1), serverWith(1), serverWith(2)];
  const token = opaque();
  const { credential, until } = await credentialFor(one, token);
  const made = { principal: `${issuer}#alice`, credential };
  expect(credential).not.toContain(token);
  expect(until - Date.now()).toBeLessThan(3_700_000);
  const all = async () => [await one.holds(made), await same.holds(made), await other.holds(made)];
  expect(await all()).toEqual([true, true, false]);
  // A token that cannot be checked now may be good.
  ahead = 31_000;
  state.broken = { status: 500, body: "" };
  expect(await all()).toEqual([true, true, false]);
  state.broken = undefined;
  revoke(token);
  expect(await all()).toEqual([false, false, false]);
});

test("what is made with a signed token ends when that expires", async () => {
  const { issuer, jwksUrl, signed } = await openIssuer();
  const verifier = jwtVerifier({ issuer, jwksUrl, resource: RESOURCE }, silentLogger);
  const authenticator = createAuthenticator({ verifiers: [verifier] });
  const { credential, until } = await credentialFor(authenticator, await signed());
  expect(await authenticator.holds({ principal: `${issuer}#alice`, credential })).toBe(true);
  const { service } = openServer(databaseFile(), { model: scriptedModel(() => ({ text: "The end." })) });
  const { id } = await startRun(service, "go");
  const made = await mine(service).access.share(id, 7 * 86_400_000, { credential, until });
  expect(made.ok && made.share.expiresAt).toBe(until);
});

async function endedRun() {
  const file = databaseFile();
  const { service } = openServer(file, { model: scriptedModel(() => ({ text: "The end." })) });
  const { id } = await startRun(service, "Task of the run");
  await reach(service, id, "completed");
  return { file, service, runId: id };
}

const remove = ({ tokens }: Site, token: string): void => {
  const { sha256 } = entry(token, "x");
  tokens.splice(0, tokens.length, ...tokens.filter((one) => one.sha256 !== sha256));
};

test("a link ends with the token of the person who made it, and no other", async () => {
  const { service, runId } = await endedRun();
  const site = await openSite(service, { sharedRuns: async () => service });
  const { origin } = site;
  site.tokens.push(entry("second", ME));
  const linkBy = async (token: string): Promise<string> => {
    const before = new Set((await mine(service).access.list()).map(({ id }) => id));
    const { body } = await (await logIn(origin, token)).post(`/runs/${runId}/share`, { for: "week" });
    const made = (await mine(service).access.list()).find(({ id }) => !before.has(id));
    return new RegExp(`/shared#(shared\\.${made?.id}[^"]*)`).exec(body)?.[1] ?? "";
  };
  const [first, second] = [await linkBy("mine"), await linkBy("second")];
  const follow = async (code: string) =>
    visitorOf(origin, await post(`${origin}/shared`, { code }, { origin }));
  const [early, other] = [await follow(first), await follow(second)];
  const pages = await openPages(service, undefined, { sharedRuns: async () => service });
  const local = await visit(linkTo(pages, runId, "decide"));
  const { body } = await local.post(`/runs/${runId}/share`, { for: "week" });
  const own = /\/shared#(shared\.[^"]+)/.exec(body)?.[1] ?? "";
  const person = await logIn(origin, "second");
  expect((await person.get("/access")).body.match(/Read-only link/g)).toHaveLength(3);

  remove(site, "mine");
  expect((await early.get(`/runs/${runId}`)).status).toBe(401);
  expect((await follow(first)).secret).toBe("");
  expect((await other.get(`/runs/${runId}`)).body).toContain("Task of the run");
  expect((await person.get("/access")).body.match(/Read-only link/g)).toHaveLength(2);
  const there = { origin: local.origin };
  expect((await post(`${local.origin}/shared`, { code: own }, there)).status).toBe(200);

  // Fewer scopes end it as well.
  site.tokens.splice(
    site.tokens.findIndex(({ sha256 }) => sha256 === entry("second", ME).sha256),
    1,
  );
  site.tokens.push(entry("second", ME, ["read"]));
  expect((await other.get(`/runs/${runId}`)).status).toBe(401);
});

const HERE: Callbacks = { network: { isNamed: () => true }, isTrusted: () => true };

test("a subscription ends with the token of its client, and is revoked on the page", async () => {
  const { file, service } = await endedRun();
  const tokens = [entry("one", ME), entry("two", ME)];
  const authenticator = createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] });
  const { url } = await openHttp({ ...depsFor(service), callbacks: HERE }, cleanUpWith, { authenticator });
  const receiver = await startReceiver((body) =>
    JSON.stringify({ challenge: (JSON.parse(body) as { challenge?: string }).challenge }),
  );
  const subscribe = async (token: string, path: string): Promise<void> => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const delivery = { mode: "webhook", url: `${receiver.url}/${path}`, secret };
    const { status, body } = await send(url, {
      headers: {
        authorization: `Bearer ${token}`,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "events/subscribe",
        "mcp-name": "run.finished",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "events/subscribe",
        params: { name: "run.finished", delivery, cursor: null, _meta: envelope({}) },
      }),
    });
    expect([status, body]).toEqual([200, expect.stringContaining("sub_")]);
  };
  await subscribe("one", "a");
  await subscribe("two", "b");
  const { news } = sqliteRuns(connect(file));
  const facts = { callbacks: HERE, clock: Date.now, pageOf: () => undefined };
  const { holds } = authenticator;
  const courier = new Courier({
    news,
    channels: [],
    subscriber: (id) => subscriberSend(() => news.subscriptionById(id), { ...facts, holds }),
    environment: "test",
    clock: Date.now,
    log: silentLogger,
    checkMs: 10,
  });
  cleanUpWith(() => courier.close());
  const sent = (): string[] =>
    receiver.received.map(({ path, body }) => (body.includes("challenge") ? "" : path));
  const finish = async (): Promise<void> => {
    const { id } = await startRun(service, "one more");
    await reach(service, id, "completed");
  };
  await finish();
  await expect.poll(() => sent().filter(Boolean).toSorted()).toEqual(["/a", "/b"]);
  tokens.shift();
  await finish();
  await expect.poll(() => sent().filter(Boolean).toSorted()).toEqual(["/a", "/b", "/b"]);
  await expect.poll(async () => (await news.due("test")).length).toBe(0);

  const [entryOf] = (await mine(service).access.list()).filter(({ url: at = "" }) => at.endsWith("/b"));
  const shown: Partial<Access> = { kind: "subscription", type: "run.finished", principal: ME };
  expect(entryOf).toMatchObject(shown);
  const operator = await visit((await openPages(service)).link({ principal: ME, purpose: "decide" }));
  const { body } = await operator.get("/access");
  expect(body).toContain(`Sends run.finished to ${new URL(receiver.url).host}`);
  expect(body).not.toContain("whsec_");
  const form = { share: entryOf?.id ?? "" };
  expect((await operator.post("/access/revoke", form)).headers["location"]).toBe("/access");
  expect((await mine(service).access.list()).map(({ id }) => id)).not.toContain(form.share);
  expect(await service.as({ principal: "bob" }).access.revoke(form.share)).toBe(false);
});
