// Ten lines at the start, middle and end of a 500 MB file against `sed`; 100 edits of a 5 MB file.
// Usage: npm run build && node bench/read/bench.mjs [megabytes]
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { FilesystemBackend } from "../../dist/index.js";

const MEGABYTES = Number(process.argv[2] ?? 500);
const ROUNDS = 5;
const EDITS = 100;
const LINE_LENGTH = 100;
const LINES_PER_MEGABYTE = 10_000;

const lineAt = (number) => `line ${number} `.padEnd(LINE_LENGTH - 1, "-");
const megabyteFrom = (first) =>
  `${Array.from({ length: LINES_PER_MEGABYTE }, (_, index) => lineAt(first + index)).join("\n")}\n`;
const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)];

async function timed(run) {
  const start = performance.now();
  const result = await run();
  return { took: performance.now() - start, result };
}

/** Memory that the first read of a process takes beyond what one of a small file takes, in MB. */
function extraMemory(root, offset) {
  const script = fileURLToPath(import.meta.url);
  return Number(execFileSync(process.execPath, [script, "--memory", root, offset], { encoding: "utf8" }));
}

async function printExtraMemory(root, offset) {
  const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
  await backend.read("/small.log", 0, 10);
  const before = process.resourceUsage().maxRSS;
  await backend.read("/large.log", offset, 10);
  console.log((process.resourceUsage().maxRSS - before) / 1024);
}

async function readTenLines(root, backend, lines) {
  console.log("| ten lines at the | sed (ms) | ours (ms) | ratio | extra memory (MB) |");
  console.log("|---|---|---|---|---|");
  const places = { start: 0, middle: Math.floor(lines / 2), end: lines - 10 };
  for (const [place, offset] of Object.entries(places)) {
    const read = () => backend.read("/large.log", offset, 10);
    // sed is told to stop behind the last line wanted, as we do.
    const script = `${offset + 1},${offset + 10}p;${offset + 10}q`;
    const sed = () => execFileSync("sed", ["-n", script, join(root, "large.log")], { encoding: "utf8" });
    const memory = extraMemory(root, offset);
    const times = { sed: [], ours: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      const theirs = await timed(sed);
      const own = await timed(read);
      if (own.result.content !== theirs.result) throw new Error(`${place}: not what sed gives`);
      times.sed.push(theirs.took);
      times.ours.push(own.took);
    }
    const [sedTime, ownTime] = [median(times.sed), median(times.ours)];
    const cells = [sedTime.toFixed(1), ownTime.toFixed(1), (ownTime / sedTime).toFixed(2), memory.toFixed(1)];
    console.log(`| ${place} | ${cells.join(" | ")} |`);
  }
}

/** The floor is what an edit cannot do without: reading the file and writing it whole. */
async function editOften(root, backend) {
  const times = { floor: [], ours: [] };
  const paths = { floor: join(root, "floor.txt"), ours: join(root, "edited.txt") };
  const text = Array.from({ length: 5 }, (_, index) => megabyteFrom(index * LINES_PER_MEGABYTE)).join("");
  for (const path of Object.values(paths)) writeFileSync(path, text);
  for (let edit = 0; edit < EDITS; edit += 1) {
    const number = edit * 400;
    const floor = await timed(() => {
      const old = readFileSync(paths.floor, "utf8");
      writeFileSync(paths.floor, old.replace(`line ${number} `, `edit ${number} `), { flush: true });
    });
    const own = await timed(() =>
      backend.edit("/edited.txt", `\nline ${number + 1} `, `\nedit ${number + 1} `),
    );
    if (own.result.error !== undefined) throw new Error(own.result.error);
    times.floor.push(floor.took);
    times.ours.push(own.took);
  }
  const [floor, ours] = [median(times.floor), median(times.ours)];
  console.log(`\n| ${EDITS} edits of 5 MB | read, replace, write (ms each) | ours (ms each) | ratio |`);
  console.log("|---|---|---|---|");
  console.log(`| median | ${floor.toFixed(1)} | ${ours.toFixed(1)} | ${(ours / floor).toFixed(2)} |`);
}

async function main() {
  const root = mkdtempSync(join(tmpdir(), "deepagent-read-"));
  process.on("exit", () => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, "small.log"), "one line\n");
  const descriptor = openSync(join(root, "large.log"), "w");
  for (let megabyte = 0; megabyte < MEGABYTES; megabyte += 1) {
    writeSync(descriptor, megabyteFrom(megabyte * LINES_PER_MEGABYTE));
  }
  closeSync(descriptor);
  const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
  await backend.read("/large.log", MEGABYTES * LINES_PER_MEGABYTE - 10, 10); // fills the page cache
  console.log(
    `${MEGABYTES} MB, Node ${process.version}, ${process.platform}, ${cpus().length} cores, median of ${ROUNDS}\n`,
  );
  await readTenLines(root, backend, MEGABYTES * LINES_PER_MEGABYTE);
  await editOften(root, backend);
}

if (process.argv[2] === "--memory") await printExtraMemory(process.argv[3], Number(process.argv[4]));
else await main();
