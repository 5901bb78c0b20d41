/**
 * Runs the official MCP conformance suite, for both protocol eras, against
 * - `fixture`: the product's HTTP endpoint with the tools, resources and prompts that the suite asks for, and
 * - `product`: the built program as it is shipped, with the scenarios that need nothing of the suite's own.
 *
 * What does not pass is written down with its reason in expectations.json. The run fails
 * when something else does not pass, when something written down passes, and when a scenario of the suite is
 * neither run nor left out with a reason.
 */
import { existsSync, mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { threadTexts } from "../../scripts/thread-texts.mjs";
import { output, startServer } from "./processes.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const kit = join(here, "kit");
const node = join(kit, "node_modules/node/bin/node");
const suite = join(kit, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const bundled = join(root, "node_modules/.cache", `deepagent-conformance-${process.pid}`);
const expectations = JSON.parse(readFileSync(join(here, "expectations.json"), "utf8"));
const REVISIONS = ["2025-11-25", "2026-07-28"];
const PASSED = ["SUCCESS", "INFO"];
const scratch = mkdtempSync(join(tmpdir(), "deepagent-conformance-"));

try {
  const problems = await conform();
  for (const problem of problems) console.error(`✗ ${problem}`);
  console.log(problems.length === 0 ? "\nAll as expected." : `\n${problems.length} not as expected.`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} catch (error) {
  console.error(`The conformance suite could not be run: ${error.message}`);
  process.exitCode = 1;
} finally {
  for (const folder of [scratch, bundled]) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

async function conform() {
  await installKit();
  // Each has a server of its own; most of the time the suite waits for what servers do.
  const parts = await Promise.all(
    Object.entries({ fixture: startFixture, product: startProduct }).map(([target, start]) =>
      check(target, start),
    ),
  );
  const results = parts.flat();
  printTable(results);
  return [...compare(results), ...(await findUnrun(results))];
}

async function check(target, start) {
  const results = [];
  const server = await start();
  try {
    for (const revision of REVISIONS) results.push(...(await run({ target, revision, url: server.url })));
    if (target === "product") results.push(...(await runExtensions(server.url)));
  } finally {
    await server.close();
  }
  return results;
}

/** The suite needs Node 22; a `node` among the package's own dependencies would run every npm script. */
async function installKit() {
  const installed = join(kit, "node_modules/.package-lock.json");
  const wanted = JSON.parse(readFileSync(join(kit, "package.json"), "utf8")).devDependencies;
  const packages = existsSync(installed) ? JSON.parse(readFileSync(installed, "utf8")).packages : {};
  const isThere = ([name, version]) => packages[`node_modules/${name}`]?.version === version;
  if (Object.entries(wanted).every(isThere) && existsSync(node)) return;
  console.log("Installing the suite and Node 22 …");
  await output(["npm", "ci", "--no-audit", "--no-fund"], { cwd: kit });
  if (!existsSync(node)) throw new Error(`npm ci in ${kit} brought no Node 22`);
}

async function startFixture() {
  await build({
    absWorkingDir: root,
    entryPoints: { "fixture-server": "test/conformance/fixture-server.ts" },
    outdir: bundled,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
    external: ["@langchain/*", "langchain", "better-sqlite3", "@vscode/ripgrep"],
    // As in scripts/build.mjs.
    alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
    plugins: [threadTexts],
  });
  // Its files go with the others, however it ends.
  return startServer([join(bundled, "fixture-server.js")], { ...process.env, TMPDIR: scratch });
}

async function startProduct() {
  const bin = join(root, "dist/bin/deepagent-mcp.js");
  if (!existsSync(bin)) throw new Error("the program is not built: run npm run build first");
  const workspace = join(scratch, "workspace");
  mkdirSync(workspace);
  const { PATH = "" } = process.env;
  const flags = ["--http", "--port", "0", "--model", "offline", "--workspace", workspace];
  const data = ["--data-dir", join(scratch, "data")];
  return startServer([bin, "serve", ...flags, ...data], { PATH, HOME: scratch });
}

/** Every check of one revision's scenarios, as far as they fit the target. */
async function run({ target, revision, url }) {
  const folder = join(scratch, `${target}-${revision}`);
  const args = [suite, "server", "--url", url, "--requirements", revision, "-o", folder];
  // The suite's exit code counts what is written down with a reason, too.
  await output([node, ...args], { mayFail: true });
  const fitting = target === "product" ? expectations.product[revision] : undefined;
  return checksIn({ target, revision, folder, fitting });
}

/** Scenarios of extensions, which belong to no revision's requirements; the product has what they need. */
async function runExtensions(url) {
  const folder = join(scratch, "product-extensions");
  for (const name of expectations.productExtensions) {
    await output([node, suite, "server", "--url", url, "--scenario", name, "-o", folder], { mayFail: true });
  }
  return checksIn({ target: "product", revision: REVISIONS.at(-1), folder });
}

function checksIn({ target, revision, folder, fitting }) {
  return readdirSync(folder).flatMap((name) => {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1] ?? name;
    if (fitting !== undefined && !fitting.includes(scenario)) return [];
    const checks = JSON.parse(readFileSync(join(folder, name, "checks.json"), "utf8"));
    return [{ target, revision, scenario, checks: checks.filter(({ status }) => status !== "INFO") }];
  });
}

function idOf({ target, revision, scenario }, check) {
  return [target, revision, scenario, check].join(" ");
}

function compare(results) {
  const expected = new Map(expectations.notPassing.map((entry) => [idOf(entry, entry.check), entry.reason]));
  const problems = [];
  const seen = new Set();
  for (const [id, reason] of expected) if (!reason) problems.push(`${id}: has no reason`);
  for (const result of results) {
    if (result.checks.length === 0) problems.push(`${idOf(result, "")}: checked nothing`);
    for (const [check, all] of Object.entries(groupById(result.checks))) {
      const id = idOf(result, check);
      const failed = all.find(({ status }) => !PASSED.includes(status));
      seen.add(id);
      if (failed !== undefined && !expected.has(id)) {
        problems.push(`${id}: ${failed.status} ${failed.errorMessage ?? ""}`);
      }
      if (failed === undefined && expected.has(id)) problems.push(`${id}: passes; take it out of the list`);
    }
  }
  for (const id of expected.keys()) if (!seen.has(id)) problems.push(`${id}: was not checked`);
  return problems;
}

/** Scenarios of the suite that were neither run nor left out with a reason, and those that were both. */
async function findUnrun(results) {
  const known = new Set();
  for (const line of (await output([node, suite, "list", "--server"])).split("\n")) {
    const name = /^\s+- (\S+)/.exec(line)?.[1];
    if (name !== undefined) known.add(name);
  }
  if (known.size === 0) throw new Error("the suite lists no scenarios");
  const runsAll = ({ target, scenario }) =>
    target === "fixture" || expectations.productExtensions.includes(scenario);
  const ran = new Set(results.filter(runsAll).map(({ scenario }) => scenario));
  const leftOut = expectations.leftOut;
  const problems = [...known]
    .filter((name) => ran.has(name) === (leftOut[name] !== undefined))
    .map((name) => `${name}: ${ran.has(name) ? "is left out, but was run" : "was not run"}`);
  for (const name of Object.keys(leftOut)) if (!known.has(name)) problems.push(`${name}: is no scenario`);
  for (const revision of REVISIONS) {
    const checked = results.filter((one) => one.target === "product" && one.revision === revision);
    for (const name of expectations.product[revision]) {
      if (!checked.some(({ scenario }) => scenario === name)) {
        problems.push(`product ${revision} ${name}: was not run`);
      }
    }
  }
  return problems;
}

function printTable(results) {
  const width = Math.max(...results.map(({ scenario }) => scenario.length));
  for (const { target, revision, scenario, checks } of results) {
    const passed = checks.filter(({ status }) => PASSED.includes(status)).length;
    const count = `${passed}/${checks.length}`.padStart(6);
    console.log(`${target.padEnd(8)} ${revision}  ${scenario.padEnd(width)} ${count}`);
  }
  console.log("");
  for (const target of ["fixture", "product"]) {
    for (const revision of REVISIONS) {
      const part = results.filter((one) => one.target === target && one.revision === revision);
      const checks = part.flatMap((one) => one.checks);
      const passed = checks.filter(({ status }) => PASSED.includes(status)).length;
      console.log(
        `${target} ${revision}: ${passed} of ${checks.length} checks in ${part.length} scenarios passed`,
      );
    }
  }
}

function groupById(checks) {
  const groups = {};
  for (const check of checks) (groups[check.id] ??= []).push(check);
  return groups;
}
