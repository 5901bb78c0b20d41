import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import * as sdk from "@aws-sdk/client-s3";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints/checkpointer.ts";
import {
  LargeObjects,
  type ObjectPlace,
  assertPlace,
  sweepObjects,
} from "../../src/storage/postgres/checkpoints/objects.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import { attempts } from "../support/effort.ts";
import { freePort } from "../support/free-port.ts";
import { BUCKET, type S3Server, startS3rver } from "../support/s3-servers.ts";
import { TcpLink } from "../support/tcp-link.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";

const MARK = "deepagent-storage-id";
const at = (thread: string) => ({ configurable: { thread_id: thread, checkpoint_ns: "" } });
const METADATA = { source: "loop" as const, step: 0, parents: {} };
const large = (bytes = 100_000): string => randomBytes(bytes / 2).toString("hex");
const { signal } = new AbortController();

describe("large values of a Postgres in S3", { tags: "postgres" }, () => {
  const { url, newSchema, newRole, closeAtEnd } = postgresSuite();
  let server: S3Server;
  let client: sdk.S3Client;
  let prefixes = 0;
  beforeAll(async () => {
    server = await startS3rver();
    client = new sdk.S3Client({ ...server, region: "us-east-1", forcePathStyle: true });
  });
  afterAll(async () => {
    client.destroy();
    await server.stop();
  });

  const newPlace = (): ObjectPlace & { prefix: string } => {
    const { endpoint, credentials } = server;
    return { bucket: BUCKET, endpoint, credentials, prefix: `p${(prefixes += 1)}/` };
  };
  /** A server on this schema, with its large values there. */
  const open = async ({ schema = newSchema(), place = newPlace(), role = "" } = {}) => {
    const wall = role === "" ? {} : { role };
    const { access } = await openPool({ url: url(), schema, connections: 5, ...wall });
    const { pool } = access;
    const objects = new LargeObjects(access, place);
    closeAtEnd(async () => {
      await objects.close();
      await pool.end();
    });
    const saver = new PostgresCheckpointer(access, objects);
    const put = async (thread: string, value: unknown, step = 1) =>
      saver.put(at(thread), { ...emptyCheckpoint(), id: uuid6(step), channel_values: { value } }, METADATA);
    const get = async (thread: string): Promise<unknown> =>
      (await saver.getTuple(at(thread)))?.checkpoint.channel_values["value"];
    /** Has everything that is unused be so for two days. */
    const age = () =>
      pool.query("UPDATE checkpoint_objects SET unused_since = unused_since - interval '2 days'");
    const sweep = () => sweepObjects(access, objects, signal);
    return { schema, place, access, pool, objects, saver, put, get, age, sweep };
  };
  const keys = async ({ prefix }: { prefix: string }): Promise<string[]> => {
    const listed = await client.send(new sdk.ListObjectsV2Command({ Bucket: BUCKET, Prefix: prefix }));
    const found = (listed.Contents ?? []).map(({ Key = "" }) => Key.slice(prefix.length));
    return found.filter((key) => key !== MARK);
  };

  checkpointsContract("Postgres and S3", async () => {
    const [schema, place] = [newSchema(), newPlace()];
    return { connect: async () => (await open({ schema, place })).saver, close: async () => undefined };
  });

  test("values of 64 KB and more are objects, smaller ones rows, and any server reads both", async () => {
    const { schema, place, pool, saver, get } = await open();
    const values = {
      small: large(60_000),
      text: large(),
      bytes: new Uint8Array(randomBytes(300_000)),
      long: "é".repeat(200_000),
    };
    const checkpoint = { ...emptyCheckpoint(), channel_values: { value: "short", ...values } };
    const config = await saver.put(at("t"), checkpoint, METADATA);
    await saver.putWrites(config, [["messages", [values.small, values.text]]], "task");
    const { rows } = await pool.query<{ inPostgres: number; inS3: number }>(
      `SELECT coalesce(max(length(content)), 0) AS "inPostgres", count(object)::int AS "inS3" FROM checkpoint_blobs`,
    );
    expect(rows[0]).toEqual({ inPostgres: 60_002, inS3: 4 });
    expect(await keys(place)).toHaveLength(4);
    const other = await open({ schema, place });
    expect(await other.get("t")).toBe("short");
    const tuple = await other.saver.getTuple(at("t"));
    expect(tuple?.checkpoint.channel_values).toEqual({ value: "short", ...values });
    expect(tuple?.pendingWrites).toEqual([["task", "messages", [values.small, values.text]]]);
    expect(await get("t")).toBe("short");
  });

  test("a value that a thread stores again is the same object", async () => {
    const { place, put, get } = await open();
    const value = large();
    await put("t", value);
    await put("t", value, 2);
    expect(await keys(place)).toHaveLength(1);
    await put("other", value);
    expect(await keys(place)).toHaveLength(2);
    expect(await get("t")).toBe(value);
  });

  test("messages in S3 are found by a text in them", async () => {
    const { saver } = await open();
    const config = await saver.put(at("t"), emptyCheckpoint(), METADATA);
    const messages = [`call_7 ${large()}`, `call_8 ${large()}`, "call_9"];
    for (const [index, message] of messages.entries())
      await saver.putWrites(config, [["messages", [message]]], `task${index}`);
    for (const [index, message] of messages.entries()) {
      const found = await saver.writtenWith("t", `call_${index + 7}`);
      expect(found.map(({ messages: found }) => found)).toEqual([[message]]);
    }
    expect(await saver.writtenWith("t", "call_1")).toEqual([]);
  });

  test("an ended subagent keeps the objects of its messages, and loses the others", async () => {
    const { place, saver, age, sweep } = await open();
    const token = { run: 1, claim: 1 };
    await saver.startOver("t", token);
    const nested = { configurable: { thread_id: "t", checkpoint_ns: "tools:inner" } };
    const value = large();
    const config = await saver.put(
      nested,
      { ...emptyCheckpoint(), id: uuid6(1), channel_values: { files: large() } },
      METADATA,
    );
    const messages = [`inside ${large()}`];
    await saver.putWrites(
      config,
      [
        ["messages", messages],
        ["files", { "/a.txt": value }],
      ],
      "task",
    );
    await saver.put(at("t"), { ...emptyCheckpoint(), id: uuid6(2), channel_values: { value } }, METADATA);
    expect(await keys(place)).toHaveLength(4);
    await saver.tidyThread("t", token);
    await sweep();
    await age();
    await sweep();
    expect(await keys(place)).toHaveLength(2);
    expect((await saver.writtenWith("t", "inside"))[0]?.messages).toEqual(messages);
  });

  test("what was stored before there was a place in S3 is read, and stored again where it is", async () => {
    const schema = newSchema();
    const { access } = await openPool({ url: url(), schema });
    closeAtEnd(() => access.pool.end());
    const value = large();
    const before = new PostgresCheckpointer(access);
    await before.put(at("t"), { ...emptyCheckpoint(), channel_values: { value } }, METADATA);
    const { place, put, get } = await open({ schema });
    expect(await get("t")).toBe(value);
    await put("t", value, 2);
    expect(await keys(place)).toEqual([]);
  });

  test("values are sent and fetched beside each other, within bounds", async () => {
    let [now, most] = [0, 0];
    const load = async (): Promise<unknown> => {
      class Counting extends sdk.S3Client {
        constructor(...args: ConstructorParameters<typeof sdk.S3Client>) {
          super(...args);
          const count = async <T>(next: () => Promise<T>): Promise<T> => {
            most = Math.max(most, (now += 1));
            return next().finally(() => (now -= 1));
          };
          this.middlewareStack.add((next) => (request) => count(() => next(request)), { step: "initialize" });
        }
      }
      return { ...sdk, S3Client: Counting };
    };
    const { saver } = await open({ place: { ...newPlace(), load } });
    const config = await saver.put(at("t"), emptyCheckpoint(), METADATA);
    const writes = Array.from({ length: 20 }, (_, index): [string, string] => [`c${index}`, large(70_000)]);
    await saver.putWrites(config, writes, "task");
    expect(most).toBeGreaterThan(3);
    expect(most).toBeLessThanOrEqual(16);
    most = 0;
    const found = (await saver.getTuple(at("t")))?.pendingWrites;
    expect(found?.map(([, channel, value]) => [channel, value])).toEqual(writes);
    expect(most).toBeGreaterThan(3);
    expect(most).toBeLessThanOrEqual(16);
  });

  test("the objects of a deleted thread go a day later, those of its copy stay", async () => {
    const { place, saver, put, get, age, sweep } = await open();
    const [mine, shared] = [large(), large()];
    await put("mine", mine);
    await put("shared", shared);
    await saver.copyThread("shared", "copy");
    await saver.deleteThread("mine");
    await saver.deleteThread("shared");
    await sweep();
    expect(await keys(place)).toHaveLength(2);
    await age();
    await sweep();
    expect(await keys(place)).toHaveLength(1);
    expect(await get("copy")).toBe(shared);
  });

  test("what was sent when a server died is garbage that goes a day later", async () => {
    const { place, pool, saver, put, age, sweep } = await open();
    await pool.query(`
      CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'died'; END $$;
      CREATE TRIGGER die BEFORE INSERT ON checkpoint_blobs
      FOR EACH ROW WHEN (NEW.object IS NOT NULL) EXECUTE FUNCTION die()`);
    await expect(put("t", large())).rejects.toThrow("died");
    await pool.query("DROP TRIGGER die ON checkpoint_blobs");
    expect(await saver.getTuple(at("t"))).toBeUndefined();
    await sweep();
    expect(await keys(place)).toHaveLength(1);
    await age();
    await sweep();
    expect(await keys(place)).toEqual([]);
  });

  test("a sweep that was broken off is gone on with", async () => {
    const { place, access, pool, saver, put, age, sweep } = await open();
    await put("t", large());
    await put("t", large(), 2);
    await saver.deleteThread("t");
    await sweep();
    await age();
    await sweepObjects(access, new LargeObjects(access, place), AbortSignal.abort());
    expect(await keys(place)).toHaveLength(2);
    await sweep();
    expect(await keys(place)).toEqual([]);
    expect((await pool.query("SELECT 1 FROM deleted_objects")).rows).toEqual([]);
  });

  test("a thread refers to no object that is gone, whatever is swept meanwhile", async () => {
    const { schema, place, pool, saver, put, get, age, sweep } = await open();
    const other = await open({ schema, place });
    const texts = Array.from({ length: 4 }, () => large(66_000));
    const over = new AbortController();
    const number = (below: number): number => randomBytes(1).readUInt8() % below;
    // The day of grace is over at once, all the time.
    const sweeping = [sweep, other.sweep].map(async (one) => {
      while (!over.signal.aborted) {
        await age();
        // Two sweeps may be in each other's way.
        await one().catch(() => undefined);
        await delay(number(30));
      }
    });
    const work = async (thread: string): Promise<void> => {
      for (let step = 1; step <= attempts(200).numRuns; step += 1) {
        const text = texts[number(texts.length)];
        await (number(3) === 0 ? saver.deleteThread(thread) : put(thread, text, step)).catch(
          // A text whose object was swept before it was referred to is not stored.
          (error: unknown) => expect(String(error)).toContain("violates foreign key"),
        );
      }
    };
    const threads = ["a", "b", "c", "d"];
    await Promise.all(threads.map(work));
    over.abort();
    await Promise.all(sweeping);
    // The last step of every thread may have deleted it.
    await put("kept", large(66_000));
    const { rows } = await pool.query<{ object: string }>("SELECT DISTINCT object FROM checkpoint_blobs");
    expect(rows).not.toEqual([]);
    const there = await keys(place);
    expect(rows.filter(({ object }) => !there.includes(object))).toEqual([]);
    for (const thread of threads) await get(thread);
  });

  test("behind the second wall a principal stores and reads objects of its own threads alone", async () => {
    const { pool, place, saver, get, sweep, age } = await open({ role: await newRole() });
    await pool.query("INSERT INTO threads (id, principal, created_at) VALUES ('t', 'me', 0)");
    const value = large();
    const checkpoint = { ...emptyCheckpoint(), channel_values: { value } };
    await saver.of("me").put(at("t"), checkpoint, METADATA);
    await expect(saver.of("other").put(at("t"), checkpoint, METADATA)).rejects.toMatchObject({
      code: "storage_readonly",
    });
    await sweep();
    await age();
    await sweep();
    expect(await keys(place)).toHaveLength(1);
    expect(await saver.of("other").getTuple(at("t"))).toBeUndefined();
    expect((await saver.of("me").getTuple(at("t")))?.checkpoint.channel_values["value"]).toBe(value);
    expect(await get("t")).toBe(value);
  });

  const DAMAGES: Record<string, (Key: string) => Promise<unknown>> = {
    missing: (Key) => client.send(new sdk.DeleteObjectCommand({ Bucket: BUCKET, Key })),
    altered: (Key) =>
      client.send(new sdk.PutObjectCommand({ Bucket: BUCKET, Key, Body: JSON.stringify(large()) })),
    cut: (Key) => client.send(new sdk.PutObjectCommand({ Bucket: BUCKET, Key, Body: "" })),
  };
  test.each(Object.keys(DAMAGES))("an object that is %s is one clear error of its thread", async (how) => {
    const { place, put, get } = await open();
    const value = large();
    await put("t", value);
    const [key] = await keys(place);
    await DAMAGES[how]?.(place.prefix + String(key));
    await expect(get("t")).rejects.toMatchObject({
      code: "storage_corrupt",
      message: expect.stringMatching(/S3 bucket that storageS3 names.*Restore a backup/),
    });
    await put("later", value);
    expect(await get("later")).toBe(value);
  });

  test("while S3 is gone, values are not stored and read, and afterwards they are", async () => {
    const port = Number(new URL(server.endpoint).port);
    const link = await TcpLink.open(port);
    onTestFinished(() => link.close());
    const place = { ...newPlace(), endpoint: `http://127.0.0.1:${link.port}` };
    const { put, get } = await open({ place });
    const value = large();
    await put("t", value);
    link.target = await freePort();
    link.breakConnections();
    const gone = { code: "storage_io", message: expect.stringMatching(/storageS3.*cannot be reached/) };
    await expect(get("t")).rejects.toMatchObject(gone);
    await expect(put("u", large())).rejects.toMatchObject(gone);
    await put("small", "text");
    link.target = port;
    expect(await get("t")).toBe(value);
    await put("u", value);
    expect(await get("u")).toBe(value);
  });

  test("a silent S3 server fails its request after a while", { tags: "long" }, async () => {
    const link = await TcpLink.open(Number(new URL(server.endpoint).port));
    onTestFinished(() => link.close());
    const { put, get } = await open({
      place: { ...newPlace(), endpoint: `http://127.0.0.1:${link.port}` },
    });
    await put("t", large());
    link.cut("lost");
    await expect(get("t")).rejects.toMatchObject({ code: "storage_io" });
    link.mend();
    expect(await get("t")).toHaveLength(100_000);
  });

  test("another place is refused, unless everything was copied there", async () => {
    const first = await open();
    await first.put("t", large());
    const place = newPlace();
    const moved = await open({ schema: first.schema, place });
    const refused = {
      code: "storage_directory",
      message: expect.stringContaining("do not hold the large values"),
    };
    await expect(moved.get("t")).rejects.toMatchObject(refused);
    await expect(moved.put("u", large())).rejects.toMatchObject(refused);
    await expect(assertPlace(moved.access, moved.objects, logger)).rejects.toMatchObject({
      name: "ConfigurationError",
    });
    for (const key of [MARK, ...(await keys(first.place))]) {
      const CopySource = `${BUCKET}/${first.place.prefix}${key}`;
      await client.send(new sdk.CopyObjectCommand({ Bucket: BUCKET, Key: place.prefix + key, CopySource }));
    }
    await assertPlace(moved.access, moved.objects, logger);
    expect(await moved.get("t")).toEqual(await first.get("t"));
  });

  test("a place that another Postgres has is refused", async () => {
    const { place, put } = await open();
    await put("t", large());
    const other = await open({ place });
    await expect(other.put("t", large())).rejects.toMatchObject({
      code: "storage_directory",
      message: expect.stringContaining("of another Postgres"),
    });
  });

  test("a server without the setting is refused as long as there are objects", async () => {
    const { schema, put, saver, age, sweep } = await open();
    const without = await openPostgres({ url: url(), schema, logger });
    onTestFinished(() => without.close());
    await without.enter("{}");
    await put("t", large());
    await expect(without.enter("{}")).rejects.toMatchObject({
      code: "STORAGE_S3",
      message: expect.stringContaining("no setting storageS3"),
    });
    const { checkpointer } = await without.forAgents();
    // One that was there before waits with its runs until it is restarted.
    await expect(checkpointer.getTuple(at("t"))).rejects.toMatchObject({ code: "storage_directory" });
    await saver.deleteThread("t");
    await sweep();
    await age();
    await sweep();
    await without.enter("{}");
  });

  test("what is configured wrong is said when a server starts, and an S3 server that is gone is not", async () => {
    const start = async (place: ObjectPlace) => {
      const storage = await openPostgres({ url: url(), schema: newSchema(), logger, largeValues: place });
      onTestFinished(() => storage.close());
      return storage.enter("{}");
    };
    const credentials = { accessKeyId: "N0BODY", secretAccessKey: "wr0ng" };
    await expect(start({ ...newPlace(), credentials })).rejects.toMatchObject({
      name: "ConfigurationError",
      message: expect.stringContaining("denies access"),
    });
    await expect(start({ ...newPlace(), bucket: "nowhere" })).rejects.toMatchObject({
      name: "ConfigurationError",
      message: expect.stringContaining("the bucket does not exist"),
    });
    await expect(start({ ...newPlace(), load: () => Promise.reject(new Error("no")) })).rejects.toMatchObject(
      {
        code: "PACKAGE_MISSING",
      },
    );
    expect(await start({ ...newPlace(), endpoint: `http://127.0.0.1:${await freePort()}` })).toEqual([]);
    expect(await start(newPlace())).toEqual([]);
  });

  test("housekeeping sweeps, and objects count as stored", async () => {
    const { schema, place, put, saver, age } = await open();
    const storage = await openPostgres({ url: url(), schema, logger, largeValues: place });
    onTestFinished(() => storage.close());
    const plan = async () => (await storage.runs.planPrune({}, undefined, 0)).storedBytes;
    const before = await plan();
    await put("t", large(3_000_000));
    expect((await plan()) - before).toBeGreaterThan(2_500_000);
    await saver.deleteThread("t");
    const prune = () => storage.runs.prune({}, { checkpoints: undefined, now: 0, signal });
    await prune();
    await age();
    await prune();
    expect(await keys(place)).toEqual([]);
  });
});
