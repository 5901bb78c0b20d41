// @module-tag long
import { describe, expect, test } from "vitest";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { streamStoreContract } from "./stream-store.contract.ts";

describe("what servers share", { tags: "postgres" }, () => {
  const { url, newSchema, closeAtEnd } = postgresSuite();

  const open = async (schema: string): Promise<SharedStorage> => {
    const one = await openPostgres({ url: url(), schema, connections: 3, logger });
    closeAtEnd(() => one.close());
    return one;
  };

  streamStoreContract("Postgres", async () => {
    const schema = newSchema();
    return {
      connect: async () => (await open(schema)).openStreams(),
      close: async () => undefined,
    };
  });

  test("a secret is the same for all servers, and another for another name", async () => {
    const schema = newSchema();
    const [one, other] = await Promise.all([open(schema), open(schema)]);
    const secrets = await Promise.all([one.secret("state"), other.secret("state"), one.secret("links")]);
    expect(secrets.map((secret) => secret.byteLength)).toEqual([32, 32, 32]);
    expect(secrets[0]).toEqual(secrets[1]);
    expect(secrets[0]).not.toEqual(secrets[2]);
  });

  test("what is asked of storage that is closed already is told to come again", async () => {
    const one = await openPostgres({ url: url(), schema: newSchema(), connections: 3, logger });
    const streams = await one.openStreams();
    await one.close();
    await expect(streams.streamOf("s", 1)).rejects.toMatchObject({ code: "storage_busy" });
  });

  describe("sessions", () => {
    const two = async () => {
      const schema = newSchema();
      const [one, other] = await Promise.all([open(schema), open(schema)]);
      return { one: one.sessions, other: other.sessions };
    };
    const session = (id: string, principal = "me") => ({
      id,
      principal,
      owner: `owner of ${id}`,
      opening: "{}",
    });
    const NONE_BUSY = { limit: 2, busyMs: 0 };
    const ALL_BUSY = { limit: 2, busyMs: 60_000 };

    test("one is found and joined by other servers until one of them ends it", async () => {
      const { one, other } = await two();
      expect(await one.open(session("a"), ALL_BUSY)).toEqual({ ok: true });
      expect(await other.ownerOf("a")).toBe("owner of a");
      await one.setOwner("a", "new owner");
      await one.subscribe("a", "x:1", true);
      await one.subscribe("a", "x:2", true);
      await other.subscribe("a", "x:1", true);
      await other.subscribe("a", "x:1", false);
      const stored = { owner: "new owner", opening: "{}", subscriptions: ["x:2"] };
      expect(await other.join("a")).toEqual(stored);
      await other.end("a");
      expect(await one.ownerOf("a")).toBeUndefined();
      expect(await one.join("a")).toBeUndefined();
      expect(await one.touch(["a"])).toEqual([]);
    });

    test("the one idle for longest makes room for another of its principal, unless it is in use", async () => {
      const { one, other } = await two();
      for (const id of ["a", "b"]) await one.open(session(id), NONE_BUSY);
      expect(await one.open(session("theirs", "you"), ALL_BUSY)).toEqual({ ok: true });
      expect(await other.open(session("c"), ALL_BUSY)).toEqual({ ok: false, waitMs: expect.any(Number) });
      expect(await other.touch(["a", "unknown"])).toEqual(["a"]);
      expect(await other.open(session("c"), NONE_BUSY)).toEqual({ ok: true, ended: "b" });
    });

    test("idle ones end once", async () => {
      const { one, other } = await two();
      await one.open(session("a"), ALL_BUSY);
      expect(await one.endIdle(60_000)).toEqual([]);
      const ended = await Promise.all([one.endIdle(0), other.endIdle(0)]);
      expect(ended.flat()).toEqual(["a"]);
      expect(await other.join("a")).toBeUndefined();
    });
  });

  test("what servers took of a limit is counted together, by key, and comes back with time", async () => {
    const schema = newSchema();
    const [one, other] = await Promise.all([open(schema), open(schema)]);
    const spend = async (server: SharedStorage, requests: Record<string, number>) =>
      Object.fromEntries(await server.rates.spend(new Map(Object.entries(requests)), 6));
    expect(await spend(one, { mine: 4, "a\0": 1, "a\ufffd": 1 })).toEqual({ mine: 2, "a\ufffd": 4 });
    const { mine = 0, theirs } = await spend(other, { mine: 4, theirs: 1 });
    expect(theirs).toBe(5);
    // A little has come back.
    expect(mine).toBeGreaterThanOrEqual(-2);
    expect(mine).toBeLessThan(2);
    expect((await spend(one, { mine: 100 }))["mine"]).toBe(-6);
  });
});
