/** Names everything that has to be done before this version can be published, and fails when there is something. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { missingFacts, readFacts } from "./generate/facts.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => (existsSync(join(root, name)) ? readFileSync(join(root, name), "utf8") : undefined);
const run = (command, ...args) => spawnSync(command, args, { cwd: root, encoding: "utf8" });
const manifest = JSON.parse(read("package.json"));
const { version } = manifest;

/** Texts and sources that name the package, which a reader would paste or the program would load. */
const NAMED = ["src", "docs", "README.md", "examples"];
/** Licences that allow us to ship a package in the bundle under ours. */
const FREE = new Set(
  "MIT ISC 0BSD BSD-2-Clause BSD-3-Clause Apache-2.0 Unlicense BlueOak-1.0.0 CC-BY-4.0 CC0-1.0 Python-2.0".split(
    " ",
  ),
);

function* problems() {
  yield* factProblems();
  if (manifest.private)
    yield 'package.json still says "private": true. Delete it, then run node scripts/generate.mjs.';
  yield* gitProblems();
  yield* changelogProblems();
  const { status, stderr } = run(process.execPath, join(root, "scripts/generate.mjs"), "--check");
  if (status !== 0) yield* stderr.trim().split("\n");
  yield* licenceProblems();
}

function* factProblems() {
  let facts;
  try {
    facts = readFacts(root);
  } catch (error) {
    yield error.message;
    return;
  }
  for (const { name, meaning } of missingFacts(facts)) yield `project.json has no ${name}: ${meaning}.`;
  if (facts.npmName && facts.npmName !== "deepagent-mcp") {
    const { stdout } = run("git", "grep", "-lE", '(from|import|resolve)[ (]"deepagent-mcp', "--", ...NAMED);
    if (stdout !== "")
      yield `These files still name the package deepagent-mcp, not ${facts.npmName}: ${stdout.trim().split("\n").join(", ")}.`;
  }
}

function* gitProblems() {
  const { status, stdout } = run("git", "status", "--porcelain");
  if (status !== 0) {
    yield "This is no git checkout: publish from one, so that the tag says what was published.";
    return;
  }
  if (stdout !== "")
    yield `There are changes that are not committed: ${stdout.trim().split("\n").join(", ")}.`;
  const tags = run("git", "tag", "--points-at", "HEAD").stdout.split("\n");
  if (!tags.includes(`v${version}`))
    yield `This commit has no tag v${version}. When all else is done: git tag v${version}`;
}

function* changelogProblems() {
  const [, ...sections] = (read("CHANGELOG.md") ?? "").split(/^## /m);
  if (!sections.some((text) => new RegExp(`^\\[${version}\\] - \\d{4}-\\d\\d-\\d\\d\\n`).test(text)))
    yield `CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD".`;
  const unreleased = sections.find((text) => text.startsWith("[Unreleased]"));
  if (unreleased?.replace("[Unreleased]", "").trim())
    yield "CHANGELOG.md has entries under [Unreleased]. Put them under the version that is released.";
}

function* licenceProblems() {
  const own = read("LICENSE");
  if (!own?.startsWith(`${manifest.license} License`))
    yield `LICENSE is not the text of ${manifest.license}.`;
  const others = read("dist/THIRD-PARTY-LICENSES.txt");
  if (others === undefined) {
    yield "dist is not built, so the licences in it are not known. Run: npm run build";
    return;
  }
  for (const [, name, licence] of others.matchAll(/^(\S+ \d\S*) \((.*)\)$/gm))
    if (!FREE.has(licence))
      yield `The licence of ${name} is ${licence}: see whether it may be given on with ours.`;
}

const found = [...problems()];
if (found.length === 0) console.log(`${manifest.name} ${version} is ready to be published.`);
else {
  console.error(
    `${manifest.name} ${version} cannot be published yet:\n\n${found.map((text) => `- ${text}`).join("\n")}`,
  );
  process.exitCode = 1;
}
