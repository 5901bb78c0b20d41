import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { TcpLink } from "../support/tcp-link.ts";

const ME = "me";
const fresh = { runId: "run_1", newThreadId: "thr_1", environment: "e", now: 1 };

describe("storage on a Postgres that fails", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(() => server.stop());

  const open = async (): Promise<{ storage: SharedStorage; schema: string; link: TcpLink }> => {
    const schema = `faults_${(schemas += 1)}`;
    const link = await TcpLink.open(server.port);
    const storage = await openPostgres({ url: link.to(server.url), schema, connections: 3, logger });
    onTestFinished(async () => {
      link.close();
      await storage.close();
    });
    return { storage, schema, link };
  };

  const BREAKS: Record<string, (link: TcpLink) => Promise<unknown>> = {
    "ended by Postgres": () =>
      server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"),
    "broken in the network": async (link) => link.breakConnections(),
  };
  test.each(Object.keys(BREAKS))("a transaction whose connection is %s fails, nothing else", async (how) => {
    const { storage, schema, link } = await open();
    await server.connected(async (other) => {
      await other.query(`BEGIN; LOCK TABLE ${schema}.runs`);
      const created = storage.runs.create(ME, { task: "work" }, fresh);
      const failed = expect(created).rejects.toMatchObject({ name: "StorageError" });
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
      await expect.poll(() => server.query(waiting)).toHaveLength(1);
      await BREAKS[how]?.(link);
      await failed;
    });
    expect(await storage.runs.create(ME, { task: "work" }, fresh)).toMatchObject({ kind: "created" });
  });

  test("a connection that has fallen silent fails its query, and is replaced", { tags: "long" }, async () => {
    const { storage, link } = await open();
    await storage.runs.create(ME, { task: "work" }, fresh);
    link.cut("lost");
    await expect(
      storage.runs.create(ME, { task: "work" }, { ...fresh, runId: "run_2" }),
    ).rejects.toMatchObject({
      code: "storage_io",
    });
    link.mend();
    expect(await storage.runs.read.run(ME, "run_1")).toMatchObject({ task: "work" });
  });

  test("a listener that has fallen silent is replaced by one that hears", { tags: "long" }, async () => {
    const { storage, schema, link } = await open();
    const other = await openPostgres({ url: server.url, schema, logger });
    onTestFinished(() => other.close());
    const heard: string[] = [];
    const watching = storage.runs.watch(
      { changed: (runId) => void heard.push(runId), changedElsewhere: () => {}, failed: () => {} },
      100,
    );
    onTestFinished(() => watching.close());
    let number = 0;
    const change = async (): Promise<string[]> => {
      number += 1;
      await other.runs.create(
        ME,
        { task: "work" },
        { ...fresh, runId: `run_${number}`, newThreadId: `t_${number}` },
      );
      return heard.splice(0);
    };
    await expect.poll(change).not.toEqual([]);
    link.cut("lost");
    link.mend();
    await expect.poll(change).toEqual([]);
    await expect.poll(change, { interval: 500 }).not.toEqual([]);
  });
});
