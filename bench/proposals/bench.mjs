// A copy of a workspace against `cp -a`, and the look at what changed in it against `diff -rq` of two folders.
// Usage: node bench/proposals/bench.mjs [files] [rounds]
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { loadSources } from "../../scripts/sources.mjs";

const FILES = Number(process.argv[2] ?? 10_000);
const ROUNDS = Number(process.argv[3] ?? 3);
const CHANGED = 20;

const { WorkspaceProposals, copyOf } = await loadSources(`
  export { WorkspaceProposals } from "./src/proposals/proposals.ts";
  export { copyOf } from "./src/proposals/workspace-copy.ts";
`);

const home = mkdtempSync(join(tmpdir(), "bench-proposals-"));
const workspace = join(home, "workspace");
for (let index = 0; index < FILES; index += 1) {
  const folder = join(workspace, `f${index % 200}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${index}.ts`), `export const n${index} = ${index};\n`.repeat(100));
}

const times = {};
async function timed(name, work) {
  const start = performance.now();
  const result = await work();
  (times[name] ??= []).push(performance.now() - start);
  return result;
}

try {
  for (let round = 0; round < ROUNDS; round += 1) {
    const dir = join(home, `copies${round}`);
    const run = { id: "run_1", threadId: "thr_1", task: "Bench" };
    const proposals = new WorkspaceProposals({ dir, without: [], maxBytes: 1e12 });
    const plain = join(home, `plain${round}`);
    await timed("cp -a", () => execFileSync("cp", ["-a", workspace, plain]));
    await timed("copy", () => proposals.open(run, workspace));
    const tree = copyOf(dir, run.threadId);
    for (let index = 0; index < CHANGED; index += 1)
      writeFileSync(join(tree, `f${index}`, `${index}.ts`), `round ${round}\n${"line\n".repeat(100)}`);
    await timed("diff -rq", () => {
      try {
        execFileSync("diff", ["-rq", tree, plain]);
      } catch {
        // It found differences.
      }
    });
    const { files } = await timed("look", () => proposals.change(run));
    const shown = Object.fromEntries(files.map(({ path, version }) => [path, version]));
    const apply = Object.fromEntries(files.map(({ path }) => [path, "all"]));
    await timed("apply", () => proposals.review(run, { apply }, { id: "review_1", by: "bench", shown }));
    rmSync(plain, { recursive: true });
    rmSync(dir, { recursive: true });
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}

const median = (name) => times[name].toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)];
console.log(`${FILES} files, ${CHANGED} of them changed, median of ${ROUNDS}`);
for (const [name, floor] of [
  ["copy", "cp -a"],
  ["look", "diff -rq"],
  ["apply", "diff -rq"],
])
  console.log(
    `${name.padEnd(6)} ${median(name).toFixed(0)} ms, ${floor} ${median(floor).toFixed(0)} ms: ${(median(name) / median(floor)).toFixed(2)}`,
  );
