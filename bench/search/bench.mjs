// Searching a tree of 50,000 files: grep and glob against raw `rg` and `rg --files`, also with rules for files.
// Usage: npm run build && node bench/search/bench.mjs [files]
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { rgPath } from "@vscode/ripgrep";
import { FilesystemBackend, PolicyBackend, SENSITIVE_GLOBS } from "../../dist/index.js";

const FILES = Number(process.argv[2] ?? 50_000);
const ROUNDS = 9;
const FILES_PER_FOLDER = 50;

/** Folders of 50 files of about 2 KB, four levels deep; each needle is in the files its rarity tells. */
function generate(root) {
  const filler = Array.from(
    { length: 40 },
    (_, line) => `export const value${line} = compute(${line}, "text");`,
  );
  for (let index = 0; index < FILES; index += 1) {
    const folder = Math.floor(index / FILES_PER_FOLDER);
    const directory = join(
      root,
      `area-${folder % 10}`,
      `part-${Math.floor(folder / 10) % 10}`,
      `unit-${folder}`,
    );
    if (index % FILES_PER_FOLDER === 0) mkdirSync(directory, { recursive: true });
    const marks = [
      "every",
      ...(index % 50 === 0 ? ["often"] : []),
      ...(index % 1000 === 0 ? ["seldom"] : []),
    ];
    const lines = [
      ...filler.slice(0, 20),
      ...marks.map((mark) => `// needle-${mark} ${index}`),
      ...filler.slice(20),
    ];
    writeFileSync(join(directory, `file-${index}.${index % 2 === 0 ? "ts" : "md"}`), `${lines.join("\n")}\n`);
  }
}

const rg = (root, ...args) => {
  try {
    return execFileSync(rgPath, ["--no-config", "--hidden", "--no-ignore", "--color=never", ...args], {
      cwd: root,
      maxBuffer: 1e9,
      stdio: ["ignore", "pipe", "inherit"],
    });
  } catch (thrown) {
    if (thrown.status === 1) return thrown.stdout; // nothing found
    throw thrown;
  }
};

async function timed(run) {
  const start = performance.now();
  const result = await run();
  return { took: performance.now() - start, result };
}

const countLines = (output) => output.reduce((lines, byte) => lines + (byte === 10 ? 1 : 0), 0);

/** Both take turns, so that what else the machine does falls on both. */
async function compare({ name, ours, peer, expected = (lines) => lines }) {
  const times = { ours: [], peer: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const theirs = await timed(peer);
    const own = await timed(ours);
    if (own.result.error !== undefined) throw new Error(own.result.error);
    const found = (own.result.matches ?? own.result.files).length;
    const wanted = expected(countLines(theirs.result));
    if (found !== wanted) throw new Error(`${name}: ${found} found, ${wanted} expected`);
    if (round === 0) continue; // fills the page cache
    times.peer.push(theirs.took);
    times.ours.push(own.took);
  }
  // The fastest is what is left when the machine does nothing else.
  const [peerTime, ownTime] = [Math.min(...times.peer), Math.min(...times.ours)];
  console.log(
    `| ${name} | ${peerTime.toFixed(0)} | ${ownTime.toFixed(0)} | ${(ownTime / peerTime).toFixed(2)} |`,
  );
}

const root = mkdtempSync(join(tmpdir(), "deepagent-search-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
generate(root);
const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
const guarded = new PolicyBackend(backend, { denyGlobs: SENSITIVE_GLOBS, denyPrefixes: ["/area-9"] });
const grep = (pattern, { cap = 1_000_000, glob = null, regex = false, on = backend } = {}) =>
  on.grep(pattern, "/", glob, cap, { regex });
console.log(
  `${FILES} files, Node ${process.version}, ${process.platform}, ${cpus().length} cores, fastest of ${ROUNDS}\n`,
);
console.log("| search | rg (ms) | ours (ms) | ratio |");
console.log("|---|---|---|---|");
const cases = [
  {
    name: "grep, no match",
    ours: () => grep("needle-nowhere"),
    peer: () => rg(root, "-nF", "needle-nowhere"),
  },
  {
    name: "grep, match in 1 of 1000",
    ours: () => grep("needle-seldom"),
    peer: () => rg(root, "-nF", "needle-seldom"),
  },
  {
    name: "grep, match in 1 of 50",
    ours: () => grep("needle-often"),
    peer: () => rg(root, "-nF", "needle-often"),
  },
  {
    name: "grep, expression, match in 1 of 1000",
    ours: () => grep("needle-(seldom|never) \\d+", { regex: true }),
    peer: () => rg(root, "-n", "needle-(seldom|never) \\d+"),
  },
  {
    name: "grep, match in every file, all",
    ours: () => grep("needle-every"),
    peer: () => rg(root, "-nF", "needle-every"),
  },
  {
    name: "grep in `*.ts`, match in 1 of 1000",
    ours: () => grep("needle-seldom", { glob: "*.ts" }),
    peer: () => rg(root, "-nF", "--glob=*.ts", "needle-seldom"),
  },
  {
    name: "grep, match in every file, first 100",
    ours: () => grep("needle-every", { cap: 100 }),
    peer: () => rg(root, "-nF", "needle-every"),
    expected: () => 100,
  },
  { name: "glob `**`", ours: () => backend.glob("**", "/"), peer: () => rg(root, "--files") },
  {
    name: "glob `**/*.ts`",
    ours: () => backend.glob("**/*.ts", "/"),
    peer: () => rg(root, "--files", "--glob=*.ts"),
  },
  {
    name: "glob `area-3/**/*.md`",
    ours: () => backend.glob("area-3/**/*.md", "/"),
    peer: () => rg(root, "--files", "--glob=area-3/**/*.md"),
  },
  {
    name: "grep with rules, match in 1 of 1000",
    ours: () => grep("needle-seldom", { on: guarded }),
    peer: () => rg(root, "-nF", "needle-seldom"),
  },
  {
    name: "grep with rules, match in 1 of 50",
    ours: () => grep("needle-often", { on: guarded }),
    peer: () => rg(root, "-nF", "needle-often"),
  },
  { name: "glob `**` with rules", ours: () => guarded.glob("**", "/"), peer: () => rg(root, "--files") },
];
for (const one of cases) await compare(one);
