import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { send } from "../support/clients-raw.ts";
import type { CallOutcome, TestClient } from "../support/clients.ts";
import { connect, openHome } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { entry } from "../server/auth/support.ts";
import { SECURE, holder, logIn } from "../server/page/log-in-support.ts";
import { runIdOf, writeFile } from "./support.ts";

const PUBLIC = "https://agent.example/deep/";

/** The report of the run once it waits for a person. */
async function untilWaiting(client: TestClient, id: string): Promise<CallOutcome> {
  let answer = await client.call("check_deep_agent", { run_id: id });
  while (answer.structured["status"] === "working")
    answer = await client.call("check_deep_agent", { run_id: id });
  return answer;
}

async function open(settings: object = {}) {
  const brain = play({ "Change a file": [{ toolCalls: [writeFile("/workspace/a.md", "new\n")] }] });
  const home = await openHome({ think: brain });
  const config = join(home.workspace, "../config.json");
  const http = { port: 0, publicUrl: PUBLIC, tokens: [entry("alice-token", "alice")] };
  writeFileSync(config, JSON.stringify({ http, delivery: { window: 1 }, ...settings }));
  return () => serveHttp(home, ["--config", config, "--log-level", "info"]);
}

test("a result links to the page, which its person opens after a log-in, also at a server that is started again", async () => {
  const serve = await open();
  const first = await serve();
  await expect.poll(() => first.child.errors()).toContain(`"page.started","address":"${PUBLIC}"`);
  const client = await connect(httpConnector(first.url, "alice-token"), "v2-modern");
  const started = await client.call("run_deep_agent", { task: "Change a file" });
  const id = runIdOf(started);
  const waiting = await untilWaiting(client, id);
  expect(waiting.text).toContain(`Tell the user to decide on the page of this run: ${PUBLIC}runs/${id}, or `);
  expect(waiting.text.split(`runs/${id}`)).toHaveLength(2);
  expect(waiting.text).not.toContain("allowModelAnswers");
  const { origin } = new URL(first.url);
  const { cookie, at } = await logIn(origin, "alice-token", { next: `/runs/${id}` }, SECURE);
  expect(at).toBe(`/deep/runs/${id}`);
  await client.close();
  first.child.process.kill("SIGTERM");
  await first.child.exited;
  const second = await serve();
  const page = await holder(new URL(second.url).origin, { cookie }, SECURE).get(`/runs/${id}`);
  expect([page.status, page.body.includes("Change a file")]).toEqual([200, true]);
  expect(first.child.errors() + second.child.errors()).not.toContain("alice-token");
});

test("without a public address a result links to the host of its request, and approvals are decided there", async () => {
  const serve = await open({ http: { port: 0, tokens: [entry("alice-token", "alice")] } });
  const { url } = await serve();
  const { origin } = new URL(url);
  const client = await connect(httpConnector(url, "alice-token"), "v2-modern");
  const id = runIdOf(await client.call("run_deep_agent", { task: "Change a file" }));
  const waiting = await untilWaiting(client, id);
  const [, link = ""] = /decide on the page of this run: (\S+),/.exec(waiting.text) ?? [];
  expect(link).toBe(`${origin}/runs/${id}`);
  expect(waiting.structured).toMatchObject({ status: "input_required", page: link });
  const person = await logIn(origin, "alice-token", { next: new URL(link).pathname });
  expect(person.at).toBe(`/runs/${id}`);
  const page = await person.get(person.at);
  expect([page.status, page.body.includes("Approve")]).toEqual([200, true]);
});

test("without the page there is neither a log-in nor a link", async () => {
  const serve = await open({ page: false });
  const { url, child } = await serve();
  const root = await send(new URL("/", url).href, { method: "GET" });
  expect([root.status, root.headers["content-type"]]).toEqual([401, "application/json"]);
  const client = await connect(httpConnector(url, "alice-token"), "v2-modern");
  const started = await client.call("run_deep_agent", { task: "Change a file" });
  expect(started.text).not.toContain("in a browser");
  expect(child.errors()).not.toContain("page.started");
});
