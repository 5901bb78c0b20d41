import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { send } from "../support/clients-raw.ts";
import { connect, openHome } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { entry } from "../server/auth/support.ts";
import { SECURE, holder, logIn } from "../server/page/log-in-support.ts";
import { runIdOf, writeFile } from "./support.ts";

const PUBLIC = "https://agent.example/deep/";

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
  expect(started.text).toContain(`to see the run in a browser: ${PUBLIC}runs/${id}`);
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
