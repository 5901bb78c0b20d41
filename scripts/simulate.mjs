/**
 * Simulates worlds of servers, people and faults in virtual time: `npm run simulate -- --seeds 10000`, on as many cores
 * as there are. See test/simulation/main.ts for the options, and docs/reliability.md for what is checked.
 */
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { threadTexts } from "./thread-texts.mjs";
import { BROKEN } from "../test/simulation/broken.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, `node_modules/.cache/simulation-${process.pid}`);
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    break: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
  strict: false,
});
const broken = values.break === undefined ? undefined : BROKEN[values.break];
if (values.break !== undefined && broken === undefined)
  throw new Error(`--break takes one of: ${Object.keys(BROKEN).join(", ")}`);

/** Modules that reach real processes or virtual time, and those that take their places. */
const REPLACED = values.postgres
  ? {
      "process-mark.ts": "postgres/process-mark.ts",
      "virtual-machine.ts": "postgres/real-machine.ts",
      "branch.ts": "no-branches.ts",
    }
  : { "process-mark.ts": "process-mark.ts", "branch.ts": "no-branches.ts" };
const replaced = {
  name: "replaced",
  setup({ onResolve }) {
    onResolve({ filter: /\/(process-mark|branch|virtual-machine)\.ts$/ }, ({ path }) => {
      const instead = REPLACED[basename(path)];
      return instead === undefined ? undefined : { path: join(root, "test/simulation", instead) };
    });
  },
};

/** Builds a fault in. */
const faults = {
  name: "faults",
  setup({ onLoad }) {
    if (broken === undefined) return;
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (path !== join(root, broken.file)) return undefined;
      const text = readFileSync(path, "utf8");
      if (!text.includes(broken.line))
        throw new Error(`${broken.file} has no such line any more: ${broken.line}`);
      return { contents: text.replace(broken.line, broken.instead), loader: "ts" };
    });
  },
};

await build({
  absWorkingDir: root,
  entryPoints: values.postgres
    ? ["test/simulation/postgres/main.ts", "test/simulation/postgres/server.ts"]
    : ["test/simulation/main.ts"],
  loader: { ".wasm": "binary" },
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  packages: "external",
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  plugins: [replaced, faults, threadTexts],
  logLevel: "warning",
});

const args = process.argv
  .slice(2)
  .filter((word, index, all) => word !== "--break" && all[index - 1] !== "--break");
// Worlds on a Postgres run at once in one process, with servers in others.
const isOne = values.postgres || args.includes("--seed") || args.includes("--hashes");
const workers = isOne ? 1 : availableParallelism();
const share = Math.ceil(Number(values.seeds) / workers);
const codes = await Promise.all(
  Array.from({ length: workers }, (_, index) => {
    const from = Number(values.from) + index * share;
    const seeds = Math.min(share, Number(values.from) + Number(values.seeds) - from);
    const own = isOne ? args : [...args, "--from", String(from), "--seeds", String(seeds)];
    const child = spawn(process.execPath, [join(folder, "main.mjs"), ...own], { stdio: "inherit" });
    return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
  }),
);
process.exitCode = Math.max(...codes);
