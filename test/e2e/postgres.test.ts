import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connect, openHome, type Home } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { startProgram } from "../support/harness-process.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { APPROVE, delegate, inWorkspace, person, runIdOf, untilStatus, writeFile } from "./support.ts";

describe("servers on one Postgres", { tags: "postgres" }, () => {
  let postgres: PostgresServer;
  let homes = 0;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres.stop());

  const openShared = async (
    script: Parameters<typeof play>[0],
    env: Record<string, string> = {},
  ): Promise<Home> => {
    homes += 1;
    const storage = { DEEPAGENT_STORAGE: postgres.url, DEEPAGENT_STORAGE_SCHEMA: `e2e_${homes}` };
    return openHome({ think: play(script), env: { ...storage, ...env } });
  };
  /** A server with the same folder and nothing else of the first one's machine. */
  const serveElsewhere = (home: Home, name: string) =>
    serveHttp({ env: { ...home.env, DEEPAGENT_DATA_DIR: `${home.dataDir}-${name}` } });

  test("a run that one works on is followed, decided and read through the other", async () => {
    const home = await openShared({
      "Write two files": [
        { toolCalls: [writeFile("/memories/likes.md", "short answers\n")] },
        { toolCalls: [writeFile("/workspace/new.md", "new\n")] },
        { text: "written" },
      ],
    });
    const [first, second] = [await serveHttp(home), await serveElsewhere(home, "b")];
    const runId = runIdOf(
      await (await connect(first.connector, "v1")).call("run_deep_agent", { task: "Write two files" }),
    );
    const { answer, forms } = person({ "new.md": APPROVE });
    const other = await connect(second.connector, "v2-modern", answer);
    expect(await untilStatus(other, runId, "completed")).toMatchObject({ answer: "written" });
    expect(forms).toHaveLength(1);
    expect(inWorkspace(home, "new.md")).toBe("new\n");
    expect(JSON.stringify(await other.readResource("deepagent://files/memories/likes.md"))).toContain(
      "short answers",
    );
    expect(wronglyAnswered(home.brain)).toEqual([]);
  });

  test(
    "a client of the newest revision is served by any of them, request by request",
    { tags: "long" },
    async () => {
      const home = await openShared({
        "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
      });
      const servers = [
        await serveHttp(home),
        await serveElsewhere(home, "b"),
        await serveElsewhere(home, "c"),
      ];
      const { url, counts } = await spread(servers.map((server) => server.url));
      const { answer, forms } = person({ "new.md": APPROVE });
      const client = await connect(httpConnector(url), "v2-modern", answer);
      const done = await client.call("run_deep_agent", { task: "Write one file" });
      expect(await untilStatus(client, runIdOf(done), "completed")).toMatchObject({ answer: "written" });
      expect(forms).toHaveLength(1);
      expect(counts.filter((count) => count > 0)).toHaveLength(3);
    },
  );

  test(
    "servers that take requests leave the work to processes that only work",
    { tags: "long" },
    async () => {
      const home = await openShared(
        { "Say hello": [{ text: "hello" }] },
        { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
      );
      const server = await serveHttp(home, ["--no-work"]);
      const client = await connect(server.connector, "v2-modern");
      const runId = runIdOf(await client.call("run_deep_agent", { task: "Say hello" }));
      const metrics = async () => (await fetch(new URL("/metrics", server.url))).text();
      await expect.poll(metrics).toMatch(/^deepagent_runs_waiting 1$/m);
      expect(home.brain.thoughts).toEqual([]);
      await startProgram(["work"], { ...home.env, DEEPAGENT_DATA_DIR: `${home.dataDir}-w` });
      expect(await untilStatus(client, runId, "completed")).toMatchObject({ answer: "hello" });
      await expect.poll(metrics).toMatch(/^deepagent_runs_waiting 0$/m);
      await expect.poll(metrics).toMatch(/^deepagent_news_lag_seconds \d/m);
    },
  );

  test(
    "a worker that is told to end lets its run end, and another one takes what comes",
    { tags: "long" },
    async () => {
      const asked = deferred();
      const go = deferred();
      const home = await openShared(
        {
          "Think hard": [
            async () => {
              asked.resolve();
              await go.promise;
              return { text: "thought" };
            },
          ],
          "Say hello": [{ text: "hello" }],
        },
        { DEEPAGENT_DELIVERY_WINDOW: "0.2", DEEPAGENT_LIMITS_DRAIN: "60" },
      );
      const client = await connect((await serveHttp(home, ["--no-work"])).connector, "v2-modern");
      const first = await startProgram(["work"], { ...home.env, DEEPAGENT_DATA_DIR: `${home.dataDir}-w` });
      const thinking = runIdOf(await client.call("run_deep_agent", { task: "Think hard" }));
      await asked.promise;
      first.process.kill("SIGTERM");
      const hello = runIdOf(await client.call("run_deep_agent", { task: "Say hello" }));
      await startProgram(["work"], { ...home.env, DEEPAGENT_DATA_DIR: `${home.dataDir}-v` });
      await untilStatus(client, hello, "completed");
      go.resolve();
      expect(await untilStatus(client, thinking, "completed")).toMatchObject({ answer: "thought" });
      expect(await first.exited).toEqual({ code: 0, signal: null });
      expect(home.brain.thoughts.filter(({ task }) => task.includes("Think hard"))).toHaveLength(1);
    },
  );

  test("a run outlives the server that was killed, and no finished call runs again", async () => {
    let silent = true;
    const asked = deferred();
    const home = await openShared(
      {
        "Note and report": [
          { toolCalls: [writeFile("/memories/once.md", "first\n")] },
          { toolCalls: [delegate("look around")] },
          { text: "reported" },
        ],
        "look around": [
          () => {
            asked.resolve();
            return silent ? { fault: "hang" } : { text: "nothing special" };
          },
        ],
      },
      { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    );
    const first = await serveHttp(home);
    const before = await connect(first.connector, "v2-legacy");
    const runId = runIdOf(await before.call("run_deep_agent", { task: "Note and report" }));
    await asked.promise;
    const second = await serveElsewhere(home, "b");
    first.child.process.kill("SIGKILL");
    silent = false;
    const after = await connect(second.connector, "v2-modern");
    expect(await untilStatus(after, runId, "completed")).toMatchObject({
      answer: "reported",
      agents: [{ status: "completed" }],
      files_changed: ["/memories/once.md"],
    });
    const begun = home.brain.thoughts.filter(
      ({ task, step }) => task.includes("Note and report") && step === 0,
    );
    expect(begun).toHaveLength(1);
    expect(wronglyAnswered(home.brain)).toEqual([]);
  });
});

/** An address whose requests go to the servers in turn, as a proxy without affinity would send them. */
async function spread(urls: readonly string[]): Promise<{ url: string; counts: number[] }> {
  const counts = urls.map(() => 0);
  let next = 0;
  const proxy = createServer((incoming, outgoing) => {
    const to = next++ % urls.length;
    counts[to] = (counts[to] ?? 0) + 1;
    const { method, headers } = incoming;
    const forwarded = request(urls[to] ?? "", { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo; // it listens on TCP
  return { url: `http://127.0.0.1:${port}/mcp`, counts };
}
