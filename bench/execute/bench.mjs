/**
 * What the sandbox costs a command: `true` in Bubblewrap, with and without the shared namespaces of a run, and in the local shell against a plain spawn of
 * the same shell, interleaved, medians. `node bench/execute/bench.mjs [rounds]`
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const rounds = Number(process.argv[2] ?? 100);
const root = join(import.meta.dirname, "../..");
const outfile = join(root, "node_modules/.cache/deepagent-bench/execute.mjs");
await build({
  stdin: {
    contents:
      'export { LocalShellBackend } from "./src/backends/sandbox/shell-backend.ts"; export { BubblewrapBackend, openBubblewrap } from "./src/backends/sandbox/bubblewrap.ts";',
    resolveDir: root,
  },
  outfile,
  bundle: true,
  format: "esm",
  platform: "node",
  // The CommonJS form of jsonc-parser cannot be bundled.
  mainFields: ["module", "main"],
  external: ["@vscode/ripgrep"],
});
const { BubblewrapBackend, LocalShellBackend, openBubblewrap } = await import(outfile);

const rootDir = mkdtempSync(join(tmpdir(), "deepagent-bench-"));
const local = new LocalShellBackend({ rootDir, virtualMode: true });
const opened = await openBubblewrap({ rootDir });
if (!opened.ok) console.error(opened.reason);
/** Without the shared namespaces of a run: a network and a `/tmp` for each command. */
const apart = new BubblewrapBackend({ rootDir }, { hasSizeLimits: true, isShared: false });
const plain = () =>
  new Promise((resolve) => {
    spawn("/bin/bash", ["-c", "true"], { stdio: ["ignore", "pipe", "pipe"] }).on("close", resolve);
  });
const subjects = {
  "plain spawn": plain,
  "local shell": () => local.execute("true"),
  ...(opened.ok
    ? {
        bubblewrap: () => opened.backend.execute("true"),
        "each apart": () => apart.execute("true"),
      }
    : {}),
};

const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
for (let round = 0; round < rounds + 5; round += 1) {
  for (const [name, run] of Object.entries(subjects)) {
    const start = performance.now();
    await run();
    if (round >= 5) times[name].push(performance.now() - start);
  }
}
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const floor = median(times["plain spawn"]);
console.log(`${rounds} rounds, median ms a command`);
for (const [name, values] of Object.entries(times))
  console.log(
    `${name.padEnd(12)} ${median(values).toFixed(1).padStart(6)}  ${(median(values) / floor).toFixed(2)} x`,
  );
await local.close();
await apart.close();
if (opened.ok) await opened.backend.close();
rmSync(rootDir, { recursive: true });
