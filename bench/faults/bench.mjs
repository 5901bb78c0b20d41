/**
 * Faults of many machines on one Postgres: two servers and two workers serve clients that start runs all the time,
 * while processes are killed and suspended, connections and the network break, and Postgres restarts, crashes, is gone
 * and fails over to a replica. Ends with 1 when anything acknowledged was lost or done twice.
 *
 * Usage: npm run build && node bench/faults/bench.mjs [--faults 1000] [--seed N] [--people 6] [--only "kind of fault"]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { loadSources } from "../../scripts/sources.mjs";

const { values } = parseArgs({
  options: {
    faults: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    people: { type: "string", default: "6" },
    only: { type: "string", multiple: true, default: [] },
  },
});
const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { disturb } = await loadSources('export { disturb } from "./test/faults/disturb.ts";');
const folder = mkdtempSync(join(root, "node_modules/.cache/faults-"));
const linesServer = join(folder, "lines-server.mjs");
await build({
  entryPoints: [join(root, "test/crash/lines-server.ts")],
  outfile: linesServer,
  bundle: true,
  platform: "node",
  // The CommonJS form of jsonc-parser cannot be bundled.
  mainFields: ["module", "main"],
  format: "esm",
});
const { only } = values;
const count = Number(values.faults);
const begun = Date.now();
// What was started ends with this process.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
const report = await disturb({
  program: join(root, "dist/bin/deepagent-mcp.js"),
  linesServer,
  seed: Number(values.seed),
  people: Number(values.people),
  faults: only.length === 0 ? count : Array.from({ length: count }, (_, n) => only[n % only.length]),
  log: (line) => console.error(`${((Date.now() - begun) / 1000).toFixed(0)} s: ${line}`),
});
rmSync(folder, { recursive: true });

const at = (share) => {
  const sorted = report.takeovers.toSorted((a, b) => a - b);
  return ((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000).toFixed(1);
};
const minutes = ((Date.now() - begun) / 60_000).toFixed(1);
console.log(`Seed ${values.seed}, ${minutes} minutes, Node ${process.version}.\n`);
console.log("| fault | times |\n|---|---|");
let total = 0;
for (const [kind, times] of report.faults) {
  total += times;
  console.log(`| ${kind} | ${times} |`);
}
console.log(`| all | ${total} |\n`);
console.log(
  `${report.stories} runs, ${report.decisions} decisions, ${report.messages} messages and ${report.events} events acknowledged; ` +
    `${report.toldAgain} events of progress stored again after a crash of Postgres.`,
);
console.log(
  `Taken over after a kill, ${report.takeovers.length} runs: p50 ${at(0.5)} s, p99 ${at(0.99)} s, longest ${at(1)} s.`,
);
console.error("\nErrors that clients got:");
for (const [text, times] of [...report.errors].toSorted((a, b) => b[1] - a[1]))
  console.error(`${times} × ${text}`);
console.log(`\n${report.complaints.length} violations.`);
for (const complaint of report.complaints.slice(0, 50)) console.log(`- ${complaint}`);
process.exit(report.complaints.length === 0 ? 0 : 1);
