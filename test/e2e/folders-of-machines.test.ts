// @module-tag long
import { cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, openHome, type Home } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { startProgram } from "../support/harness-process.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";

/** Two machines of one test: what is at the path of the workspace is exchanged before the second one starts. */
describe("servers on one Postgres with their own folders at one path", { tags: "postgres" }, () => {
  let postgres: PostgresServer;
  let homes = 0;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres.stop());

  const openShared = async (): Promise<Home> => {
    homes += 1;
    const env = { DEEPAGENT_STORAGE: postgres.url, DEEPAGENT_STORAGE_SCHEMA: `folders_${homes}` };
    return openHome({ think: play({ "Say hello": [{ text: "hello" }] }), env });
  };

  test.each([
    ["serve --http", ["serve", "--http", "--port", "0"]],
    ["work", ["work"]],
  ])("%s is refused with what to do", async (_name, args) => {
    const home = await openShared();
    const first = await serveHttp(home);
    const client = await connect(first.connector, "v2-modern");
    await client.call("run_deep_agent", { task: "Say hello" });
    renameSync(home.workspace, `${home.workspace}-first`);
    // The copy has the mark of the folder, too.
    cpSync(`${home.workspace}-first`, home.workspace, { recursive: true });
    const second = await startProgram(args, home.env);
    expect((await second.exited).code).toBe(2);
    expect(second.errors()).toContain("The workspace is another folder");
    expect(second.errors()).toContain("workspacePerMachine");
    expect(second.errors()).not.toMatch(/\n\s+at /);
    // The folder of the first one is welcome.
    rmSync(home.workspace, { recursive: true });
    renameSync(`${home.workspace}-first`, home.workspace);
    await serveHttp(home);
  });

  test("is taken with workspacePerMachine, and once the other is gone", async () => {
    const home = await openShared();
    const first = await serveHttp(home);
    renameSync(home.workspace, `${home.workspace}-first`);
    mkdirSync(home.workspace);
    const own = { env: { ...home.env, DEEPAGENT_WORKSPACE_PER_MACHINE: "true" } };
    const second = await connect((await serveHttp(own)).connector, "v2-modern");
    expect(await second.call("run_deep_agent", { task: "Say hello" })).toMatchObject({
      structured: { status: "completed" },
    });
    first.child.process.kill("SIGTERM");
    expect((await first.child.exited).code).toBe(0);
    await serveHttp(home);
  });
});
