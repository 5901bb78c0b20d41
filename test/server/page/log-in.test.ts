import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import type { Logger } from "../../../src/core/logger.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { createAuthenticator, authInfoOf } from "../../../src/server/auth/auth.ts";
import { ME, note, reach, startRun } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { HOUR, RESOURCE, WAYS, authenticated, openIssuer } from "../auth/issuer.ts";
import { approvalRuns } from "../support.ts";
import { holder, logIn, openSite } from "./log-in-support.ts";

/** A run of ME that waits for a person. */
async function waiting() {
  const { service, notes } = approvalRuns(note("a"));
  const { id } = await startRun(service, "note it");
  const view = await reach(service, id, "input_required");
  return { service, notes, id, approval: view.approvals[0]?.id ?? "" };
}

test("nobody sees anything without a token, and a good one opens the page that was asked for", async () => {
  const { service, id } = await waiting();
  const { origin } = await openSite(service);
  const stranger = holder(origin, "");
  for (const path of ["/", `/runs/${id}`, "/files", "/review", "/runs/run_none"]) {
    const { status, body, headers } = await stranger.get(path);
    expect([path, status]).toEqual([path, 401]);
    expect(body).toContain('type="password"');
    expect(body).toContain(`name="next" value="${path}"`);
    expect(body).not.toContain("note it");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["cache-control"]).toBe("no-store");
  }
  const me = await logIn(origin, " mine ", { next: `/runs/${id}/work?events=all` });
  expect(me.answer.status).toBe(303);
  expect(me.answer.headers.location).toBe(`/runs/${id}/work?events=all`);
  expect((await me.get(`/runs/${id}`)).body).toContain("note it");
  expect((await me.get("/")).body).toContain("Log out");
});

test("the cookie is only for this page and server, ends, and does not show the token", async () => {
  const { origin } = await openSite((await waiting()).service);
  const { setCookie, cookie } = await logIn(origin, "mine");
  expect(setCookie).toMatch(
    /^deepagent_login_\w+=[\w.-]+; Path=\/; Max-Age=43(?:200|199); HttpOnly; SameSite=Strict$/,
  );
  const parts = (cookie.split("=")[1] ?? "")
    .split(".")
    .map((part) => Buffer.from(part, "base64url").toString());
  expect(parts.join(" ")).not.toMatch(/mine|local/);
  const { host } = new URL(origin);
  const secure = await logIn(origin, "mine", {}, { origin: `https://${host}` });
  expect(secure.setCookie).toMatch(/; Secure$/);
});

test("a bad token opens nothing, says nothing and is logged nowhere; too many end the trying", async () => {
  const logged: string[] = [];
  const log = (...line: unknown[]): void => void logged.push(JSON.stringify(line));
  const logger: Logger = { ...silentLogger, info: log, warn: log, error: log, debug: log };
  const { origin } = await openSite((await waiting()).service, { logger }, { logger, refusalsPerMinute: 3 });
  for (const status of [401, 401, 401, 429]) {
    const { answer, setCookie } = await logIn(origin, "guessed-token");
    expect([answer.status, setCookie]).toEqual([status, ""]);
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
  for (const path of [
    `/runs/${id}`,
    `/runs/${id}/review`,
    `/runs/${id}/files`,
    `/runs/${id}/changes?path=/a`,
  ]) {
    expect([path, (await bob.get(path)).status]).toEqual([path, 404]);
  }
  const decision = { approval, decision: "approve" };
  const foreign = await bob.post(`/runs/${id}/decide`, { ...decision, csrf: await bob.csrf() });
  expect(foreign.status).toBe(404);
  const me = await logIn(origin, "mine");
  const own = await me.post(`/runs/${id}/decide`, { ...decision, csrf: await me.csrf() });
  expect(own.status).toBe(303);
  const view = await reach(service, id, "completed");
  expect(view.approvals).toMatchObject([{ status: "approved", decidedBy: "page" }]);
  expect(notes).toEqual(["a"]);
});

test("forms of other sites, and without the session's secret, change nothing", async () => {
  const { service, id, approval } = await waiting();
  const { origin } = await openSite(service);
  const me = await logIn(origin, "mine");
  const csrf = await me.csrf();
  const form = { approval, decision: "approve", csrf };
  const path = `/runs/${id}/decide`;
  for (const [sent, headers] of [
    [{ ...form, csrf: "" }, {}],
    [{ ...form, csrf: await (await logIn(origin, "mine")).csrf() }, {}],
    [form, { origin: "https://attacker.example" }],
    [form, { origin: "null" }],
    [form, { host: "attacker.example" }],
  ] as const) {
    expect((await me.post(path, sent, headers)).status).toBe(403);
  }
  expect((await logIn(origin, "mine", {}, { origin: "https://attacker.example" })).answer.status).toBe(403);
  const unnamed = await send(`${origin}/login`, { body: "token=mine" });
  expect(unnamed.status).toBe(403);
  expect((await me.get("/", { host: "attacker.example" })).status).toBe(403);
  expect((await reach(service, id, "input_required")).approvals).toMatchObject([{ status: "pending" }]);
});

test.each([
  "//attacker.example/",
  "/\\attacker.example",
  "https://attacker.example/",
  "/\t/attacker.example",
])("the log-in leads to no other server: %j", async (next) => {
  const { origin } = await openSite((await waiting()).service);
  const { answer } = await logIn(origin, "mine", { next });
  expect(answer.status).toBe(303);
  expect(new URL(answer.headers.location ?? "", origin).origin).toBe(origin);
});

test("a token does on the page what its scopes allow", async () => {
  const { service, id, approval } = await waiting();
  const { origin } = await openSite(service);
  const looks = await logIn(origin, "only-looks");
  const { body } = await looks.get(`/runs/${id}/review`);
  expect(body).toContain("note");
  expect(body).not.toContain(`/runs/${id}/decide`);
  const csrf = await looks.csrf();
  const decided = await looks.post(`/runs/${id}/decide`, { approval, decision: "approve", csrf });
  expect(decided.status).toBe(403);
  expect((await looks.post("/start", { task: "x", csrf })).status).toBe(403);
  const runs = await logIn(origin, "only-runs");
  expect([runs.answer.status, runs.setCookie]).toEqual([403, ""]);
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
  const authenticator = createAuthenticator({
    verifiers: [
      (token) =>
        authInfoOf({
          principal: ME,
          scopes: ["read"],
          ...(token === "short" ? { expiresAt: now / 1000 + HOUR } : {}),
        }),
    ],
  });
  const { origin } = await openSite(service, { clock: () => now }, { authenticator });
  const short = await logIn(origin, "short");
  expect(short.setCookie).toMatch(/Max-Age=3(599|600);/);
  const long = await logIn(origin, "long");
  now += HOUR * 1000 + 1000;
  expect((await short.get("/")).status).toBe(401);
  expect((await long.get("/")).status).toBe(200);
  now += 11 * HOUR * 1000;
  expect((await long.get("/")).status).toBe(401);
});

test.each(WAYS)(
  "an access token of an authorization server opens the page of its holder: %s",
  async (way) => {
    const { service, id } = await waiting();
    const authority = await openIssuer();
    const { issuer, jwksUrl, introspection, revoke } = authority;
    const found = way === "keys" ? { jwksUrl } : { introspection };
    const { authenticator } = await authenticated({ oauth: { issuer, resource: RESOURCE, ...found } });
    const { origin } = await openSite(service, {}, { authenticator });
    const token = way === "keys" ? await authority.signed({}) : authority.opaque({});
    const alice = await logIn(origin, token);
    expect(alice.answer.status).toBe(303);
    expect((await alice.get("/")).status).toBe(200);
    expect((await alice.get(`/runs/${id}`)).status).toBe(404);
    const other =
      way === "keys" ? await authority.signed({ aud: "https://other.example" }) : authority.opaque({});
    if (way === "introspection") revoke(other);
    expect((await logIn(origin, other)).answer.status).toBe(401);
    expect((await logIn(origin, await authority.signed({ pad: "x".repeat(4000) }))).answer.status).toBe(
      way === "keys" ? 422 : 401,
    );
  },
);

test("sessions go on at another server with the same key, and with no other", async () => {
  const { service } = await waiting();
  const first = await openSite(service);
  const { cookie } = await logIn(first.origin, "mine");
  const second = await openSite(service);
  expect((await holder(second.origin, cookie).get("/")).status).toBe(200);
  await first.close();
  const other = await openSite(service, { key: async () => Buffer.alloc(32, 8) });
  expect((await holder(other.origin, cookie).get("/")).status).toBe(401);
  const [name = "", value = ""] = cookie.split("=");
  for (const bad of [`${value}x`, value.slice(0, -3), "", "a.b.c.d.e", `x${value}`]) {
    expect((await holder(second.origin, `${name}=${bad}`).get("/")).status).toBe(401);
  }
});

test("logging out ends the session, also for who has a copy of its cookie", async () => {
  const { origin } = await openSite((await waiting()).service);
  const me = await logIn(origin, "mine");
  expect((await me.post("/logout", { csrf: "wrong" })).status).toBe(403);
  expect((await me.get("/")).status).toBe(200);
  const out = await me.post("/logout", { csrf: await me.csrf() });
  expect([out.status, out.headers.location]).toEqual([303, "/login"]);
  expect(out.headers["set-cookie"]?.[0]).toContain("Max-Age=0");
  expect((await me.get("/")).status).toBe(401);
});

test("an open page ends with its token", async () => {
  const { service } = await waiting();
  const site = await openSite(service);
  const { cookie } = await logIn(site.origin, "mine");
  const text = await new Promise<string>((resolve, reject) => {
    const headers = { cookie, accept: "text/event-stream" };
    const request = httpRequest(`${site.origin}/`, { headers }, (response) => {
      let received = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk;
        if (received.includes("event: update")) site.tokens.length = 0;
      });
      response.once("end", () => resolve(received));
    });
    request.once("error", reject).end();
  });
  expect(text.match(/^event: update$/gm)).toHaveLength(1);
});

test("below a path of a public address all addresses of the page are there", async () => {
  const { service, id } = await waiting();
  const publicUrl = new URL("https://agent.example/deep/");
  const { origin } = await openSite(service, { publicUrl }, { allowedHosts: ["agent.example"] });
  const headers = { origin: publicUrl.origin, host: "agent.example" };
  const me = await logIn(origin, "mine", { next: `/runs/${id}` }, headers);
  expect(me.answer.headers.location).toBe(`/deep/runs/${id}`);
  expect(me.setCookie).toMatch(/; Path=\/deep\/; .*; Secure$/);
  const { body } = await me.get(`/runs/${id}`, headers);
  expect(body).toContain(`href="/deep/runs/${id}/work"`);
  expect(
    [...body.matchAll(/\b(?:href|src|action|address)="(\/[^"]*)/g)].filter(
      ([, to]) => !to?.startsWith("/deep/"),
    ),
  ).toEqual([]);
  expect((await me.post("/start", { task: "x" }, { host: "agent.example" })).status).toBe(403);
});

test("a link of another site asks once more, because browsers keep the cookie back then", async () => {
  const { origin } = await openSite((await waiting()).service);
  const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
  const { status, headers: answered } = await holder(origin, "").get("/review", headers);
  expect([status, answered["refresh"]]).toEqual([200, "0"]);
});

test("what is no address of the page answers as before", async () => {
  const { origin } = await openSite((await waiting()).service);
  const stranger = holder(origin, "");
  expect((await stranger.get("/mcp")).headers["content-type"]).toContain("json");
  expect((await stranger.get("/authorize")).status).toBe(401);
  expect((await send(`${origin}/`, { body: "{}" })).headers["content-type"]).toContain("json");
  const asset = await stranger.get("/assets/page.css");
  expect([asset.status, asset.headers["content-type"]]).toEqual([200, "text/css; charset=utf-8"]);
});

test("without tokens there is no page", async () => {
  const { origin } = await openSite((await waiting()).service, {}, { authenticator: undefined });
  expect((await holder(origin, "").get("/")).status).toBe(404);
});
