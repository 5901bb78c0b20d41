// @module-tag long
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connect, openHome } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { TcpLink } from "../support/tcp-link.ts";
import { runIdOf, untilStatus, writeFile } from "./support.ts";

/** A way a Postgres does not do its work for a while: statements of an administrator, and what a client is told. */
interface Trouble {
  begin: readonly string[];
  end: readonly string[];
  told: RegExp;
}

const FULL = `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`;
/** `app` is the role of the server, and the name of its schema. */
const TROUBLES: Record<string, Trouble> = {
  "is read-only": {
    begin: ["ALTER ROLE app SET default_transaction_read_only = on"],
    end: ["ALTER ROLE app RESET default_transaction_read_only"],
    told: /read-only.*retried/,
  },
  "has no space left": {
    begin: [
      FULL,
      ...["runs", "run_events", "checkpoints", "checkpoint_writes"].map(
        (table) =>
          `CREATE TRIGGER full_disk BEFORE INSERT ON app.${table} FOR EACH ROW EXECUTE FUNCTION full_disk()`,
      ),
    ],
    end: ["DROP FUNCTION full_disk CASCADE"],
    told: /no space or memory left.*Free some/,
  },
  "gives no connection": {
    begin: ["ALTER ROLE app CONNECTION LIMIT 0"],
    end: ["ALTER ROLE app CONNECTION LIMIT -1"],
    told: /no connection left.*max_connections/,
  },
};

const SCRIPT = {
  "Write one file": [{ toolCalls: [writeFile("/memories/one.md", "1\n")] }, { text: "written" }],
};

describe("a server on a Postgres", { tags: "postgres" }, () => {
  let postgres: PostgresServer;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres.stop());

  const manage = async (...statements: string[]): Promise<void> => {
    for (const statement of statements) await postgres.query(statement);
  };
  /** Ends the connections of the server, as changed rights of a role are for new ones. */
  const disconnect = () =>
    manage("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");

  /** A server whose role has its schema and nothing else. */
  const open = async (think: Parameters<typeof openHome>[0]["think"]) => {
    await manage("CREATE ROLE app LOGIN PASSWORD 'word'", "CREATE SCHEMA app AUTHORIZATION app");
    onTestFinished(() => manage("DROP SCHEMA app CASCADE", "DROP ROLE app"));
    const link = await TcpLink.open(postgres.port);
    onTestFinished(() => link.close());
    const url = link.to(postgres.url).replace(/\/\/.*@/, "//app:word@");
    const env = {
      DEEPAGENT_STORAGE: url,
      DEEPAGENT_STORAGE_SCHEMA: "app",
      DEEPAGENT_DELIVERY_WINDOW: "0.2",
      DEEPAGENT_LOG_LEVEL: "warn",
    };
    const home = await openHome({ think, env });
    const server = await serveHttp(home);
    return { home, link, server, client: await connect(server.connector, "v2-modern") };
  };

  test.each(Object.entries(TROUBLES))("that %s says so, and goes on", async (_, { begin, end, told }) => {
    const asked = deferred();
    const go = deferred();
    const think = play(SCRIPT);
    const { home, server, client } = await open(async (thought) => {
      asked.resolve();
      await go.promise;
      return think(thought);
    });
    const runId = runIdOf(await client.call("run_deep_agent", { task: "Write one file" }));
    await asked.promise;
    await manage(...begin);
    await disconnect();
    const again = () => client.call("run_deep_agent", { task: "Write one file", idempotency_key: "2" });
    await expect.poll(again).toMatchObject({ isError: true, text: expect.stringMatching(told) });
    expect((await fetch(new URL("/healthz", server.url))).status).toBe(200);
    go.resolve();
    const log = () => server.child.errors();
    await expect.poll(log).toContain("run.waits_for_storage");
    await expect
      .poll(() => log().match(/"event":"runs\.pulse_failed"|"run\.waits_for_storage"/g))
      .not.toBeNull();
    await manage(...end);
    expect(await untilStatus(client, runId, "completed")).toMatchObject({ answer: "written" });
    await untilStatus(client, runIdOf(await again()), "completed");
    expect(wronglyAnswered(home.brain)).toEqual([]);
    // Whatever fails is tried again after a pause.
    expect(log().split("\n").length).toBeLessThan(200);
    expect(log()).not.toContain("unhandled_rejection");
  });

  test("that a newer version has changed starts nothing and tells so, until it is as before", async () => {
    const { home, server, client } = await open(play(SCRIPT));
    const first = await client.call("run_deep_agent", { task: "Write one file" });
    await untilStatus(client, runIdOf(first), "completed");
    await manage("UPDATE app.schema_versions SET version = version + 1 WHERE component = 'runs'");
    const start = (key: string) =>
      client.call("run_deep_agent", { task: "Write one file", idempotency_key: key });
    let number = 0;
    const told = async () => (await start(`${(number += 1)}`)).text;
    await expect.poll(told, { interval: 1000 }).toContain("Restart the server");
    const restarted = await connect((await serveHttp(home)).connector, "v2-modern");
    const newer = await restarted.call("run_deep_agent", { task: "Write one file" });
    expect(newer).toMatchObject({ isError: true, text: expect.stringContaining("Update this server") });
    await manage("UPDATE app.schema_versions SET version = version - 1 WHERE component = 'runs'");
    await expect.poll(told, { interval: 1000 }).not.toContain("Restart the server");
    expect(server.child.errors()).not.toContain("unhandled_rejection");
  });

  test("that is very slow works slowly", async () => {
    const { home, link, server, client } = await open(play(SCRIPT));
    const warm = await client.call("run_deep_agent", { task: "Write one file" });
    await untilStatus(client, runIdOf(warm), "completed");
    link.lateMs = 60;
    const run = await client.call("run_deep_agent", { task: "Write one file", idempotency_key: "2" });
    expect(await untilStatus(client, runIdOf(run), "completed")).toMatchObject({ answer: "written" });
    expect(wronglyAnswered(home.brain)).toEqual([]);
    expect(server.child.errors()).not.toMatch(/waits_for_storage|lease_revoked/);
  });
});
