// What `npx` has to fetch before the first answer, beside two packages that people install for the like: number of
// packages, megabytes on the disk, and seconds of `npm install` into an empty folder with nothing in npm's cache.
// Usage: npm run build && node bench/install/bench.mjs [node]
// `node`: another Node to install and start with, such as the one of the npm package node@22.
import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const ROUNDS = 3;
const node = process.argv[2] ?? process.execPath;
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const versions = { ...manifest.devDependencies, ...manifest.dependencies };

const folder = mkdtempSync(join(tmpdir(), "deepagent-install-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
const npm = (args, cwd) =>
  execFileSync("npm", args, { cwd, env, stdio: ["ignore", "pipe", "ignore"], timeout: 600_000 });

const script = join(ROOT, "scripts/package.mjs");
const tarball = execFileSync(process.execPath, [script, folder], { encoding: "utf8" }).trim();

const PACKAGES = {
  "deepagent-mcp": [tarball],
  "@playwright/mcp": ["@playwright/mcp@latest"],
  "deepagents with a model": [
    `deepagents@${versions.deepagents}`,
    ...["langchain", "@langchain/core", "@langchain/langgraph", "@langchain/anthropic", "zod"].map(
      (name) => `${name}@${versions[name]}`,
    ),
  ],
};

function bytesIn(path) {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return stats.blocks * 512;
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0);
}

/** Installed packages: those of the lockfile that are on the disk. */
function packagesIn(place) {
  const { packages } = JSON.parse(readFileSync(join(place, "node_modules/.package-lock.json"), "utf8"));
  return Object.keys(packages).length;
}

function install(specifiers) {
  const place = mkdtempSync(join(folder, "place-"));
  const cache = join(place, "cache");
  mkdirSync(cache);
  // Without it some registries have no set of versions that fits.
  const overrides = { "@langchain/langgraph-sdk": versions["@langchain/langgraph-sdk"] };
  writeFileSync(join(place, "package.json"), JSON.stringify({ overrides }));
  const start = performance.now();
  npm(["install", "--no-audit", "--no-fund", "--cache", cache, ...specifiers], place);
  const seconds = (performance.now() - start) / 1000;
  const found = { seconds, packages: packagesIn(place), bytes: bytesIn(join(place, "node_modules")) };
  rmSync(place, { recursive: true, force: true });
  return found;
}

const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
console.log(`Node ${version}, ${process.platform}, median of ${ROUNDS}, interleaved\n`);
console.log("| installed | packages | MB | seconds |\n|---|---|---|---|");
const rounds = Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1)
  for (const [name, specifiers] of Object.entries(PACKAGES)) {
    try {
      rounds[name].push(install(specifiers));
    } catch (error) {
      rounds[name].push({ seconds: NaN, packages: NaN, bytes: NaN });
      console.error(`${name} could not be installed: ${String(error.message).split("\n")[0]}`);
    }
  }
for (const [name, found] of Object.entries(rounds)) {
  const { packages, bytes } = found[0];
  const seconds = found.map((one) => one.seconds).toSorted((one, other) => one - other)[1];
  console.log(`| ${name} | ${packages} | ${(bytes / 1e6).toFixed(1)} | ${seconds.toFixed(1)} |`);
}
