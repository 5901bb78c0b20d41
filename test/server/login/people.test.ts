/** People, their secrets, and the browsers that they use. */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type Logger, silentLogger } from "../../../src/core/logger.ts";
import {
  Browser,
  PASSWORD,
  type Site,
  authorizeUrl,
  codeOf,
  flow,
  loginsOf,
  newFolder,
  openSite,
  openStorage,
  refresh,
  registered,
  status,
} from "./support.ts";

/** The clock of this process, which stands still until a test moves it. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
});
const pass = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);
const DAY = 86_400;

const remove = async ({ logins }: Pick<Site, "logins">, name: string): Promise<void> => {
  await logins.logOut(name);
  await logins.rows.change("remove owner", { name });
};

test("a code works once, also after a restart, and an earlier one never again", async () => {
  const folder = newFolder();
  const first = loginsOf(await openStorage(folder));
  const owner = await first.person("alice");
  const early = codeOf(owner, -1);
  const code = codeOf(owner);
  expect(await first.logins.check("alice", PASSWORD, code)).toBe(true);
  expect(await first.logins.check("alice", PASSWORD, code)).toBe(false);
  const again = loginsOf(await openStorage(folder)).logins;
  expect(await again.check("alice", PASSWORD, code)).toBe(false);
  expect(await again.check("alice", PASSWORD, early)).toBe(false);
  expect(await again.check("alice", PASSWORD, codeOf(owner, 1))).toBe(true);
  pass(120);
  expect(await again.check("alice", PASSWORD, codeOf(owner))).toBe(true);
  pass(300);
  expect(await again.check("alice", PASSWORD, codeOf(owner, -3))).toBe(false);
});

test("one code in four requests at once lets in one of them", async () => {
  const { logins, person } = loginsOf(await openStorage());
  const owner = await person();
  const code = codeOf(owner);
  const tries = await Promise.all([1, 2, 3, 4].map(() => logins.check(owner.name, PASSWORD, code)));
  expect(tries.filter(Boolean)).toHaveLength(1);
});

test("five wrong tries lock a name for five minutes, and no other", async () => {
  const { logins, person } = loginsOf(await openStorage());
  const [owner, other] = [await person(), await person()];
  for (const [password, code] of [
    ["wrong password", codeOf(owner)],
    ["", ""],
    [PASSWORD, "000000"],
    [PASSWORD, ""],
    [`${PASSWORD} `, codeOf(owner)],
  ] as const)
    expect(await logins.check(owner.name, password, code)).toBe(false);
  expect(await logins.check(owner.name, PASSWORD, codeOf(owner))).toBe(false);
  expect(await logins.check(other.name, PASSWORD, codeOf(other))).toBe(true);
  pass(299);
  expect(await logins.check(owner.name, PASSWORD, codeOf(owner))).toBe(false);
  pass(2);
  expect(await logins.check(owner.name, PASSWORD, codeOf(owner))).toBe(true);
});

test("many guesses at once are five", async () => {
  const { logins, person } = loginsOf(await openStorage());
  const owner = await person();
  const guesses = Array.from({ length: 8 }, (_, at) => (at < 5 ? "wrong" : PASSWORD));
  for (const guess of guesses.slice(0, 5)) await logins.check(owner.name, guess, codeOf(owner));
  const rest = await Promise.all(
    guesses.slice(5).map((guess) => logins.check(owner.name, guess, codeOf(owner))),
  );
  expect(rest).toEqual([false, false, false]);
});

test("nobody learns which names there are", async () => {
  const site = await openSite();
  const { name } = await site.person();
  const client_id = await registered(site);
  const answers = await Promise.all(
    [name, "nobody", ""].map(async (given) => {
      const browser = new Browser(site, await site.person());
      const { at } = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id }));
      const seen = await browser.send(at, new URLSearchParams({ name: given, password: "x", code: "1" }));
      return [seen.response?.status, seen.text];
    }),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]?.[0]).toBe(401);
});

test("too many wrong passwords of one address end its trying, whatever the name", async () => {
  const site = await openSite({
    http: { refusalsPerMinute: 3 },
    options: { clock: () => 1_000_000 },
  });
  const client_id = await registered(site);
  const right = await site.person();
  for (let at = 0; at < 3; at += 1) {
    const browser = new Browser(site, await site.person());
    const trying = browser.open(authorizeUrl(site, "v".repeat(43), { client_id }), { password: "wrong" });
    await expect(trying).rejects.toThrow("401");
  }
  const trying = new Browser(site, right).open(authorizeUrl(site, "v".repeat(43), { client_id }));
  await expect(trying).rejects.toThrow("401");
});

test("a person who is removed, or logged out everywhere, has no access at the next request", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const [one, two] = [await site.person("one"), await site.person("two")];
  const [first, second] = [
    await flow(site, { client_id, owner: one }),
    await flow(site, { client_id, owner: two }),
  ];
  await remove(site, "one");
  await site.logins.logOut("two");
  for (const granted of [first, second]) {
    expect((await status(site, granted.access_token)).status).toBe(401);
    expect((await refresh(site, client_id, granted.refresh_token)).status).toBe(400);
  }
  expect(
    (await flow(site, { client_id, owner: { ...two, totp: two.totp }, choice: { code: codeOf(two, 1) } }))
      .status,
  ).toBe(200);
});

test("a session of a browser ends with the person's log-out", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const owner = await site.person();
  const browser = new Browser(site, owner);
  await flow(site, { client_id, browser });
  await site.logins.logOut(owner.name);
  const seen = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id }));
  expect(seen.text).toContain('name="password"');
});

test("after a new password the old one, and all that was granted, is worth nothing", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const owner = await site.person("alice");
  const granted = await flow(site, { client_id, owner });
  await remove(site, "alice");
  await site.logins.add("alice", "another long password");
  expect((await status(site, granted.access_token)).status).toBe(401);
  expect(await site.logins.check("alice", PASSWORD, codeOf(owner, 1))).toBe(false);
  expect(await site.logins.add("alice", "a third long password")).toBeUndefined();
});

test("a log-in lasts 90 days after its last renewal", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const granted = await flow(site, { client_id });
  pass(8 * 3600 + 1);
  expect((await status(site, granted.access_token)).status).toBe(401);
  let { refresh_token } = granted;
  for (const days of [13, 15, 60, 60, 89]) {
    pass(days * DAY);
    const { status: code, body } = await refresh(site, client_id, refresh_token);
    expect(code).toBe(200);
    ({ refresh_token = "" } = body);
    expect((await status(site, body["access_token"] ?? "")).status).not.toBe(401);
  }
  pass(91 * DAY);
  expect((await refresh(site, client_id, refresh_token)).status).toBeGreaterThanOrEqual(400);
});

test("a client with which nobody logs in is forgotten after an hour", async () => {
  const site = await openSite();
  const [used, unused] = [await registered(site), await registered(site)];
  const { refresh_token } = await flow(site, { client_id: used });
  pass(3601);
  expect((await refresh(site, used, refresh_token)).status).toBe(200);
  const browser = new Browser(site, await site.person());
  const seen = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id: unused }));
  expect(seen.response?.status).toBe(400);
});

test("a used refresh token works for half a minute more, then its use ends the grant", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const { refresh_token: first } = await flow(site, { client_id });
  const second = await refresh(site, client_id, first);
  pass(29);
  const lost = await refresh(site, client_id, first);
  expect([second.status, lost.status]).toEqual([200, 200]);
  pass(2);
  expect((await refresh(site, client_id, first)).body["error"]).toBe("invalid_grant");
  for (const { body } of [second, lost]) {
    expect((await status(site, body["access_token"] ?? "")).status).toBe(401);
    expect((await refresh(site, client_id, body["refresh_token"] ?? "")).status).toBe(400);
  }
});

test("a new key leaves log-ins, and the codes of people, as they are", async () => {
  const [storage, [old, fresh]] = [await openStorage(), [Buffer.alloc(32, 5), Buffer.alloc(32, 6)] as const];
  const before = await openSite({ place: loginsOf(storage, [old]) });
  const client_id = await registered(before);
  const owner = await before.person();
  const granted = await flow(before, { client_id, owner, scope: "openid read" });
  const after = await openSite({
    place: loginsOf(storage, [fresh, old]),
    http: { publicUrl: before.issuer },
  });
  const { issuer: _other, ...rest } = after;
  expect((await status(rest, granted.access_token)).status).not.toBe(401);
  expect(await after.logins.check(owner.name, PASSWORD, codeOf(owner, 1))).toBe(true);
  const without = loginsOf(storage, [fresh]).logins;
  expect(await without.check(owner.name, PASSWORD, codeOf(owner, 1))).toBe(false);
});

test("a form is taken from the browser that began the log-in, and from no other page", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const [mine, theirs] = [new Browser(site, await site.person()), new Browser(site, await site.person())];
  const { at } = await mine.follow(authorizeUrl(site, "v".repeat(43), { client_id }));
  // Another browser, also one that is logged in.
  await flow(site, { client_id, browser: theirs });
  for (const browser of [theirs, new Browser(site, await site.person())]) {
    expect((await browser.follow(at)).response?.status).toBe(400);
    const form = new URLSearchParams({
      do: "connect",
      scope: "approve",
      name: "x",
      password: "x",
      code: "1",
    });
    expect((await browser.send(at, form)).response?.status).toBe(400);
  }
  for (const origin of ["https://evil.example", "null", `${site.issuer}.evil.example`]) {
    const trying = mine.open(authorizeUrl(site, "v".repeat(43), { client_id }), { origin });
    await expect(trying).rejects.toThrow("403");
  }
  // With the cookie of one log-in at the address of another.
  const second = await theirs.follow(authorizeUrl(site, "v".repeat(43), { client_id }));
  const stolen = { method: "POST", headers: { origin: site.issuer } };
  expect((await fetch(second.at, stolen)).status).toBe(400);
});

test("names of clients and scopes that nobody offers change nothing on the page", async () => {
  const site = await openSite();
  const { register } = await import("./support.ts");
  const client_name = `<script>alert(1)</script>"><img src=x>`;
  const { body } = await register(site, { client_name, redirect_uris: ["http://localhost:3999/callback"] });
  const browser = new Browser(site, await site.person());
  const granted = await flow(site, { client_id: body.client_id, browser, choice: { scopes: ["read"] } });
  expect(granted.scope).toBe("read");
  expect(browser.pages.join()).not.toMatch(/<script|<img/);
  expect(browser.pages.join()).toContain("&#60;script");
  const policies = browser.answers
    .filter(({ status: code }) => code === 200)
    .map(({ headers }) => headers.get("content-security-policy"));
  expect(policies.length).toBeGreaterThan(1);
  for (const policy of policies) {
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("form-action");
  }
  const referrers = browser.answers
    .filter(({ status: code }) => code === 200)
    .map(({ headers }) => headers.get("referrer-policy"));
  expect(new Set(referrers)).toEqual(new Set(["same-origin"]));
});

test("neither the database nor the log has a token, a code, a password or a secret", async () => {
  const lines: string[] = [];
  const log = (...line: unknown[]): void => void lines.push(JSON.stringify(line));
  const logger: Logger = { ...silentLogger, info: log, warn: log, error: log, debug: log };
  const folder = newFolder();
  const storage = await openStorage(folder);
  const site = await openSite({ logger, place: loginsOf(storage) });
  const client_id = await registered(site);
  const owner = await site.person();
  const granted = await flow(site, { client_id, owner });
  const renewed = await refresh(site, client_id, granted.refresh_token);
  await refresh(site, client_id, "never-issued");
  await expect(
    new Browser(site, owner).open(authorizeUrl(site, "v".repeat(43), { client_id }), {
      password: "guessed-password",
    }),
  ).rejects.toThrow("401");
  const code = granted.back.searchParams.get("code") ?? "";
  const secrets = [
    granted.access_token,
    granted.refresh_token,
    code,
    granted.verifier,
    PASSWORD,
    owner.totp.secret.base32,
  ];
  secrets.push(
    renewed.body["access_token"] ?? "",
    renewed.body["refresh_token"] ?? "",
    "guessed-password",
    "never-issued",
  );
  const text = readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path).toString("latin1"))
    .join();
  expect(text).toContain(client_id);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(8);
    expect(text.includes(secret)).toBe(false);
    expect(lines.join().includes(secret)).toBe(false);
  }
  expect(lines.join()).toContain("login.person_refused");
  expect(lines.join()).toContain("login.granted");
});
