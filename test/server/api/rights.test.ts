import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../src/server/api/routes.ts";
import { answerApi } from "../../../src/server/api/api.ts";
import { ME, mine, reach, startRun } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { logIn } from "../page/log-in-support.ts";
import { openPages, visit, waitingRun } from "../page/support.ts";
import { plainRuns } from "../support.ts";
import { ask, openApi } from "./support.ts";

/** A body that each route with one accepts. */
const BODIES: Readonly<Record<string, object>> = {
  "POST /runs": { task: "look" },
  "POST /runs/:run/continue": { task: "look again" },
  "POST /runs/:run/messages": { text: "hello" },
  "POST /runs/:run/name": { name: "mine" },
  "POST /runs/:run/links": { expires_in: "hour" },
  "POST /runs/:run/requests/:id": { shown: "x", answer: { type: "approve" } },
  "POST /runs/:run/requests/:id/check": { shown: "x", answer: { type: "approve" } },
  "POST /runs/:run/changes": { choice: { apply: {}, shown: {} } },
  "POST /memories": { path: "/memories/a.md", content: "", version: "" },
  "POST /schedules": { task: "look", expression: "@daily" },
  "POST /schedules/:id": { task: "look" },
};
const QUERIES: Readonly<Record<string, string>> = {
  "GET /files/content": "?path=/a.md",
  "GET /runs/:run/files/content": "?path=/a.md",
  "DELETE /memories": "?path=/memories/a.md",
  "GET /search": "?q=a",
};
const named = ROUTES.map(({ method, path, scopes }) => ({ name: `${method} ${path}`, scopes }));
const addressed = (name: string, run: string, id: string): string =>
  name.replace(":run", run).replace(":id", encodeURIComponent(id)) + (QUERIES[name] ?? "");
const bodyOf = (name: string): object | undefined =>
  BODIES[name] ?? (name.startsWith("POST") ? {} : undefined);

const TOKENS = [
  ["only-looks", "read"],
  ["only-runs", "run"],
  ["only-approves", "approve"],
] as const;

describe("each route", () => {
  test("wants a token, with the scopes of the table, and these are enough", async () => {
    const { as } = await openApi(plainRuns());
    for (const { name, scopes } of named) {
      const at = addressed(name, "run_none", "none");
      const none = await as("")(at, bodyOf(name));
      expect([name, none.status, none.answer.error.code]).toEqual([name, 401, "unauthorized"]);
      expect(none.headers["www-authenticate"]).toMatch(/^Bearer/);
      expect((await as("wrong")(at, bodyOf(name))).status).toBe(401);
      for (const [token, scope] of TOKENS) {
        const { status, answer, headers } = await as(token)(at, bodyOf(name));
        const isEnough = scopes.every((one) => one === scope);
        expect([name, token, status === 403]).toEqual([name, token, !isEnough]);
        if (isEnough) expect([name, status]).not.toEqual([name, 401]);
        else expect(answer.error.code).toBe("insufficient_scope");
        if (!isEnough) expect(headers["www-authenticate"]).toContain(`scope="${scopes.join(" ")}"`);
      }
    }
  });

  test("answers about what is another principal's as about what does not exist", async () => {
    const { service, runId, view } = await waitingRun("a");
    const { bobs, mine: me } = await openApi(service);
    const schedule = await me("POST /schedules", { task: "look", expression: "@daily" });
    const id = view.requests[0]?.id ?? "";
    for (const { name } of named.filter((one) => one.name.includes(":"))) {
      const own = name.includes("/schedules/") ? schedule.answer.schedule.id : id;
      const foreign = await bobs(addressed(name, runId, own), bodyOf(name));
      const unknown = await bobs(addressed(name, "run_none", "none"), bodyOf(name));
      expect([name, foreign.status]).toEqual([name, name.includes("/servers/") ? 422 : 404]);
      expect([name, foreign.answer]).toEqual([name, unknown.answer]);
    }
    for (const name of ["GET /runs", "GET /requests", "GET /schedules", "GET /access", "GET /rules"])
      expect(JSON.stringify((await bobs(name)).answer)).not.toContain(runId);
    expect((await bobs("GET /requests")).answer).toEqual({ requests: [], total: 0 });
    expect((await mine(service).read.view(runId))?.requests[0]?.status).toBe("pending");
  });
});

test("pages of other origins are refused, unless they are allowed and have a token", async () => {
  const { origin, mine: me } = await openApi(plainRuns(), {}, { allowedOrigins: ["https://app.example"] });
  const start = { task: "look" };
  const evil = await send(`${origin}/api/runs`, {
    headers: { authorization: "Bearer mine", origin: "https://evil.example" },
    body: JSON.stringify(start),
  });
  expect(evil.status).toBe(403);
  const rebound = await send(`${origin}/api/runs`, { method: "GET", headers: { host: "evil.example" } });
  expect(rebound.status).toBe(403);
  expect((await me("GET /runs")).answer.runs).toEqual([]);
  const own = await me("POST /runs", start, { origin: "https://app.example" });
  expect([own.status, own.headers["access-control-allow-origin"]]).toEqual([200, "https://app.example"]);
  const preflight = { origin: "https://app.example", "access-control-request-method": "DELETE" };
  const allowed = await send(`${origin}/api/runs/x`, { method: "OPTIONS", headers: preflight });
  expect(allowed.headers["access-control-allow-methods"]).toContain("DELETE");
  expect(String(allowed.headers["access-control-allow-headers"])).not.toContain("page-session");
});

test("a tab of the page has its rights, a proof in each answer, and no other origin beside it", async () => {
  const { service, runId } = await waitingRun("a");
  const { origin } = await openApi(service);
  const { secret } = await logIn(origin, "mine");
  const tab = { "page-session": secret };
  const seen = await ask(origin, "", `GET /runs/${runId}`, undefined, tab);
  expect([seen.status, seen.headers["page-proof"]]).toEqual([200, expect.stringMatching(/\S/)]);
  const rename = { name: "by the page" };
  expect((await ask(origin, "", `POST /runs/${runId}/name`, rename, { ...tab, origin })).status).toBe(200);
  const from = async (headers: Record<string, string>) =>
    (
      await send(`${origin}/api/runs/${runId}/name`, {
        headers: { ...tab, ...headers },
        body: JSON.stringify({ name: "by another" }),
      })
    ).status;
  expect(await from({ origin: "https://evil.example" })).toBe(403);
  expect(await from({ origin: "http://127.0.0.1:1" })).toBe(403);
  expect(await from({ origin, "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await from({})).toBe(403);
  expect((await mine(service).read.view(runId))?.run.name).toBe("by the page");
  expect((await ask(origin, "", `GET /runs/${runId}`, undefined, { "page-session": "made-up" })).status).toBe(
    401,
  );
});

test("links of the local page open the API for their run or for all, to look or to decide", async () => {
  const { service, runId } = await waitingRun("a");
  const other = await startRun(service, "another");
  const pages = await openPages(service, undefined, { api: answerApi });
  const origin = new URL(pages.address).origin;
  const at = async (link: Parameters<typeof pages.link>[0]) => {
    const { headers } = await visit(pages.link(link));
    return (name: string, body?: unknown) => ask(origin, "", name, body, { ...headers, origin });
  };
  const all = await at({ principal: ME, purpose: "decide" });
  expect((await all("GET /runs")).answer.runs).toHaveLength(2);
  expect((await all("GET /session")).answer.scopes).toEqual(["run", "approve", "read"]);
  const watching = await at({ principal: ME, purpose: "watch", run: runId });
  expect((await watching(`GET /runs/${runId}`)).status).toBe(200);
  expect((await watching(`GET /runs/${other.id}`)).status).toBe(404);
  expect((await watching("GET /runs")).status).toBe(404);
  expect((await watching(`POST /runs/${runId}/cancel`, {})).status).toBe(403);
  expect((await ask(origin, "", "GET /runs", undefined, { origin })).status).toBe(401);
  expect((await ask(origin, "mine", "GET /runs", undefined, { origin })).status).toBe(401);
});

test("a shared link shows the page of its run, and has no API", async () => {
  const service = plainRuns();
  const run = await startRun(service, "look");
  await reach(service, run.id, "completed");
  const { origin, mine: me } = await openApi(service, { sharedRuns: async () => service });
  const made = await me(`POST /runs/${run.id}/links`, { expires_in: "hour" });
  expect(made.answer.address).toMatch(/^\/shared#shared\./);
  const tab = { "page-session": made.answer.address.split("#")[1] };
  const seen = await send(`${origin}/runs/${run.id}`, { method: "GET", headers: tab });
  expect(seen.status).toBe(200);
  for (const name of [`GET /runs/${run.id}`, `GET /runs/${run.id}/stream`, "GET /runs", "GET /session"])
    expect((await ask(origin, "", name, undefined, { ...tab, origin })).answer.error.code).toBe("not_found");
  const [link] = (await me("GET /access")).answer.access;
  expect(link).toMatchObject({ kind: "link", run_id: run.id });
  expect((await me(`DELETE /access/${link.id}`)).status).toBe(200);
  expect((await me(`DELETE /access/${link.id}`)).status).toBe(404);
});

test("without tokens the HTTP server has no API", async () => {
  const { origin } = await openApi(plainRuns(), {}, { authenticator: undefined });
  for (const name of ["runs", "session", ""])
    expect((await send(`${origin}/api/${name}`, { method: "GET" })).status).toBe(404);
});
