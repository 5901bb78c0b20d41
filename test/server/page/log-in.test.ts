import { isApproval } from "../../../src/runs/run.ts";
import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import type { Logger } from "../../../src/core/logger.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { createAuthenticator, authInfoOf } from "../../../src/server/auth/auth.ts";
import { PROOF_HEADER, SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { SHELL } from "../../../src/server/views/room/shell.ts";
import { ME, note, reach, startRun } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { HOUR, RESOURCE, WAYS, authenticated, openIssuer } from "../auth/issuer.ts";
import { approvalRuns } from "../support.ts";
import { SECURE, holder, logIn, openSite } from "./log-in-support.ts";
import { post } from "./support.ts";

/** A run of ME that waits for a person. */
async function waiting() {
  const { service, notes } = approvalRuns(note("a"));
  const { id } = await startRun(service, "note it");
  const view = await reach(service, id, "input_required");
  return { service, notes, id, approval: view.requests.filter(isApproval)[0]?.id ?? "" };
}

test("nobody sees anything without a token, and a good one opens the page that was asked for", async () => {
  const { service, id } = await waiting();
  const { origin } = await openSite(service);
  const stranger = holder(origin, {});
  for (const path of ["/", `/runs/${id}`, "/files", "/review", "/runs/run_none"]) {
    const { status, body, headers } = await stranger.get(path);
    expect([path, status]).toEqual([path, 401]);
    expect(body).toContain('type="password"');
    expect(body).toContain(`name="next" value="${path}"`);
    expect(body).not.toContain("note it");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["cache-control"]).toBe("no-store");
    const document = await send(origin + path, { method: "GET" });
    expect([document.status, document.body]).toEqual([200, SHELL.text]);
  }
  const me = await logIn(origin, " mine ", { next: `/runs/${id}/work?events=all` });
  expect(me.answer.status).toBe(200);
  expect(me.at).toBe(`/runs/${id}/work?events=all`);
  expect((await me.get(`/runs/${id}`)).body).toContain("note it");
  expect((await me.get("/")).body).toContain("Log out");
});

const TLS = { allowedHosts: ["agent.example", "a.localhost"] };

test("over HTTPS the session is a cookie of this host alone, which ends and does not show the token", async () => {
  const { origin } = await openSite((await waiting()).service, {}, TLS);
  const { setCookie, cookie, secret, answer } = await logIn(origin, "mine", {}, SECURE);
  expect(setCookie).toMatch(
    /^__Host-deepagent-\w{12}=[\w.-]+; Path=\/; Max-Age=43(?:200|199); Secure; HttpOnly; SameSite=Strict$/,
  );
  expect([secret, JSON.parse(answer.body)]).toEqual(["", { at: "/" }]);
  expect(readable(cookie.split("=")[1] ?? "")).not.toMatch(/mine|local/);
});

test.each([
  "http://127.0.0.1",
  "https://127.0.0.1",
  "https://localhost",
  "https://a.localhost",
  "http://agent.example",
])("at %s, where cookies reach other programs, the tab keeps the session", async (address) => {
  const { origin } = await openSite((await waiting()).service, {}, TLS);
  const host = `${new URL(address).hostname}:${new URL(origin).port}`;
  const headers = { host, origin: `${new URL(address).protocol}//${host}` };
  const me = await logIn(origin, "mine", {}, headers);
  expect([me.setCookie, me.answer.status]).toEqual(["", 200]);
  expect(readable(me.secret)).not.toMatch(/mine|local/);
  const { headers: answered, body } = await me.get("/");
  expect(body).toContain("Log out");
  expect(answered[PROOF_HEADER]).toMatch(/^[\w-]{43}$/);
  expect((await me.get("/", { [SECRET_HEADER]: "", cookie: `session=${me.secret}` })).status).toBe(401);
});

test("of two cookies of the session's name none is taken, and every log-in makes a new one", async () => {
  const { origin } = await openSite((await waiting()).service, {}, TLS);
  const first = await logIn(origin, "mine", {}, SECURE);
  expect((await first.get("/")).status).toBe(200);
  for (const cookie of [
    `${first.cookie}; ${first.cookie}`,
    `${first.cookie}; ${first.cookie.split("=")[0]}=x`,
  ]) {
    expect((await first.get("/", { cookie })).status).toBe(401);
  }
  expect((await first.get("/", { cookie: `other=1; ${first.cookie}; __Host-other=2` })).status).toBe(200);
  const second = await logIn(origin, "mine", {}, { ...SECURE, cookie: first.cookie });
  expect(second.cookie).not.toBe(first.cookie);
  expect((await first.get("/")).status).toBe(401);
  expect((await second.get("/", { cookie: second.cookie })).status).toBe(200);
});

/** What is in the parts of a sealed text for those who have no key. */
const readable = (sealed: string): string =>
  sealed
    .split(".")
    .map((part) => Buffer.from(part, "base64url").toString())
    .join(" ");

test("a bad token opens nothing, says nothing and is logged nowhere; too many end the trying", async () => {
  const logged: string[] = [];
  const log = (...line: unknown[]): void => void logged.push(JSON.stringify(line));
  const logger: Logger = { ...silentLogger, info: log, warn: log, error: log, debug: log };
  const { origin } = await openSite((await waiting()).service, { logger }, { logger, refusalsPerMinute: 3 });
  for (const status of [401, 401, 401, 429]) {
    const { answer, setCookie, secret } = await logIn(origin, "guessed-token");
    expect([answer.status, setCookie, secret]).toEqual([status, "", ""]);
    expect(answer.body).not.toContain("guessed-token");
  }
  const { answer } = await logIn(origin, "mine");
  expect(answer.status).toBe(429);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(logged.join()).not.toMatch(/guessed-token|"mine"/);
  expect((await logIn(origin, "")).answer.status).toBe(422);
});

test("another's runs do not exist, and only their own person decides", async () => {
  const { service, id, approval, notes } = await waiting();
  const { origin } = await openSite(service);
  const bob = await logIn(origin, "bobs");
  expect((await bob.get("/")).body).not.toContain("note it");
  const paths = ["", "/review", "/files", "/files/a?view=changes"].map((part) => `/runs/${id}${part}`);
  for (const path of paths) {
    expect([path, (await bob.get(path)).status]).toEqual([path, 404]);
  }
  const decision = { request: approval, decision: "approve" };
  const foreign = await bob.post(`/runs/${id}/reply`, decision);
  expect(foreign.status).toBe(404);
  const me = await logIn(origin, "mine");
  const own = await me.post(`/runs/${id}/reply`, decision);
  expect(own.status).toBe(303);
  const view = await reach(service, id, "completed");
  expect(view.requests.filter(isApproval)).toMatchObject([{ status: "approved", decidedBy: "page" }]);
  expect(notes).toEqual(["a"]);
});

test.each([
  ["a tab that has a secret", {}],
  ["a browser that has a cookie", SECURE],
])("forms of other sites change nothing: %s", async (_who, headers) => {
  const { service, id, approval } = await waiting();
  const { origin } = await openSite(service, {}, TLS);
  const me = await logIn(origin, "mine", {}, headers);
  const form = { approval, decision: "approve" };
  const path = `/runs/${id}/reply`;
  for (const [status, sent] of [
    [403, { origin: "https://attacker.example" }],
    [403, { origin: "null" }],
    [403, { host: "attacker.example" }],
    [403, { "sec-fetch-site": "same-site" }],
    [401, { [SECRET_HEADER]: "x", cookie: "" }],
  ] as const) {
    expect((await me.post(path, form, sent)).status).toBe(status);
  }
  // A form that no script sends has the cookie, and cannot have the header.
  const plain = { cookie: me.cookie, origin, ...headers };
  expect((await post(origin + path, form, plain)).status).toBe(401);
  const { status, body } = await send(`${origin}/`, { method: "GET", headers: plain });
  expect([status, body]).toEqual([200, SHELL.text]);
  expect((await logIn(origin, "mine", {}, { origin: "https://attacker.example" })).answer.status).toBe(403);
  const unnamed = await send(`${origin}/login`, { body: "token=mine" });
  expect(unnamed.status).toBe(403);
  expect((await me.get("/", { host: "attacker.example" })).status).toBe(403);
  expect((await reach(service, id, "input_required")).requests.filter(isApproval)).toMatchObject([
    { status: "pending" },
  ]);
});

const ELSEWHERE = [
  "//attacker.example/",
  "/\\attacker.example",
  "https://attacker.example/",
  "/\t/attacker.example",
];

test.each(ELSEWHERE)("the log-in leads to no other server: %j", async (next) => {
  const { origin } = await openSite((await waiting()).service);
  const { answer, at } = await logIn(origin, "mine", { next });
  expect(answer.status).toBe(200);
  expect(new URL(at, origin).origin).toBe(origin);
});

test("a token does on the page what its scopes allow", async () => {
  const { service, id, approval } = await waiting();
  const { origin } = await openSite(service);
  const looks = await logIn(origin, "only-looks");
  const { body } = await looks.get(`/runs/${id}/review`);
  expect(body).toContain("note");
  expect(body).not.toContain(`/runs/${id}/reply`);
  const decided = await looks.post(`/runs/${id}/reply`, { request: approval, decision: "approve" });
  expect(decided.status).toBe(403);
  expect((await looks.post("/start", { task: "x" })).status).toBe(403);
  const runs = await logIn(origin, "only-runs");
  expect([runs.answer.status, runs.setCookie, runs.secret]).toEqual([403, "", ""]);
});

test("a session ends with its token, which may also have become another's", async () => {
  const { service } = await waiting();
  const site = await openSite(service);
  const me = await logIn(site.origin, "mine");
  expect((await me.get("/")).status).toBe(200);
  const [mine] = site.tokens;
  if (mine === undefined) throw new Error("there is a token");
  site.tokens[0] = { ...mine, principal: "carol" };
  expect((await me.get("/")).status).toBe(401);
  site.tokens[0] = { ...mine, scopes: ["read"] };
  expect((await me.get("/")).body).not.toContain('action="/start"');
  site.tokens.shift();
  const { status, body } = await me.get("/");
  expect(status).toBe(401);
  expect(body).toContain("You were logged out");
});

test("a session ends with the expiry of its token, and after twelve hours", async () => {
  const { service } = await waiting();
  let now = Date.now();
  const end = { expiresAt: now / 1000 + HOUR };
  const authenticator = createAuthenticator({
    verifiers: [
      (token) => authInfoOf({ principal: ME, scopes: ["read"], ...(token === "short" ? end : {}) }),
    ],
  });
  const { origin } = await openSite(service, { clock: () => now }, { authenticator, ...TLS });
  const people = await Promise.all(
    [{}, SECURE].flatMap((headers) => ["short", "long"].map((token) => logIn(origin, token, {}, headers))),
  );
  const statuses = async () => (await Promise.all(people.map((person) => person.get("/")))).map(statusOf);
  expect(people[2]?.setCookie).toMatch(/Max-Age=3(599|600);/);
  expect(await statuses()).toEqual([200, 200, 200, 200]);
  now += HOUR * 1000 + 1000;
  expect(await statuses()).toEqual([401, 200, 401, 200]);
  now += 11 * HOUR * 1000;
  expect(await statuses()).toEqual([401, 401, 401, 401]);
});

const statusOf = ({ status }: { status: number }): number => status;

test.each(WAYS)("an access token opens the page of its holder: %s", async (way) => {
  const { service, id } = await waiting();
  const authority = await openIssuer();
  const { issuer, jwksUrl, introspection, revoke } = authority;
  const found = way === "keys" ? { jwksUrl } : { introspection };
  const { authenticator } = await authenticated({ oauth: { issuer, resource: RESOURCE, ...found } });
  const { origin } = await openSite(service, {}, { authenticator, ...TLS });
  const token = way === "keys" ? await authority.signed({}) : authority.opaque({});
  const alice = await logIn(origin, token);
  expect(alice.answer.status).toBe(200);
  expect((await alice.get("/")).status).toBe(200);
  expect((await alice.get(`/runs/${id}`)).status).toBe(404);
  const other =
    way === "keys" ? await authority.signed({ aud: "https://other.example" }) : authority.opaque({});
  if (way === "introspection") revoke(other);
  expect((await logIn(origin, other)).answer.status).toBe(401);
  const long = await authority.signed({ pad: "x".repeat(4000) });
  expect((await logIn(origin, long, {}, SECURE)).answer.status).toBe(way === "keys" ? 422 : 401);
  // A tab may keep what no browser keeps as a cookie.
  expect((await logIn(origin, long)).answer.status).toBe(way === "keys" ? 200 : 401);
});

test("cookies go on at another server with the same key, and with no other", async () => {
  const { service } = await waiting();
  const first = await openSite(service, {}, TLS);
  const { cookie } = await logIn(first.origin, "mine", {}, SECURE);
  const second = await openSite(service, {}, TLS);
  const status = async ({ origin }: { origin: string }, sent: string) =>
    (await holder(origin, { cookie: sent }, SECURE).get("/")).status;
  expect(await status(second, cookie)).toBe(200);
  await first.close();
  const other = await openSite(service, { key: async () => Buffer.alloc(32, 8) }, TLS);
  expect(await status(other, cookie)).toBe(401);
  const [name = "", value = ""] = cookie.split("=");
  for (const bad of [`${value}x`, value.slice(0, -3), "", "a.b.c.d.e", `x${value}`]) {
    expect(await status(second, `${name}=${bad}`)).toBe(401);
  }
});

test("secrets of tabs end with their server, and are no cookies", async () => {
  const { service } = await waiting();
  const first = await openSite(service, {}, TLS);
  const { secret } = await logIn(first.origin, "mine");
  const { cookie } = await logIn(first.origin, "mine", {}, SECURE);
  const [name = "", value = ""] = cookie.split("=");
  const status = async (site: { origin: string }, sent: Parameters<typeof holder>[1]) =>
    (await holder(site.origin, sent).get("/")).status;
  expect(await status(first, { secret })).toBe(200);
  expect(await status(first, { secret: value })).toBe(401);
  expect(await status(first, { cookie: `${name}=${secret}` })).toBe(401);
  const second = await openSite(service, {}, TLS);
  expect(await status(second, { secret })).toBe(401);
});

test.each([
  ["a tab that has a secret", {}],
  ["a browser that has a cookie", SECURE],
])("logging out ends the session, also for somebody who has a copy of it: %s", async (_who, headers) => {
  const { origin } = await openSite((await waiting()).service, {}, TLS);
  const me = await logIn(origin, "mine", {}, headers);
  expect((await me.get("/")).status).toBe(200);
  expect((await me.post("/logout", {}, { origin: "https://attacker.example" })).status).toBe(403);
  expect((await me.get("/logout")).status).toBe(404);
  const out = await me.post("/logout", {});
  expect([out.status, JSON.parse(out.body)]).toEqual([200, { at: "/login" }]);
  if (me.cookie === "") expect(out.headers[PROOF_HEADER]).toMatch(/^[\w-]{43}$/);
  else expect(out.headers["set-cookie"]?.[0]).toContain("Max-Age=0");
  expect((await me.get("/")).status).toBe(401);
});

test("an open page ends with its token", async () => {
  const { service } = await waiting();
  const site = await openSite(service);
  const { secret } = await logIn(site.origin, "mine");
  const text = await new Promise<string>((resolve, reject) => {
    const headers = { [SECRET_HEADER]: secret, accept: "text/event-stream" };
    const request = httpRequest(`${site.origin}/`, { headers }, (response) => {
      let received = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk;
        if (received.includes("event: snapshot")) site.tokens.length = 0;
      });
      response.once("end", () => resolve(received));
    });
    request.once("error", reject).end();
  });
  expect(text.match(/^event: snapshot$/gm)).toHaveLength(1);
});

test("below a path of a public address all addresses of the page are there", async () => {
  const { service, id } = await waiting();
  const publicUrl = new URL("https://agent.example/deep/");
  const { origin } = await openSite(service, { publicUrl }, { allowedHosts: ["agent.example"] });
  const me = await logIn(origin, "mine", { next: `/runs/${id}` }, SECURE);
  expect(me.at).toBe(`/deep/runs/${id}`);
  const document = await send(`${origin}/`, { method: "GET", headers: { host: "agent.example" } });
  expect(document.body).toContain('<script src="/deep/assets/page.js" defer>');
  const { body } = await me.get(`/runs/${id}`);
  expect(body).toContain(`href="/deep/runs/${id}/work"`);
  expect(
    [...body.matchAll(/\b(?:href|src|action|address)="(\/[^"]*)/g)].filter(
      ([, to]) => !to?.startsWith("/deep/"),
    ),
  ).toEqual([]);
  expect((await me.post("/start", { task: "x" }, { origin })).status).toBe(403);
});

test("what is no address of the page answers as before", async () => {
  const { origin } = await openSite((await waiting()).service);
  const stranger = holder(origin, {});
  expect((await stranger.get("/mcp")).headers["content-type"]).toContain("json");
  expect((await stranger.get("/authorize")).status).toBe(401);
  expect((await send(`${origin}/`, { body: "{}" })).headers["content-type"]).toContain("json");
  const asset = await stranger.get("/assets/page.css");
  expect([asset.status, asset.headers["content-type"]]).toEqual([200, "text/css; charset=utf-8"]);
});

test("without tokens there is no page", async () => {
  const { origin } = await openSite((await waiting()).service, {}, { authenticator: undefined });
  expect((await holder(origin, {}).get("/")).status).toBe(404);
});
