// Converts a page in a thread, as src/web/convert.ts does. As a program, with a file: prints the peak memory in MB.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

const CHUNKS = fileURLToPath(new URL("../../dist/bin/chunks", import.meta.url));
const chunk = readdirSync(CHUNKS).find((name) => name.startsWith("html.thread"));
const { default: code } = await import(pathToFileURL(join(CHUNKS, chunk)).href);

/** The text of a page. Rejects if the thread fails. */
export async function convertPage(html, url) {
  const workerData = { html, url, isPlain: false };
  const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8 };
  const worker = new Worker(code, { eval: true, workerData, env: {}, execArgv: [], resourceLimits });
  try {
    const [{ text }] = await new Promise((done, failed) => {
      worker.once("message", (...message) => done(message));
      worker.once("error", failed);
    });
    return text;
  } finally {
    await worker.terminate();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await convertPage(readFileSync(process.argv[2], "utf8"), "https://site.example/docs/page.html");
  console.log(process.resourceUsage().maxRSS / 1024);
}
