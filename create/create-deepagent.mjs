#!/usr/bin/env node
// Writes a small project around deepagent-mcp: npm create deepagent my-agent -- --template server
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";

const own = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
/** The package that projects are made around, and the versions they get. */
const { package: main, versions } = own.deepagent;

const GRAPH = {
  layers: ["shared", "graph"],
  dependencies: [
    "@langchain/anthropic",
    "@langchain/core",
    "@langchain/langgraph",
    "@langchain/langgraph-checkpoint",
    "langchain",
    "zod",
  ],
  devDependencies: [],
  // Later ones that LangGraph allows ask for a newer @langchain/core.
  overrides: ["@langchain/langgraph-sdk"],
};

/** What can be made: folders of `templates` that are copied over each other, and what package.json says. */
const TEMPLATES = {
  server: {
    about: "an MCP server for your clients, with settings and tools of your own",
    layers: ["shared", "server"],
    dependencies: ["@modelcontextprotocol/server", "zod"],
    devDependencies: ["@modelcontextprotocol/client"],
    scripts: {
      start: "node agent.js serve --http",
      ask: "node agent.js run",
      page: "node agent.js open",
    },
  },
  library: {
    ...GRAPH,
    about: "an agent in a program of yours",
    layers: [...GRAPH.layers, "library"],
    scripts: { start: "node main.js" },
  },
  langgraph: {
    ...GRAPH,
    about: "an agent for langgraph dev, Studio and React applications",
    layers: [...GRAPH.layers, "langgraph"],
    devDependencies: ["@langchain/langgraph-cli"],
    scripts: { start: "langgraphjs dev" },
  },
};
const NAMES = Object.keys(TEMPLATES);

const HELP = `Writes a small project around ${main}: an agent with a tool, a skill and a memory of its own, and a test.

Usage: npm create deepagent [NAME] -- [--template ${NAMES.join("|")}]

NAME is the name of a new folder here, and of the package in it. What is not given is asked for;
where nobody can be asked, NAME is needed, and the template is ${NAMES[0]}.

Templates
${NAMES.map((name) => `  ${name.padEnd(10)} ${TEMPLATES[name].about}`).join("\n")}

Flags
  -t, --template NAME  One of these.
  -h, --help           Show this help.
  -v, --version        Show the version.
`;

/** Something that the person can mend; its message says how. */
class Problem extends Error {}

async function start(argv) {
  const { values, positionals } = readArguments(argv);
  if (values.help) return console.log(HELP.trimEnd());
  if (values.version) return console.log(own.version);
  if (positionals.length > 1)
    throw new Problem(`Give one name, not ${positionals.length}. A name has no blanks.`);
  if (values.template !== undefined) checkTemplate(values.template);
  if (positionals.length === 1) checkFolder(positionals[0]);
  const { name, template } = await askForMissing({ name: positionals[0], template: values.template });
  write(name, template);
  console.log(`Made ${name} with the template ${template}. Next:\n`);
  for (const line of [`cd ${name}`, "npm install", "npm test", "npm start"]) console.log(`  ${line}`);
}

function readArguments(args) {
  const options = {
    template: { type: "string", short: "t" },
    help: { type: "boolean", short: "h" },
    version: { type: "boolean", short: "v" },
  };
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new Problem(`${error.message.split(/\. (?=To specify)/)[0]}. --help shows what can be given.`);
  }
}

async function askForMissing({ name, template }) {
  if (name !== undefined && template !== undefined) return { name, template };
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    if (name === undefined)
      throw new Problem("Name the new folder: npm create deepagent my-agent -- --template server");
    return { name, template: template ?? NAMES[0] };
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new Promise((_, reject) =>
    terminal.once("close", () => reject(new Problem("Nothing was made."))),
  );
  const ask = async (question, fallback, check) => {
    for (;;) {
      const answer = (await Promise.race([terminal.question(question), closed])).trim() || fallback;
      try {
        check(answer);
        return answer;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        console.log(error.message);
      }
    }
  };
  closed.catch(() => undefined);
  try {
    name ??= await ask("Name of the new folder (my-agent): ", "my-agent", checkFolder);
    if (template === undefined) {
      for (const one of NAMES) console.log(`  ${one.padEnd(10)} ${TEMPLATES[one].about}`);
      template = await ask(`Template (${NAMES[0]}): `, NAMES[0], checkTemplate);
    }
    return { name, template };
  } finally {
    terminal.close();
  }
}

function checkTemplate(name) {
  if (!NAMES.includes(name))
    throw new Problem(`There is no template ${shown(name)}. Take one of: ${NAMES.join(", ")}.`);
}

/** Names that npm or Windows keeps for itself. */
const RESERVED = /^(?:node_modules|favicon\.ico|(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?)$/;

function checkFolder(name) {
  if (/[/\\]|^\.\.?$/.test(name))
    throw new Problem(
      `${shown(name)} is a path. Give the name of a new folder here; go elsewhere with cd first.`,
    );
  if (!/^[a-z\d](?:[a-z\d._-]{0,98}[a-z\d_-])?$/.test(name))
    throw new Problem(
      `${shown(name)} cannot be the name of a package. Take up to 100 of a-z, 0-9, "-", "_" and ".", beginning with a letter or digit.`,
    );
  // npm refuses a project that installs a package of its own name.
  if (RESERVED.test(name) || name === "deepagent-mcp" || Object.hasOwn(versions, name))
    throw new Problem(`${name} is taken by npm, Windows or a package of the project. Take another name.`);
  const found = lstatSync(name, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory())
    throw new Problem(`${name} is there already, and is no folder. Take another name, or remove it.`);
  if (readdirSync(name).length > 0)
    throw new Problem(`The folder ${name} is not empty. Take another name, or empty it.`);
}

/** A word of the command line, without what could move the cursor of a terminal. */
const shown = (word) =>
  JSON.stringify(word.length > 60 ? `${word.slice(0, 60)}…` : word).replace(/[\x7f-\x9f]/g, "?");

/** Makes the whole project elsewhere first, so that there is all of it or nothing. */
function write(name, template) {
  const stage = mkdtempSync(join(tmpdir(), "create-deepagent-"));
  try {
    const dependency = mainDependency(stage);
    for (const layer of TEMPLATES[template].layers)
      cpSync(join(import.meta.dirname, "templates", layer), stage, { recursive: true });
    // npm leaves files of this name out of packages.
    renameSync(join(stage, "gitignore"), join(stage, ".gitignore"));
    renameSync(join(stage, "env.example"), join(stage, ".env.example"));
    const readme = join(stage, "README.md");
    writeFileSync(readme, readFileSync(readme, "utf8").replaceAll("{{name}}", name));
    writeFileSync(join(stage, "package.json"), packageText(name, TEMPLATES[template], dependency));
    mkdirSync(name, { recursive: true });
    cpSync(stage, name, { recursive: true });
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function packageText(name, { dependencies, devDependencies, overrides, scripts }, dependency) {
  const exact = (names) => Object.fromEntries(names.map((one) => [one, versions[one]]));
  const all = { ...exact(dependencies), "deepagent-mcp": dependency };
  const sorted = Object.fromEntries(Object.entries(all).sort(([one], [other]) => (one < other ? -1 : 1)));
  const manifest = {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: { ...scripts, test: "node --test" },
    dependencies: sorted,
    ...(devDependencies.length === 0 ? {} : { devDependencies: exact(devDependencies) }),
    ...(overrides === undefined ? {} : { overrides: exact(overrides) }),
    engines: { node: ">=20.12" },
    // npm asks about install scripts that no entry names.
    allowScripts: { "better-sqlite3": true },
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/**
 * What package.json says for the package: its version on npm, or, before it is there, the checkout that this program is
 * part of, packed into the project.
 */
function mainDependency(stage) {
  if (!own.private) return main === "deepagent-mcp" ? own.version : `npm:${main}@${own.version}`;
  const checkout = join(import.meta.dirname, "..");
  const isCheckout = existsSync(join(checkout, "scripts/build.mjs"));
  if (!isCheckout) throw new Problem(`${main} is not on npm yet: start this program in a checkout of it.`);
  if (!existsSync(join(checkout, "dist/index.js")))
    throw new Problem(
      `${main} is not on npm yet, and its checkout is not built. Run there: npm ci && npm run build`,
    );
  const folder = join(stage, "packages");
  mkdirSync(folder);
  execFileSync(process.execPath, [join(checkout, "scripts/package.mjs"), folder], { stdio: "pipe" });
  return `file:packages/${readdirSync(folder)[0]}`;
}

try {
  await start(process.argv.slice(2));
} catch (error) {
  const reasons = {
    EACCES: "it may not be written here",
    EPERM: "it may not be written here",
    ENOSPC: "the disk is full",
    EROFS: "the disk is read-only",
  };
  const message =
    error instanceof Problem
      ? error.message
      : `Nothing was made: ${reasons[error.code] ?? "an unexpected failure"}.`;
  console.error(`create-deepagent: ${message}`);
  process.exitCode = 1;
}
