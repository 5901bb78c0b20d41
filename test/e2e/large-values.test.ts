// @module-tag long
import * as sdk from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connect, openHome, type Home } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { startProgram } from "../support/harness-process.ts";
import { freePort } from "../support/free-port.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { BUCKET, type S3Server, startS3rver } from "../support/s3-servers.ts";
import { TcpLink } from "../support/tcp-link.ts";
import { runIdOf, untilStatus, writeFile } from "./support.ts";

const MARK = "deepagent-storage-id";
const LONG = "0123456789".repeat(30_000);
/** Writes a long file, and in the next task of the thread says how much of it is there. */
const SCRIPT = {
  "Keep it": [
    { toolCalls: [writeFile("/big.txt", LONG)] },
    { text: "kept" },
    { toolCalls: [{ name: "grep", args: { pattern: "0123456789", output_mode: "count" } }] },
    { text: "counted" },
  ],
} satisfies Parameters<typeof play>[0];

describe("servers with large values in S3", { tags: "postgres" }, () => {
  let postgres: PostgresServer;
  let s3: S3Server;
  let client: sdk.S3Client;
  let homes = 0;
  beforeAll(async () => {
    [postgres, s3] = await Promise.all([startPostgres(), startS3rver()]);
    client = new sdk.S3Client({ ...s3, region: "us-east-1", forcePathStyle: true });
  }, 60_000);
  afterAll(async () => {
    client.destroy();
    await Promise.all([s3.stop(), postgres.stop()]);
  });

  const open = async (think = play(SCRIPT), endpoint = s3.endpoint): Promise<Home & { prefix: string }> => {
    homes += 1;
    const prefix = `e2e/${homes}`;
    const env = {
      DEEPAGENT_STORAGE: postgres.url,
      DEEPAGENT_STORAGE_SCHEMA: `large_${homes}`,
      DEEPAGENT_STORAGE_S3_BUCKET: BUCKET,
      DEEPAGENT_STORAGE_S3_PREFIX: prefix,
      DEEPAGENT_STORAGE_S3_ENDPOINT: endpoint,
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
      DEEPAGENT_LOG_LEVEL: "warn",
    };
    return { ...(await openHome({ think, env })), prefix };
  };
  const without = ({ env }: Home): Home["env"] =>
    Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("DEEPAGENT_STORAGE_S3")));
  const objects = async (prefix: string): Promise<string[]> => {
    const listed = await client.send(new sdk.ListObjectsV2Command({ Bucket: BUCKET, Prefix: `${prefix}/` }));
    return (listed.Contents ?? []).map(({ Key = "" }) => Key.slice(prefix.length + 1)).toSorted();
  };

  test("a thread goes on at another server; one that does not know the place ends with what to do", async () => {
    const home = await open();
    const first = await serveHttp(home);
    const begun = await connect(first.connector, "v2-modern");
    const { structured } = await begun.call("run_deep_agent", { task: "Keep it" });
    expect(structured).toMatchObject({ status: "completed", answer: "kept" });
    expect((await objects(home.prefix)).length).toBeGreaterThan(2);
    first.child.process.kill("SIGKILL");
    const second = await connect((await serveHttp(home)).connector, "v2-modern");
    const { thread_id } = structured;
    const next = await second.call("run_deep_agent", { task: "And then", thread_id });
    expect(await untilStatus(second, runIdOf(next), "completed")).toMatchObject({ answer: "counted" });
    const last = home.brain.thoughts.at(-1)?.request.messages.at(-1)?.toolResults[0]?.text;
    expect(last).toContain("/big.txt");
    expect(wronglyAnswered(home.brain)).toEqual([]);

    for (const args of [["serve", "--http", "--port", "0"], ["work"]]) {
      const stranger = await startProgram(args, without(home));
      expect((await stranger.exited).code).toBe(2);
      expect(stranger.errors()).toContain("this server has no setting storageS3");
    }
  });

  /** A server that reaches S3 by a link, with a run whose model has been asked and answers when it is told to. */
  const openLinked = async () => {
    const asked = deferred();
    const go = deferred();
    const think = play(SCRIPT);
    const port = Number(new URL(s3.endpoint).port);
    const link = await TcpLink.open(port);
    onTestFinished(() => link.close());
    const home = await open(async (thought) => {
      asked.resolve();
      await go.promise;
      return think(thought);
    }, `http://127.0.0.1:${link.port}`);
    const server = await serveHttp({ env: { ...home.env, DEEPAGENT_DELIVERY_WINDOW: "0.2" } });
    const mcp = await connect(server.connector, "v2-modern");
    const runId = runIdOf(await mcp.call("run_deep_agent", { task: "Keep it" }));
    await asked.promise;
    return { home, server, link, port, mcp, runId, go };
  };

  test("while S3 is gone a run waits, and then it goes on", async () => {
    const { home, server, link, port, mcp, runId, go } = await openLinked();
    link.target = await freePort();
    link.breakConnections();
    go.resolve();
    await expect.poll(() => server.child.errors(), { timeout: 20_000 }).toContain("run.waits_for_storage");
    expect(server.child.errors()).toContain("Large values cannot be kept in the S3 bucket");
    link.target = port;
    expect(await untilStatus(mcp, runId, "completed")).toMatchObject({ answer: "kept" });
    expect(wronglyAnswered(home.brain)).toEqual([]);
    expect(server.child.errors()).not.toContain("unhandled_rejection");
  });

  test("a server that is killed while it sends leaves garbage, which another one deletes", async () => {
    const { home, server, link, runId, go } = await openLinked();
    const schema = home.env["DEEPAGENT_STORAGE_SCHEMA"];
    link.cut("held");
    go.resolve();
    const begun = () => postgres.query(`SELECT 1 FROM ${schema}.checkpoint_objects`);
    await expect.poll(begun, { timeout: 20_000 }).not.toEqual([]);
    server.child.process.kill("SIGKILL");
    await server.child.exited;
    link.mend();
    const env = { ...home.env, DEEPAGENT_STORAGE_S3_ENDPOINT: s3.endpoint };
    const other = await connect((await serveHttp({ env })).connector, "v2-modern");
    expect(await untilStatus(other, runId, "completed")).toMatchObject({ answer: "kept" });
    const used = () =>
      postgres.query<{ object: string }>(
        `SELECT DISTINCT object FROM ${schema}.checkpoint_blobs WHERE object IS NOT NULL ORDER BY object`,
      );
    expect((await begun()).length).toBeGreaterThan((await used()).length);
    await postgres.query(
      `UPDATE ${schema}.checkpoint_objects SET unused_since = unused_since - interval '2 days'`,
    );
    const prune = await startProgram(["runs", "prune"], { ...env, DEEPAGENT_RETENTION_DAYS: "9" });
    expect(await prune.exited).toMatchObject({ code: 0 });
    const kept = (await used()).map(({ object }) => object);
    expect(await objects(home.prefix)).toEqual([...kept, MARK].toSorted());
  });

  test("turned on one by one: a server that has no place yet waits, and its run goes on in another", async () => {
    const home = await open();
    const old = await serveHttp({ env: { ...without(home), DEEPAGENT_DELIVERY_WINDOW: "0.2" } });
    const first = await serveHttp(home);
    const client = await connect(first.connector, "v2-modern");
    // Either of them works on it.
    let thread_id: unknown;
    for (let number = 1; (await objects(home.prefix)).length < 2; number += 1) {
      const run = await client.call("run_deep_agent", { task: "Keep it", idempotency_key: `${number}` });
      await untilStatus(client, runIdOf(run), "completed");
      ({ thread_id } = run.structured);
    }
    first.child.process.kill("SIGTERM");
    await first.child.exited;
    const beside = await connect(old.connector, "v2-modern");
    const next = await beside.call("run_deep_agent", { task: "And then", thread_id });
    await expect.poll(() => old.child.errors()).toContain("run.waits_for_storage");
    expect(old.child.errors()).toContain("this server has no setting storageS3");
    const second = await connect((await serveHttp(home)).connector, "v2-modern");
    old.child.process.kill("SIGTERM");
    await old.child.exited;
    expect(await untilStatus(second, runIdOf(next), "completed")).toMatchObject({ answer: "counted" });
    expect(wronglyAnswered(home.brain)).toEqual([]);
  });

  test("doctor tries the bucket, and leaves nothing there but its mark", async () => {
    const home = await open();
    const doctor = async (env: Home["env"]) => {
      const child = await startProgram(["doctor"], env);
      await child.exited;
      return child.output.join("\n");
    };
    expect(await doctor(home.env)).toContain(`Large values in S3, ${BUCKET}`);
    expect(await objects(home.prefix)).toEqual([MARK]);
    const lost = { ...home.env, DEEPAGENT_STORAGE_S3_BUCKET: "nowhere" };
    expect(await doctor(lost)).toMatch(/✖ Storage .*the bucket does not exist/);
  });
});
