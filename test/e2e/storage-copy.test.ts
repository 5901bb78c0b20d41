// @module-tag long
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, openHome } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { startProgram } from "../support/harness-process.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { BUCKET, type S3Server, startS3rver } from "../support/s3-servers.ts";
import { APPROVE, inWorkspace, person, runIdOf, untilStatus, writeFile } from "./support.ts";

describe("storage copy", { tags: "postgres" }, () => {
  let postgres: PostgresServer;
  let s3: S3Server;
  beforeAll(async () => {
    [postgres, s3] = await Promise.all([startPostgres(), startS3rver()]);
  }, 60_000);
  afterAll(() => Promise.all([postgres.stop(), s3.stop()]));

  const copy = async (env: Record<string, string>) => {
    const child = await startProgram(["storage", "copy"], env);
    const { code } = await child.exited;
    return { code, lines: child.output, errors: child.errors() };
  };

  test("takes everything along: a run that waits goes on, a conversation too, memories are found", async () => {
    const long = "x".repeat(300_000);
    const home = await openHome({
      think: play({
        "Note it": [
          { toolCalls: [writeFile("/memories/likes.md", "short answers, in 한국어\n")] },
          { toolCalls: [writeFile("/big.txt", long)] },
          { toolCalls: [{ name: "task", args: { description: "Look", subagent_type: "general-purpose" } }] },
          { text: "noted" },
          // The task that follows in the same conversation.
          { toolCalls: [{ name: "read_file", args: { file_path: "/big.txt", limit: 1 } }] },
          ({ request }) => ({ text: `read ${request.messages.at(-1)?.toolResults[0]?.text.length ?? 0}` }),
        ],
        Look: [{ toolCalls: [{ name: "ls", args: { path: "/" } }] }, { text: "seen" }],
        "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
      }),
    });
    const files = await serveHttp(home);
    const before = await connect(files.connector, "v1");
    const noted = await before.call("run_deep_agent", { task: "Note it" });
    await untilStatus(before, runIdOf(noted), "completed");
    const waiting = await before.call("run_deep_agent", { task: "Write one file" });
    expect(waiting.structured).toMatchObject({ status: "input_required" });
    files.child.process.kill("SIGTERM");
    await files.child.exited;
    const scheduled = await startProgram(["schedule", "add", "@yearly", "Look back"], home.env);
    expect(await scheduled.exited).toMatchObject({ code: 0 });

    const env = {
      ...home.env,
      DEEPAGENT_STORAGE: postgres.url,
      DEEPAGENT_STORAGE_S3_BUCKET: BUCKET,
      DEEPAGENT_STORAGE_S3_ENDPOINT: s3.endpoint,
      // The SDK warns of Node 20.
      NODE_NO_WARNINGS: "1",
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    };
    const first = await copy(env);
    expect(first).toMatchObject({ code: 0, errors: "" });
    expect(first.lines).toContain("runs            2 copied");
    expect(first.lines).toContain("conversations   2 copied");
    expect(first.lines).toContain("schedules       1 copied");
    expect(first.lines).toContain("memories        1 copied");
    const inS3 = "SELECT 1 FROM deepagent.checkpoint_blobs WHERE object IS NOT NULL";
    expect(await postgres.query(inS3)).not.toEqual([]);
    const steps = `SELECT convert_from(value, 'UTF8') AS messages FROM deepagent.checkpoint_writes
      WHERE checkpoint_ns > '' AND channel = 'messages'`;
    expect(JSON.stringify(await postgres.query(steps))).toContain("/big.txt");
    const again = await copy(env);
    expect(again.code).toBe(0);
    expect(again.lines).toContain("runs            0 copied, 2 already existed");
    expect(again.lines).toContain("conversations   0 copied, 2 already existed");

    const { answer } = person({ "new.md": APPROVE });
    const server = await serveHttp({ env: { ...env, DEEPAGENT_DATA_DIR: `${home.dataDir}-new` } });
    const after = await connect(server.connector, "v2-modern", answer);
    expect(await untilStatus(after, runIdOf(waiting), "completed")).toMatchObject({ answer: "written" });
    expect(inWorkspace(home, "new.md")).toBe("new\n");
    const { thread_id } = noted.structured;
    const next = await after.call("run_deep_agent", { task: "And then", thread_id });
    const ended = await untilStatus(after, runIdOf(next), "completed");
    expect(String(ended["answer"])).toMatch(/^read \d{3,}$/);
    const memory = await after.readResource("deepagent://files/memories/likes.md");
    expect(JSON.stringify(memory)).toContain("한국어");
  });

  test("refuses a schema that has runs of its own, and says what to name", async () => {
    const home = await openHome({ think: play({ "Say hello": [{ text: "hello" }] }) });
    const schema = { DEEPAGENT_STORAGE: postgres.url, DEEPAGENT_STORAGE_SCHEMA: "taken" };
    for (const env of [home.env, { ...home.env, ...schema }]) {
      const server = await serveHttp({ env });
      const client = await connect(server.connector, "v1");
      const run = await client.call("run_deep_agent", { task: "Say hello" });
      await untilStatus(client, runIdOf(run), "completed");
      server.child.process.kill("SIGTERM");
      await server.child.exited;
    }
    const { code, errors } = await copy({ ...home.env, ...schema });
    expect(code).toBe(1);
    expect(errors).toContain("the schema has runs of its own. Copy into an empty schema");
  });
});
