/** Runs a thread, and ends its own process if that takes too much time or memory, or if the parent has ended. */
import { createReadStream } from "node:fs";
import { deserialize } from "node:v8";
import { Worker } from "node:worker_threads";
import type { ThreadInput } from "./convert.ts";

/** The thread may be busy in a place where it cannot be stopped. */
const end = (): void => void process.kill(process.pid, "SIGKILL");

async function runThread(): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream("", { fd: 3 })) chunks.push(chunk as Buffer); // no encoding is set
  const { code, workerData, timeMs, bytes, parent } = deserialize(Buffer.concat(chunks)) as ThreadInput; // of convert.ts
  setTimeout(end, timeMs);
  // Counts everything, also buffers, which the limits of a thread leave out. Memory grows by less than that in 20 ms.
  setInterval(() => {
    if (process.memoryUsage.rss() > bytes || process.ppid !== parent) end();
  }, 20);
  const worker = new Worker(code, { eval: true, workerData, env: {}, stdout: true, stderr: true });
  worker.once("message", (outcome: unknown) => {
    process.stdout.write(JSON.stringify(outcome), () => process.exit());
  });
  worker.once("error", end);
}

runThread().catch(end);
