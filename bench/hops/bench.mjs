// How much of src a plain run goes through: a client starts the server over stdio, gives a task to the offline model,
// and waits for the answer. Prints the number of functions that were called, and of files that they are in.
// Usage: node bench/hops/bench.mjs [folder of a checkout, default this one] [--list]
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [folder = fileURLToPath(new URL("../..", import.meta.url))] = process.argv
  .slice(2)
  .filter((word) => !word.startsWith("--"));
const src = pathToFileURL(join(resolve(folder), "src/")).href;
const place = mkdtempSync(join(tmpdir(), "deepagent-hops-"));
process.once("exit", () => rmSync(place, { recursive: true, force: true }));

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [
    "--import",
    new URL("from-source.mjs", import.meta.url).href,
    fileURLToPath(new URL("main.ts", src)),
    "--model",
    "offline",
    "--workspace",
    place,
  ],
  env: {
    PATH: process.env.PATH,
    HOME: place,
    XDG_DATA_HOME: join(place, "data"),
    NODE_V8_COVERAGE: join(place, "coverage"),
  },
  stderr: "inherit",
});
const client = new Client({ name: "hops", version: "1" });
await client.connect(transport);
const { structuredContent } = await client.callTool(
  { name: "run_deep_agent", arguments: { task: "Say hello.", wait_seconds: 60 } },
  { timeout: 120_000 },
);
await client.close();
if (structuredContent?.status !== "completed")
  throw new Error(`The run did not end: ${JSON.stringify(structuredContent)}`);

const called = new Map();
for (const name of readdirSync(join(place, "coverage"))) {
  const { result } = JSON.parse(readFileSync(join(place, "coverage", name), "utf8"));
  for (const { url, functions } of result) {
    if (!url.startsWith(src)) continue;
    for (const {
      functionName,
      ranges: [{ startOffset, count }],
    } of functions)
      if (functionName !== "" && count > 0)
        called.set(url, (called.get(url) ?? new Set()).add(`${functionName} ${startOffset}`));
  }
}
const functions = [...called.values()].reduce((sum, { size }) => sum + size, 0);
console.log(`${functions} functions in ${called.size} files`);
if (process.argv.includes("--list"))
  for (const [url, names] of [...called].sort())
    console.log(`${url.slice(src.length)}: ${[...names].map((name) => name.split(" ")[0]).join(" ")}`);
