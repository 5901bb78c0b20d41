import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHome, openStdio } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import { BUCKET, startS3rver } from "../support/s3-servers.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { APPROVE, person, writeFile } from "./support.ts";

test("folders on an S3 server and in Postgres, from the configuration", { tags: "postgres" }, async () => {
  const [s3, postgres] = await Promise.all([startS3rver(), startPostgres()]);
  onTestFinished(async () => void (await Promise.all([s3.stop(), postgres.stop()])));
  const calls = [
    { name: "write_file", args: { file_path: "/notes/b.md", content: "in a row" } },
    { name: "grep", args: { pattern: "needle" } },
    { name: "read_file", args: { file_path: "/gone/a.md" } },
  ];
  const archive = { toolCalls: [writeFile("/archive/a.md", "a needle")] };
  const think = play({ "Keep it": [archive, { toolCalls: calls }, { text: "done" }] });
  const home = await openHome({ think });
  const config = join(home.dataDir, "..", "config.json");
  const place = { endpoint: s3.endpoint, conditionalWrites: false, prefix: "kept/{principal}" };
  const keys = { accessKeyIdVariable: "ARCHIVE_ID", secretAccessKeyVariable: "ARCHIVE_KEY" };
  const mounts = {
    "/archive/": { s3: { bucket: BUCKET, ...place, ...keys } },
    "/gone/": { s3: { bucket: "nowhere", ...place, ...keys } },
    "/notes/": { postgres: { connectionStringVariable: "NOTES_URL" } },
  };
  writeFileSync(config, JSON.stringify({ mounts }));
  const { accessKeyId: ARCHIVE_ID, secretAccessKey: ARCHIVE_KEY } = s3.credentials;
  const env = { ...home.env, DEEPAGENT_CONFIG: config, ARCHIVE_ID, ARCHIVE_KEY, NOTES_URL: postgres.url };
  const { answer, forms } = person({ "/archive/a.md": APPROVE, "/notes/b.md": APPROVE });
  const client = await connect(await openStdio({ ...home, env }), "v2-modern", answer);
  expect(await client.call("run_deep_agent", { task: "Keep it" })).toMatchObject({
    structured: { status: "completed" },
  });
  expect(forms).toHaveLength(2);
  const told = answersOf(home.brain.thoughts.at(-1)!).map(({ text }) => text);
  expect(told.some((text) => text.includes("/archive/a.md"))).toBe(true);
  expect(told.join("\n")).toContain(
    "'/gone/a.md' could not be accessed: the bucket does not exist; create it or choose another",
  );
  const reader = new S3Client({ ...s3, region: "us-east-1", forcePathStyle: true });
  const object = await reader.send(new GetObjectCommand({ Bucket: BUCKET, Key: "kept/local/a.md" }));
  expect(await object.Body?.transformToString()).toBe("a needle");
  reader.destroy();
  const kept = await client.call("read_agent_file", { path: "/notes/b.md" });
  expect(kept.text).toContain("in a row");
});
