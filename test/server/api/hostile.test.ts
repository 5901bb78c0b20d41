import { expect, test } from "vitest";
import { ROUTES } from "../../../src/server/api/routes.ts";
import { mine } from "../../runs/support.ts";
import { bearer, send } from "../../support/clients-raw.ts";
import { waitingRun } from "../page/support.ts";
import { plainRuns } from "../support.ts";
import { openApi } from "./support.ts";

const raw = (origin: string, path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  send(`${origin}/api${path}`, { headers: { ...bearer("mine"), ...headers }, body });

test("a body that is no JSON object, too long, too deep or packed is refused, and does nothing", async () => {
  const { origin, mine: me } = await openApi(plainRuns());
  const task = JSON.stringify({ task: "look" });
  const cases: [string | Buffer, Record<string, string>, number, string][] = [
    ["{", {}, 400, "invalid_input"],
    ["", {}, 400, "invalid_input"],
    ["[]", {}, 400, "invalid_input"],
    ["null", {}, 400, "invalid_input"],
    [Buffer.from([0x7b, 0xff, 0x7d]), {}, 400, "invalid_input"],
    ["[".repeat(300) + "]".repeat(300), {}, 400, "invalid_input"],
    [`{"task":"${"a".repeat(800_000)}"}`, {}, 413, "too_large"],
    [task, { "content-type": "text/plain" }, 415, "unsupported_media_type"],
    [task, { "content-type": "application/x-www-form-urlencoded" }, 415, "unsupported_media_type"],
    [task, { "content-encoding": "gzip" }, 415, "unsupported_media_type"],
  ];
  for (const [body, headers, status, code] of cases) {
    const answer = await raw(origin, "/runs", body, headers);
    expect([body.slice(0, 20).toString(), answer.status]).toEqual([body.slice(0, 20).toString(), status]);
    expect(JSON.parse(answer.body).error).toMatchObject({ code, message: expect.stringMatching(/\w/) });
  }
  expect((await me("GET /runs")).answer.runs).toEqual([]);
});

test("fields that are missing, unknown or of another type are named", async () => {
  const { mine: me } = await openApi(plainRuns());
  const problem = async (name: string, body?: unknown) => {
    const { status, answer } = await me(name, body);
    expect([name, status]).toEqual([name, 400]);
    return answer.error.message as string;
  };
  expect(await problem("POST /runs", {})).toContain("task");
  expect(await problem("POST /runs", { task: " \n" })).toContain("Write what the agent should do");
  expect(await problem("POST /runs", { task: "a".repeat(100_001) })).toContain("task");
  expect(await problem("POST /runs", { task: "look", limit: { cost_usd: 1 } })).toContain('"limit"');
  expect(await problem("POST /runs", { task: "look", limits: { cost: 1 } })).toContain("limits");
  expect(await problem("POST /runs", '{"task":"look","__proto__":{"a":1}}')).toContain("__proto__");
  expect(await problem("POST /runs", { task: "look", is_operators: true })).toContain("is_operators");
  expect(await problem("GET /runs?limit=0")).toContain("limit");
  expect(await problem("GET /runs?limit=501")).toContain("limit");
  expect(await problem("GET /runs?status=done")).toContain("status");
  expect(await problem("GET /files/content?path=a.md")).toContain("path");
  expect(await problem("GET /search?q=")).toContain("q");
  expect(await problem("POST /runs/x/requests/y", { shown: "z", answer: { type: "allow" } })).toContain(
    "answer",
  );
  const refused = await me("POST /runs", { task: "look", limits: { cost_usd: -1 } });
  expect([refused.status, refused.answer.error.code]).toEqual([422, "limit_not_allowed"]);
});

test("addresses that are not in the table, or not decodable, lead nowhere", async () => {
  const { service, runId } = await waitingRun("a");
  const { origin, mine: me } = await openApi(service);
  const status = async (path: string, method = "GET") =>
    (await send(`${origin}/api${path}`, { method, headers: bearer("mine") })).status;
  for (const path of [
    "/nothing",
    "/runs/",
    "/runs/%",
    "/runs/%2e%2e",
    "//runs",
    `/runs/${runId}/`,
    "/../api",
  ])
    expect([path, [200, 404].includes(await status(path))]).toEqual([path, true]);
  expect(await status("/nothing")).toBe(404);
  expect(await status("/runs/%")).toBe(404);
  expect(await status(`/runs/${"a".repeat(5000)}`)).toBe(404);
  expect(await status("/runs/__proto__")).toBe(404);
  expect(await status(`/runs/${runId}/constructor`)).toBe(404);
  expect(await status("/files/content?path=/../../etc/passwd")).not.toBe(200);
  const wrong = await send(`${origin}/api/runs/${runId}`, {
    method: "POST",
    headers: bearer("mine"),
    body: "{}",
  });
  expect([wrong.status, wrong.headers["allow"]]).toEqual([405, "GET, DELETE"]);
  expect(await status("/runs", "PUT")).toBe(405);
  expect((await me(`GET /runs/${runId}`)).status).toBe(200);
});

test("a principal has as many requests as over MCP, and is told when to go on", async () => {
  const { mine: me, bobs } = await openApi(plainRuns(), {}, { requestsPerMinute: 3 });
  for (let count = 0; count < 3; count += 1) expect((await me("GET /session")).status).toBe(200);
  const { status, headers, answer } = await me("GET /session");
  expect([status, answer.error.code]).toEqual([429, "too_many_requests"]);
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  expect((await bobs("GET /session")).status).toBe(200);
});

test("an unexpected error names a reference, and nothing of the server", async () => {
  const service = plainRuns();
  const lines: string[] = [];
  const error = (event: string, fields?: object): void =>
    void lines.push(JSON.stringify({ event, ...fields }));
  const logger = { error, warn: error, info: () => {}, debug: () => {} };
  const { mine: me } = await openApi(service, {
    logger: logger,
    // What opens the runs fails.
    runs: () => Promise.reject(new Error("no /home/me/secret-folder/runs.db")),
  });
  const { status, answer } = await me("GET /runs");
  expect([status, answer.error.code]).toEqual([500, "failed"]);
  expect(answer.error.message).not.toMatch(/secret-folder|\bat \w+|Error:/);
  const [reference = ""] = /[\da-f-]{36}/.exec(answer.error.message) ?? [];
  expect(lines.find((line) => line.includes("api.failed"))).toContain(reference);
});

test("nothing of a session, a credential or another principal is in an answer", async () => {
  const { service, runId } = await waitingRun("a");
  const { mine: me } = await openApi(service, { sharedRuns: async () => service });
  await me(`POST /runs/${runId}/links`, { expires_in: "day" });
  const answers = await Promise.all(
    ROUTES.filter(({ method, path }) => method === "GET" && !/:id|stream|changes/.test(path)).map(
      ({ path }) =>
        me(
          `GET ${path.replace(":run", runId)}${path.endsWith("content") ? "?path=/a.md" : path === "/search" ? "?q=a" : ""}`,
        ),
    ),
  );
  const text = JSON.stringify(answers.map(({ answer }) => answer));
  expect(text).not.toMatch(/credential|madeWith|sha256|environment|leasedUntil|interruptId/);
  expect((await mine(service).access.list())[0]?.credential).toBeDefined();
});
