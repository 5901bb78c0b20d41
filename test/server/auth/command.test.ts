import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { INITIALIZE, send } from "../../support/clients-raw.ts";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { startProgram } from "../../support/harness-process.ts";

const GUIDE = join(import.meta.dirname, "../../../docs/http.md");

test("a token made as the guide says opens a server that listens beyond this machine", async () => {
  const [, program = ""] = /^node -e '(const c=require.*)'$/m.exec(readFileSync(GUIDE, "utf8")) ?? [];
  const [token = "", hash] = execFileSync(process.execPath, ["-e", program], { encoding: "utf8" }).split(
    "\n",
  );
  const home = await openHome({ think: play({}) });
  const config = join(home.workspace, "../config.json");
  const tokens = [{ sha256: hash, principal: "alice" }];
  writeFileSync(config, JSON.stringify({ http: { host: "0.0.0.0", port: 0, tokens } }));

  const child = await startProgram(["serve", "--http", "--config", config], home.env);
  const find = (): string => /Serving MCP at (\S+)/.exec(child.errors())?.[1] ?? "";
  await expect.poll(find).not.toBe("");
  const { port } = new URL(find());
  const url = `http://127.0.0.1:${port}/mcp`;
  const headers = { authorization: `Bearer ${token}` };
  expect((await send(url, { body: INITIALIZE })).status).toBe(401);
  expect((await send(url, { body: INITIALIZE, headers })).status).toBe(200);
  const ready = `http://127.0.0.1:${port}/readyz`;
  expect(await send(ready, { method: "GET" })).toMatchObject({ status: 200, body: "ok\n" });
  const metrics = await send(`http://127.0.0.1:${port}/metrics`, { method: "GET", headers });
  expect(metrics.body).toContain('deepagent_runs{status="working"} 0');
});

test("a token in the wrong form ends the start, and is not repeated", async () => {
  const home = await openHome({ think: play({}) });
  const config = join(home.workspace, "../config.json");
  const tokens = [{ sha256: "the-token-itself", principal: "alice" }];
  writeFileSync(config, JSON.stringify({ http: { tokens } }));
  const child = await startProgram(["serve", "--http", "--config", config], home.env);
  expect(await child.exited).toMatchObject({ code: 2 });
  expect(child.errors()).toContain("http.tokens[0].sha256");
  expect(child.errors()).not.toContain("the-token-itself");
});
