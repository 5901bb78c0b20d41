/**
 * Installs the packed library beside the oldest and the newest LangChain that its `peerDependencies` allow, and uses
 * it there: an agent with a tool, a subagent, an approval, files and a checkpointer; and looks for a second copy.
 * Usage: npm run build && node scripts/peers.mjs [oldest|newest]
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const { peerDependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);

/** What a user of the library has. */
const SHARED = [
  "langchain",
  "zod",
  ...["core", "langgraph", "langgraph-checkpoint"].map((name) => `@langchain/${name}`),
];
/** The first version of a range. */
const first = (range) => range.replace("^", "");
const KINDS = {
  oldest: {
    versionOf: (name) => first(peerDependencies[name]),
    // A Node that brings SQLite does not use this package.
    others: process.versions.node.startsWith("20.")
      ? [`better-sqlite3@${first(optionalDependencies["better-sqlite3"])}`]
      : [],
  },
  /** A user gets these who names no version. */
  newest: { versionOf: () => "latest", others: [] },
};

const folder = mkdtempSync(join(tmpdir(), "deepagent-peers-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const run = (program, args, cwd) => execFileSync(program, args, { cwd, encoding: "utf8", stdio: "pipe" });

const tarball = run(process.execPath, ["scripts/package.mjs", folder], ROOT).trim();
const wanted = process.argv[2];
for (const [kind, { versionOf, others }] of Object.entries(KINDS)) {
  if (wanted !== undefined && wanted !== kind) continue;
  const place = join(folder, kind);
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
  const packages = SHARED.map((name) => `${name}@${versionOf(name)}`);
  run("npm", ["install", "--no-audit", "--no-fund", tarball, ...packages, ...others], place);
  cpSync(join(ROOT, "test/package/fixtures/peers-use.mjs"), join(place, "use.mjs"));
  for (const saver of ["memory", "sqlite"]) run(process.execPath, ["use.mjs", saver], place);
  const copies = run("npm", ["ls", "@langchain/core", "--all", "--parseable"], place).trim().split("\n");
  if (copies.length > 1)
    throw new Error(`There are ${copies.length} copies of @langchain/core: ${copies.join(", ")}`);
  const versions = SHARED.map((name) => `${name} ${versionIn(place, name)}`);
  console.log(`${kind}: ${versions.join(", ")}, Node ${process.version}: ok`);
}

function versionIn(place, name) {
  return JSON.parse(readFileSync(join(place, "node_modules", name, "package.json"), "utf8")).version;
}
