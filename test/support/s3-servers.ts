import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import S3rver from "s3rver";
import { freePort } from "./free-port.ts";

/** A server with the bucket `files`. */
export interface S3Server {
  endpoint: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
  stop(): Promise<void>;
}

export const BUCKET = "files";

/** A server in this process that ignores the conditions of writes. */
export async function startS3rver(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "deepagent-s3-"));
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    allowMismatchedSignatures: false,
    directory,
    configureBuckets: [{ name: BUCKET, configs: [] }],
  });
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    stop: async () => {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The server of the Python package moto, which keeps conditions; for tests with the tag `moto`. */
export async function startMoto(): Promise<S3Server> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const credentials = { accessKeyId: "tester", secretAccessKey: "correct-horse" };
  const server = spawn("moto_server", ["-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
  const client = new S3Client({ endpoint, credentials, region: "us-east-1", forcePathStyle: true });
  await untilAnswers(server, endpoint);
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  client.destroy();
  return {
    endpoint,
    credentials,
    stop: async () => {
      const ended = once(server, "exit");
      server.kill();
      await ended;
    },
  };
}

async function untilAnswers(server: ChildProcess, endpoint: string): Promise<void> {
  while (server.exitCode === null) {
    try {
      await fetch(endpoint);
      return;
    } catch {
      await delay(50);
    }
  }
  throw new Error(`the S3 server ended with exit code ${server.exitCode}`);
}
