import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { beforeEach, expect, it } from "vitest";
import { filesIn } from "../../support/files-in.ts";

let base: string;
let root: string;

beforeEach(() => {
  base = filesIn();
  root = mkdtempSync(join(base, "root-"));
});

const ROUNDS = 60;
const PROCESSES = 4;

/** Counts up a file in competition with other processes, and tells how often it did. */
const COUNTER = `
  import { FilesystemBackend } from ${JSON.stringify(join(import.meta.dirname, "../../../src/backends/filesystem/filesystem.ts"))};
  const backend = new FilesystemBackend({ rootDir: process.argv[2], virtualMode: true });
  let done = 0;
  let refused = 0;
  for (let round = 0; round < ${ROUNDS}; round += 1) {
    const { content, version } = await backend.read("/count.txt");
    const next = String(Number(content) + 1);
    const result = await backend.write("/count.txt", next, { mode: "overwrite", expectedVersion: version });
    if (result.error === undefined) done += 1;
    else if (result.code === "conflict") refused += 1;
    else throw new Error(result.error);
    const line = await backend.edit("/lines.txt", "END", process.pid + "\\nEND");
    if (line.error !== undefined && line.code !== "conflict") throw new Error(line.error);
    done += line.error === undefined ? 1000 : 0;
  }
  process.stdout.write(JSON.stringify({ done, refused }));
`;

async function compete(script: string): Promise<{ done: number; refused: number }> {
  const child = spawn(process.execPath, [script, root], { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code).toBe(0);
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as { done: number; refused: number };
}

it("several processes on one file lose no update: each lands or is told of a conflict", async () => {
  const script = join(base, "counter.mjs");
  await build({
    stdin: { contents: COUNTER, loader: "ts", resolveDir: import.meta.dirname },
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "bundle",
    external: ["@vscode/ripgrep"],
    // The CommonJS form of jsonc-parser cannot be bundled.
    mainFields: ["module", "main"],
    outfile: script,
    logLevel: "error",
  });
  writeFileSync(join(root, "count.txt"), "0");
  writeFileSync(join(root, "lines.txt"), "END");
  const results = await Promise.all(Array.from({ length: PROCESSES }, () => compete(script)));
  const counted = results.reduce((sum, { done }) => sum + (done % 1000), 0);
  const lines = results.reduce((sum, { done }) => sum + Math.floor(done / 1000), 0);
  expect(readFileSync(join(root, "count.txt"), "utf8")).toBe(String(counted));
  expect(readFileSync(join(root, "lines.txt"), "utf8").split("\n")).toHaveLength(lines + 1);
  expect(results.some(({ refused }) => refused > 0)).toBe(true);
  expect(readdirSync(root).sort()).toEqual(["count.txt", "lines.txt"]);
});
