/** What the authorization server stores, in SQLite and in a Postgres of two servers. */
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger as logger } from "../../../src/core/logger.ts";
import { openPostgres } from "../../../src/storage/postgres/storage.ts";
import { postgresSuite } from "../../storage/postgres-suite.ts";
import {
  Browser,
  LOOPBACK,
  PASSWORD,
  type Site,
  authorizeUrl,
  codeOf,
  flow,
  form,
  loginsOf,
  newFolder,
  openSite,
  openStorage,
  refresh,
  registered,
  status,
} from "./support.ts";

/** Four requests at once with one code, and with one refresh token, at two servers. */
async function inParallel(one: Site, two: Site): Promise<void> {
  const client_id = await registered(one);
  const owner = await one.person();
  const browser = new Browser(one, owner);
  const verifier = "v".repeat(43);
  const back = await browser.open(authorizeUrl(one, verifier, { client_id }));
  const code = back.searchParams.get("code") ?? "";
  const asked = {
    grant_type: "authorization_code",
    code,
    redirect_uri: LOOPBACK,
    client_id,
    code_verifier: verifier,
  };
  const answers = await Promise.all([one, two, one, two].map((site) => form(site, "/oauth/token", asked)));
  expect(answers.filter(({ status: code }) => code === 200)).toHaveLength(1);

  const granted = await flow(one, { client_id, owner, choice: { code: codeOf(owner, 1) } });
  expect(granted.status).toBe(200);
  expect((await status(two, granted.access_token)).status).not.toBe(401);
  const renewed = await Promise.all(
    [one, two].map((site) => refresh(site, client_id, granted.refresh_token)),
  );
  expect(renewed.map(({ status: code }) => code)).toEqual([200, 200]);
  await one.logins.logOut(owner.name);
  for (const { body } of renewed) expect((await status(two, body["access_token"] ?? "")).status).toBe(401);
}

test("two servers on the same files use a code once", async () => {
  const folder = newFolder();
  const [first, second] = [loginsOf(await openStorage(folder)), loginsOf(await openStorage(folder))];
  const one = await openSite({ place: first });
  const two = await openSite({ place: second, http: { publicUrl: one.issuer } });
  await inParallel(one, { ...two, issuer: new URL(two.url).origin });
});

test("connected clients are listed with their use, and revoked by their person alone", async () => {
  const storage = await openStorage();
  const site = await openSite({ place: loginsOf(storage) });
  const client_id = await registered(site);
  const [alice, bob] = [await site.person("alice"), await site.person("bob")];
  const granted = await flow(site, { client_id, owner: alice });
  await flow(site, { client_id, owner: bob });
  await site.logins.openPage("alice", site.url);
  const { shares } = storage.runs;
  const all = await shares.access(Date.now());
  expect(all.map(({ principal }) => principal).sort()).toEqual(["alice", "alice", "bob"]);
  const [found] = (await shares.access(Date.now(), "alice")).filter(({ name }) => name === "Test client");
  expect(found).toMatchObject({
    kind: "client",
    type: "run read",
    url: "a program on your computer (localhost:3999)",
  });
  expect(found?.usedAt).toBeGreaterThan(0);
  expect(await shares.revoke("bob", found?.id ?? "")).toBe(false);
  expect((await status(site, granted.access_token)).status).not.toBe(401);
  expect(await shares.revoke("alice", found?.id ?? "")).toBe(true);
  expect((await status(site, granted.access_token)).status).toBe(401);
  expect((await refresh(site, client_id, granted.refresh_token)).status).toBe(400);
});

test("a log-in that was not finished goes on after a restart of the server", async () => {
  const folder = newFolder();
  const before = await openSite({ place: loginsOf(await openStorage(folder)) });
  const client_id = await registered(before);
  const owner = await before.person();
  const browser = new Browser(before, owner);
  const begun = await browser.follow(authorizeUrl(before, "v".repeat(43), { client_id }));
  await before.close();
  const port = Number(new URL(before.url).port);
  await openSite({ port, place: loginsOf(await openStorage(folder)) });
  const secrets = { name: owner.name, password: PASSWORD, code: codeOf(owner) };
  const consent = await browser.send(begun.at, new URLSearchParams(secrets));
  expect(consent.text).toContain('name="do"');
});

test("expired rows are deleted, and others stay", async () => {
  const { logins } = loginsOf(await openStorage());
  const row = { model: "Session", principal: null, grant_id: null, uid: null, body: "{}", now: 1 };
  await logins.rows.change("put", { ...row, id: "old", expires_at: 1000 });
  await logins.rows.change("put", { ...row, id: "new", expires_at: 2000 });
  expect(await logins.rows.change("remove expired", { now: 1000 })).toBe(1);
  expect(await logins.rows.read("find", { model: "Session", id: "new", now: 0 })).toHaveLength(1);
});

describe("on one Postgres", { tags: "postgres" }, () => {
  const { url, newSchema, newRole } = postgresSuite();

  async function openShared(schema: string, role?: string) {
    const storage = await openPostgres({ url: url(), schema, connections: 5, logger, ...(role && { role }) });
    onTestFinished(() => storage.close());
    return storage;
  }

  test("two servers let in the same people, and use a code once", async () => {
    const schema = newSchema();
    const [first, second] = [loginsOf(await openShared(schema)), loginsOf(await openShared(schema))];
    const one = await openSite({ place: first });
    const two = await openSite({ place: second, http: { publicUrl: one.issuer } });
    await inParallel(one, { ...two, issuer: new URL(two.url).origin });
  });

  test("a role behind the wall lists and revokes the clients of one person alone", async () => {
    const storage = await openShared(newSchema(), await newRole());
    const site = await openSite({ place: loginsOf(storage) });
    const client_id = await registered(site);
    const [alice, bob] = [await site.person("alice"), await site.person("bob")];
    const granted = await flow(site, { client_id, owner: alice });
    await flow(site, { client_id, owner: bob });
    const { shares } = storage.runs;
    const own = await shares.access(Date.now(), "alice");
    expect(own.map(({ principal, kind }) => [principal, kind])).toEqual([["alice", "client"]]);
    expect(await shares.revoke("bob", own[0]?.id ?? "")).toBe(false);
    expect(await shares.revoke("alice", own[0]?.id ?? "")).toBe(true);
    expect((await status(site, granted.access_token)).status).toBe(401);
  });
});
