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
    await postgres.query("CREATE ROLE requests NOLOGIN");
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

  test.each([
    ["", {}],
    [", behind the second wall", { DEEPAGENT_STORAGE_ROLE: "requests" }],
  ])("a run that one works on is followed, decided and read through the other%s", async (_, env) => {
    const script = {
      "Write two files": [
        { toolCalls: [writeFile("/memories/likes.md", "short answers\n")] },
        { toolCalls: [writeFile("/workspace/new.md", "new\n")] },
        { text: "written" },
      ],
    };
    const home = await openShared(script, env);
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

  test("a client of the newest revision is served by any of them", { tags: "long" }, async () => {
    const home = await openShared({
      "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
    });
    const servers = [await serveHttp(home), await serveElsewhere(home, "b"), await serveElsewhere(home, "c")];
    const { url, counts } = await spread(servers.map((server) => server.url));
    const { answer, forms } = person({ "new.md": APPROVE });
    const client = await connect(httpConnector(url), "v2-modern", answer);
    const done = await client.call("run_deep_agent", { task: "Write one file" });
    expect(await untilStatus(client, runIdOf(done), "completed")).toMatchObject({ answer: "written" });
    expect(forms).toHaveLength(1);
    expect(counts.filter((count) => count > 0)).toHaveLength(3);
  });

  /** Three servers behind a proxy. */
  const serveThree = async (home: Home) => {
    const servers = [await serveHttp(home), await serveElsewhere(home, "b"), await serveElsewhere(home, "c")];
    const proxy = await spread(servers.map(({ url }) => url));
    const kill = async (server: number): Promise<void> => {
      proxy.leaveOut(server);
      servers[server]?.child.process.kill("SIGKILL");
      await servers[server]?.child.exited;
    };
    return { proxy, kill };
  };
  const WRITES = {
    "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
  };

  for (const client of ["v1", "v2-legacy"] as const) {
    const tags = client === "v1" ? ["long"] : [];
    test(`${client}: a session goes on at any server, also without its first`, { tags }, async () => {
      const home = await openShared(WRITES);
      const { proxy, kill } = await serveThree(home);
      const { answer, forms } = person({ "new.md": APPROVE });
      const session = await connect(httpConnector(proxy.url), client, answer);
      await kill(proxy.servedBy("initialize"));
      const done = await session.call("run_deep_agent", { task: "Write one file" });
      expect(await untilStatus(session, runIdOf(done), "completed")).toMatchObject({ answer: "written" });
      expect(forms).toHaveLength(1);
      expect(inWorkspace(home, "new.md")).toBe("new\n");
      expect(wronglyAnswered(home.brain)).toEqual([]);
    });
  }

  test("a question of a server that was killed is asked again by another, in the same call", async () => {
    const home = await openShared(WRITES);
    const { proxy, kill } = await serveThree(home);
    const asked = deferred();
    let forms = 0;
    const session = await connect(httpConnector(proxy.url), "v2-legacy", async () => {
      forms += 1;
      asked.resolve();
      return forms === 1 ? new Promise(() => undefined) : APPROVE;
    });
    const call = session.call("run_deep_agent", { task: "Write one file" });
    await asked.promise;
    await kill(proxy.servedBy("tools/call"));
    expect((await call).structured).toMatchObject({ status: "completed", answer: "written" });
    expect(forms).toBe(2);
    expect(inWorkspace(home, "new.md")).toBe("new\n");
  });

  test("changes reach a session, whichever server it subscribed at", { tags: "long" }, async () => {
    const go = deferred();
    const home = await openShared(
      { "Think hard": [async () => go.promise.then(() => ({ text: "thought" }))] },
      { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    );
    const { proxy, kill } = await serveThree(home);
    const session = await connect(httpConnector(proxy.url), "v2-legacy");
    const runId = runIdOf(await session.call("run_deep_agent", { task: "Think hard" }));
    const uri = `deepagent://runs/${runId}`;
    await session.watch(uri);
    const before = session.updates.length;
    await kill(proxy.servedBy("GET"));
    // The next server that the client listens to tells what may have been missed.
    await expect.poll(() => session.updates.slice(before)).toContain(uri);
    const missed = session.updates.length;
    go.resolve();
    await untilStatus(session, runId, "completed");
    await expect.poll(() => session.updates.slice(missed)).toContain(uri);
  });

  test("servers that only take requests leave work to others", { tags: "long" }, async () => {
    const home = await openShared({ "Say hello": [{ text: "hello" }] }, { DEEPAGENT_DELIVERY_WINDOW: "0.2" });
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
  });

  test("a worker that is told to end lets its run end first", { tags: "long" }, async () => {
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
  });

  test("processes start without their Postgres, and work when it is there", { tags: "long" }, async () => {
    const own = await startPostgres();
    onTestFinished(() => own.stop());
    const home = await openHome({
      think: play({ "Say hello": [{ text: "hello" }] }),
      env: { DEEPAGENT_STORAGE: own.url, DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    });
    await own.end("fast");
    const server = await serveHttp(home, ["--no-work"]);
    const worker = await startProgram(["work"], { ...home.env, DEEPAGENT_DATA_DIR: `${home.dataDir}-w` });
    const client = await connect(server.connector, "v2-modern");
    const refused = await client.call("run_deep_agent", { task: "Say hello" });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("cannot be reached") });
    await own.start();
    const runId = runIdOf(await client.call("run_deep_agent", { task: "Say hello" }));
    expect(await untilStatus(client, runId, "completed")).toMatchObject({ answer: "hello" });
    await own.end("crash");
    await expect.poll(async () => (await fetch(new URL("/readyz", server.url))).status).toBe(503);
    const metrics = await fetch(new URL("/metrics", server.url));
    expect([metrics.status, await metrics.text()]).toEqual([
      503,
      expect.stringContaining("cannot reach its storage"),
    ]);
    await own.start();
    const again = runIdOf(await client.call("run_deep_agent", { task: "Say hello", idempotency_key: "2" }));
    expect(await untilStatus(client, again, "completed")).toMatchObject({ answer: "hello" });
    worker.process.kill("SIGTERM");
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });

  test("a subscription goes on after Postgres was gone", { tags: "long" }, async () => {
    const own = await startPostgres();
    onTestFinished(() => own.stop());
    const asked = deferred();
    const go = deferred();
    const think = async () => {
      asked.resolve();
      await go.promise;
      return { text: "hello" };
    };
    const env = { DEEPAGENT_STORAGE: own.url, DEEPAGENT_DELIVERY_WINDOW: "0.2", DEEPAGENT_LOG_LEVEL: "warn" };
    const home = await openHome({ think: play({ "Say hello": [think] }), env });
    const server = await serveHttp(home);
    const client = await connect(server.connector, "v2-legacy");
    const uri = `deepagent://runs/${runIdOf(await client.call("run_deep_agent", { task: "Say hello" }))}`;
    await client.watch(uri);
    await asked.promise;
    await own.end("crash");
    await expect.poll(() => server.child.errors()).toContain("resources.follow_failed");
    await own.start();
    const before = client.updates.length;
    go.resolve();
    await expect.poll(() => client.updates.slice(before)).toContain(uri);
  });

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

interface Proxy {
  url: string;
  /** How many requests each server got. */
  counts: number[];
  /** The server that got the last request with this method of the protocol, or of HTTP. */
  servedBy(method: string): number;
  /** Sends nothing more to a server. */
  leaveOut(server: number): void;
}

/** An address whose requests go to the servers in turn, and those of a session to one of them as long as it lives. */
async function spread(urls: readonly string[]): Promise<Proxy> {
  const counts = urls.map(() => 0);
  const left = urls.map((_, server) => server);
  const last = new Map<string, number>();
  /** The server of each session. */
  const stickTo = new Map<unknown, number>();
  let next = 0;
  const proxy = createServer((incoming, outgoing) => {
    const session = incoming.headers["mcp-session-id"];
    const stuck = stickTo.get(session) ?? -1;
    const to = left.includes(stuck) ? stuck : (left[next++ % left.length] ?? 0);
    if (session !== undefined) stickTo.set(session, to);
    counts[to] = (counts[to] ?? 0) + 1;
    const { method = "", headers } = incoming;
    last.set(method, to);
    const forwarded = request(urls[to] ?? "", { method, headers }, (answer) => {
      const opened = answer.headers["mcp-session-id"];
      if (opened !== undefined) stickTo.set(opened, to);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.on("data", (data: Buffer) => {
      const [, asked] = /"method":"([^"]+)"/.exec(data.toString()) ?? [];
      if (asked !== undefined) last.set(asked, to);
    });
    incoming.pipe(forwarded);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo; // it listens on TCP
  const servedBy = (method: string) => last.get(method) ?? -1;
  const leaveOut = (server: number) => void left.splice(left.indexOf(server), 1);
  return { url: `http://127.0.0.1:${port}/mcp`, counts, servedBy, leaveOut };
}
