import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startWireServer, type WireReply } from "../../support/wire-server.ts";
import { ROOT, runBin, type Outcome } from "../built-bin.ts";
import { type TerminalHome, terminalHome } from "../terminal-home.ts";

/** What npm would fetch: a provider's package that brings its own LangChain. */
const NPM = `#!${process.execPath}
import { appendFileSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const args = process.argv.slice(2);
const folder = args[args.indexOf("--prefix") + 1];
appendFileSync(join(folder, "npm-calls"), JSON.stringify(args) + "\\n");
const from = ${JSON.stringify(join(ROOT, "node_modules"))};
const to = join(folder, "node_modules");
const own = join(to, "@langchain/mistralai");
mkdirSync(own, { recursive: true });
for (const name of readdirSync(from)) {
  if (name !== "@langchain" && !name.startsWith(".")) symlinkSync(join(from, name), join(to, name));
}
for (const name of ["core", "openai"])
  cpSync(join(from, "@langchain", name), join(to, "@langchain", name), { recursive: true });
writeFileSync(join(own, "package.json"), JSON.stringify({ name: "@langchain/mistralai", version: "1.2.7", type: "module", exports: "./index.js" }));
writeFileSync(join(own, "index.js"), \`
import { ChatOpenAI } from "@langchain/openai";
export class ChatMistralAI extends ChatOpenAI {
  constructor(fields) {
    super({ ...fields, useResponsesApi: false, configuration: { baseURL: process.env.WIRE_URL } });
  }
}\`);
`;

const FAILING_NPM = "#!/bin/sh\necho 'npm error network' >&2\nexit 1\n";

const HOSTILE_NPM = "#!/bin/sh\nprintf 'a\\033[2Jb\\n'\nprintf 'c\\033]52;c;eA==\\007d\\n' >&2\nexit 1\n";

interface Home {
  home: TerminalHome;
  packages: string;
  bin(args: readonly string[], env?: Record<string, string>): Promise<Outcome>;
}

/** A person's home, with an npm that writes what the test says. */
function homeWithNpm(npm: string): Home {
  const home = terminalHome();
  const programs = join(home.env["HOME"] ?? "", "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "package.json"), '{"type":"module"}');
  writeFileSync(join(programs, "npm"), npm);
  chmodSync(join(programs, "npm"), 0o755);
  const path = `${programs}${delimiter}${process.env["PATH"]}`;
  return {
    home,
    packages: join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "packages"),
    bin: (args, env) => runBin(args, { cwd: home.workspace, env: { ...home.env, PATH: path, ...env } }),
  };
}

const DELEGATE: WireReply = {
  toolCalls: [{ name: "task", args: { description: "Count the notes", subagent_type: "general-purpose" } }],
};
const LOOK: WireReply = { toolCalls: [{ name: "ls", args: { path: "/workspace" } }] };
const WRITE: WireReply = {
  toolCalls: [{ name: "write_file", args: { file_path: "/workspace/count.md", content: "One note." } }],
};

test("a package that was added works beside the program's own LangChain: tools, streams and a subagent", async () => {
  const { home, packages, bin } = homeWithNpm(NPM);
  const added = await bin(["models", "add", "mistralai"]);
  expect(added).toMatchObject({ code: 0, stderr: "" });
  expect(added.stdout).toContain(
    "Added @langchain/mistralai 1.2.7. Choose one of its models as mistralai:NAME.",
  );
  const flags = "--global=false --ignore-scripts --no-audit --no-fund --no-color".split(" ");
  const call = ["install", "--prefix", packages, ...flags, "@langchain/mistralai@^1.2.0"];
  expect(JSON.parse(readFileSync(join(packages, "npm-calls"), "utf8"))).toEqual(call);
  const main = [DELEGATE, WRITE, { text: "There is one note, as the subagent counted." }];
  const sub = [LOOK, { text: "notes.md is the only note." }];
  const server = await startWireServer(
    ({ tools }) => (tools.includes("task") ? main : sub).shift() ?? { text: "Nothing more." },
  );
  onTestFinished(() => server.close());
  const { OPENAI_API_KEY: key = "" } = server.env("openai");
  const settings = {
    DEEPAGENT_MODEL: "mistralai:mistral-large-latest",
    MISTRAL_API_KEY: key,
    WIRE_URL: `${server.url}/v1`,
  };
  expect((await bin(["doctor", "--offline"], settings)).stdout).toContain(
    "✔ Model         mistralai:mistral-large-latest",
  );
  const { code, stdout, stderr } = await bin(["run", "Count the notes", "--yes", "--json"], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
    status: "completed",
    answer: "There is one note, as the subagent counted.",
  });
  expect(readFileSync(join(home.workspace, "count.md"), "utf8")).toBe("One note.");
  expect([main, sub, server.refusals]).toEqual([[], [], []]);
  expect(server.requests.map(({ stream }) => stream)).toEqual(Array(5).fill(true));
});

test("what npm writes cannot steer the terminal", async () => {
  const { bin } = homeWithNpm(HOSTILE_NPM);
  const { code, stdout, stderr } = await bin(["models", "add", "mistralai"]);
  expect([code, stdout]).toEqual([1, "a\\u001b[2Jb\n"]);
  expect(stderr).toBe(
    "c\\u001b]52;c;eA==\\u0007d\ndeepagent-mcp: npm could not install @langchain/mistralai@^1.2.0.\n",
  );
});

test("without its package a model is refused by doctor and by a run, with the command that adds it", async () => {
  const { bin } = homeWithNpm(FAILING_NPM);
  const settings = { DEEPAGENT_MODEL: "cohere:command-a-03-2025", CO_API_KEY: "key" };
  const command = "Run `deepagent-mcp models add cohere`";
  const checked = await bin(["doctor"], settings);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain(command);
  const run = await bin(["run", "say hi", "--json"], settings);
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(command);
});

test.each([
  [["models", "add", "mistralai"], 1, "npm could not install @langchain/mistralai@^1.2.0."],
  [["models", "add", "mistral"], 2, 'Unknown provider "mistral".'],
  [["models", "add", "--registry=http://elsewhere"], 2, "Unknown flag --registry"],
  [["models", "add", "x;touch y"], 2, 'Unknown provider "x;touch y".'],
  [["models"], 2, "models has two actions"],
])("%j fails with %i and says why", async (args, code, message) => {
  const { home, packages, bin } = homeWithNpm(FAILING_NPM);
  const outcome = await bin(args);
  expect(outcome.code).toBe(code);
  expect(outcome.stderr).toContain(message);
  expect(existsSync(join(home.workspace, "y"))).toBe(false);
  expect(existsSync(join(packages, "node_modules"))).toBe(false);
});

test("where npm cannot be started, that is said", async () => {
  const { bin } = homeWithNpm(FAILING_NPM);
  const { code, stderr } = await bin(["models", "add", "groq"], { PATH: "/nowhere" });
  expect(code).toBe(1);
  expect(stderr).toBe("deepagent-mcp: npm cannot be started. It comes with Node: install Node with npm.\n");
});

test("the list tells of each provider where its package is, and the key it wants", async () => {
  const { bin } = homeWithNpm(NPM);
  await bin(["models", "add", "mistralai"]);
  const { code, stdout } = await bin(["models", "list"], { GROQ_API_KEY: "gsk-secret" });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^anthropic +built in +ANTHROPIC_API_KEY$/m);
  expect(stdout).toMatch(/^mistralai +installed, 1\.2\.7 +MISTRAL_API_KEY$/m);
  expect(stdout).toMatch(/^groq +built in +GROQ_API_KEY \(set\)$/m);
  expect(stdout).toMatch(/^cohere +not installed +COHERE_API_KEY$/m);
  expect(stdout).toMatch(/^ollama +built in +OLLAMA_API_KEY \(optional\)$/m);
  expect(stdout).toMatch(/ models add PROVIDER --data-dir /);
  expect(stdout).not.toContain("gsk-secret");
  expect((await bin(["models", "add", "anthropic"])).stdout).toBe("anthropic is built in.\n");
});
