import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLogger } from "../../../src/core/logger.ts";
import { metricsText } from "../../../src/server/http/operations.ts";
import { RateLimit } from "../../../src/server/http/admission.ts";
import type { HttpOptions } from "../../../src/server/http/http.ts";
import { bearer, INITIALIZE, send } from "../../support/clients-raw.ts";
import { entry, withTokens } from "../auth/support.ts";
import { serve as serveFixture } from "./support.ts";

const runs = { working: 2, input_required: 1, completed: 40, failed: 0, cancelled: 3 };
const STATISTICS = { runs, pendingApprovals: 5, waiting: 7, atWork: 2, newsLagMs: 4 };

const serve = (options: Partial<HttpOptions> = {}) =>
  serveFixture({ statistics: async () => STATISTICS, ...options });

const get = (url: string, headers: Record<string, string> = {}) => send(url, { method: "GET", headers });
const carol = entry("runs-only", "carol", ["run"]);
const authenticator = withTokens(entry("alice-token", "alice"), entry("bob-token", "bob"), carol);

test("refused tokens and missing scopes are logged with address and principal, and never flood the log", async () => {
  const lines: string[] = [];
  const logger = createLogger("info", (line) => lines.push(line));
  const { url } = await serve({ authenticator, logger, refusalsPerMinute: 3 });
  await send(url, { body: INITIALIZE });
  for (let tries = 0; tries < 10; tries += 1) await send(url, { body: INITIALIZE, headers: bearer("guess") });
  const call = { jsonrpc: "2.0", id: 1, method: "resources/list" };
  await send(url, { body: JSON.stringify(call), headers: bearer("runs-only") });
  const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const address = "127.0.0.1";
  expect(logged.map(({ time: _time, level: _level, ...rest }) => rest)).toEqual([
    ...Array.from({ length: 3 }, () => ({ event: "auth.refused", reason: "invalid_token", address })),
    { event: "auth.scope_missing", principal: "carol", scopes: ["read"] },
  ]);
});

describe("probes", () => {
  test.each([undefined, authenticator])("are answered without a token and under any Host", async (auth) => {
    const { origin } = await serve({ authenticator: auth });
    for (const path of ["/healthz", "/readyz"]) {
      expect(await get(origin + path, { host: "10.1.2.3:80" })).toMatchObject({ status: 200, body: "ok\n" });
      expect((await send(origin + path, { body: "{}" })).status).toBe(405);
    }
  });

  test("a server that cannot store runs lives but is not ready, and says no more than that", async () => {
    let now = 0;
    let broken = true;
    const { origin } = await serve({
      clock: () => now,
      assertReady: () => (broken ? Promise.reject(new Error("/secret/path")) : Promise.resolve()),
    });
    expect((await get(`${origin}/healthz`)).status).toBe(200);
    expect(await get(`${origin}/readyz`)).toMatchObject({ status: 503, body: "not ready\n" });
    broken = false;
    now = 1000;
    expect((await get(`${origin}/readyz`)).status).toBe(200);
  });

  test("a process that only works answers probes and numbers, and no MCP", async () => {
    const { origin, url } = await serve({ takesRequests: false });
    expect((await get(`${origin}/readyz`)).status).toBe(200);
    expect((await get(`${origin}/metrics`)).body).toContain("deepagent_runs_waiting 7");
    expect(await send(url, { body: INITIALIZE })).toMatchObject({
      status: 404,
      body: expect.stringContaining("serves no MCP"),
    });
  });

  test("many questions at once look once", async () => {
    let reads = 0;
    const assertReady = async () => {
      reads += 1;
    };
    const { origin } = await serve({ assertReady, clock: () => 5 });
    await Promise.all(Array.from({ length: 20 }, () => get(`${origin}/readyz`)));
    expect(reads).toBe(1);
  });
});

describe("metrics", () => {
  test("show runs, approvals, requests, sessions and memory", async () => {
    const { url, origin } = await serve();
    expect((await send(url, { body: INITIALIZE })).status).toBe(200);
    expect((await send(url, { body: "{" })).status).toBe(400);
    const lines = async () => (await get(`${origin}/metrics`)).body.split("\n");
    await expect.poll(lines).toContain('deepagent_http_requests_total{code="400"} 1');
    const { body, headers } = await get(`${origin}/metrics`);
    expect(headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    for (const line of [
      "# TYPE deepagent_runs gauge",
      'deepagent_runs{status="completed"} 40',
      'deepagent_runs{status="input_required"} 1',
      "deepagent_approvals_pending 5",
      "deepagent_runs_waiting 7",
      "deepagent_runs_waiting_oldest_seconds 0",
      "deepagent_runs_at_work 2",
      "deepagent_news_lag_seconds 0.004",
      "# TYPE deepagent_http_requests_total counter",
      "deepagent_http_sessions 1",
    ]) {
      expect(body.split("\n")).toContain(line);
    }
    expect(body).toMatch(/^process_resident_memory_bytes \d{7,}$/m);
  });

  test("are in the text format of Prometheus, to the last line", async () => {
    const { url, origin } = await serve({ authenticator });
    await send(url, { body: INITIALIZE });
    await send(url, { body: INITIALIZE, headers: bearer("alice-token") });
    const { body } = await get(`${origin}/metrics`, bearer("alice-token"));
    expect(body.endsWith("\n")).toBe(true);
    const families = new Map<string, string>();
    const series = new Set<string>();
    let current = "";
    for (const line of body.slice(0, -1).split("\n")) {
      const [, comment, name = "", rest = ""] =
        /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
      if (comment === "HELP") {
        expect(families.has(name)).toBe(false);
        families.set(name, "");
        current = name;
      } else if (comment === "TYPE") {
        expect([name, families.get(name)]).toEqual([current, ""]);
        expect(["counter", "gauge"]).toContain(rest);
        expect(rest === "counter").toBe(name.endsWith("_total"));
        families.set(name, rest);
      } else {
        const sample =
          /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"\})? (\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(
            line,
          );
        expect([line, sample?.[1]]).toEqual([line, current]);
        const id = `${sample?.[1]}${sample?.[2] ?? ""}`;
        expect(series.has(id)).toBe(false);
        series.add(id);
      }
    }
    expect(series).toContain('deepagent_http_auth_refusals_total{reason="no_token"}');
    expect(series).toContain('deepagent_runs{status="working"}');
  });

  test("with authentication they need a token that may read", async () => {
    const { origin } = await serve({ authenticator });
    expect((await get(`${origin}/metrics`)).status).toBe(401);
    expect((await get(`${origin}/metrics`, bearer("runs-only"))).status).toBe(403);
    expect((await get(`${origin}/metrics`, bearer("alice-token"))).body).toContain("deepagent_runs");
  });

  test("every label value is one quoted string on one line", () => {
    fc.assert(
      fc.property(fc.string(), (label) => {
        const metric = {
          name: "m",
          help: "h",
          type: "gauge" as const,
          values: [{ labels: { label }, value: 1 }],
        };
        const [, , line = ""] = metricsText([metric]).split("\n");
        const quoted = /^m\{label="((?:[^"\\]|\\[\\"n])*)"\} 1$/s.exec(line)?.[1] ?? "no match";
        expect(quoted.replaceAll(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c))).toBe(label);
      }),
    );
  });
});

describe("rate limit", () => {
  test("one principal's requests leave those of another alone", async () => {
    let now = 0;
    const { url } = await serve({ authenticator, requestsPerMinute: 2, clock: () => now });
    const ask = (token: string) => send(url, { body: "{", headers: bearer(token) });
    expect((await ask("alice-token")).status).toBe(400);
    expect((await ask("alice-token")).status).toBe(400);
    const refused = await ask("alice-token");
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("30");
    expect((await ask("bob-token")).status).toBe(400);
    expect((await ask("unknown")).status).toBe(401);
    now = 30_000;
    expect((await ask("alice-token")).status).toBe(400);
    expect((await ask("alice-token")).status).toBe(429);
  });

  test("lets through what the rate allows, in any pattern, and no more", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 200 }),
        (perMinute, pauses) => {
          let now = 0;
          const limit = new RateLimit({ perMinute, clock: () => now });
          let passed = 0;
          for (const pause of pauses) {
            now += pause;
            const wait = limit.take("p");
            if (wait > 0) {
              // Whoever waits as long as it was told gets through.
              now += wait * 1000;
              expect(limit.take("p")).toBe(0);
            }
            passed += 1;
          }
          expect(passed).toBeLessThanOrEqual(perMinute + (now * perMinute) / 60_000 + 1e-6);
        },
      ),
    );
  });
});
