/**
 * Lets clients of other projects use the built program: an approval, a long answer, a long file, a failed run and a
 * question. Prints what reached the client's model, and writes it to measured.json, from which docs/clients.md is made.
 * `npm run clients -- NAME…` takes some of them. They and Node 22 are fetched from npm into a temporary folder, about
 * 2.5 GB, which is kept for the next time; `TMPDIR` and `npm_config_cache` choose the places.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ANSWER, FILE, SCENARIOS, decide, startModel } from "./model.mjs";
import { output, startServer } from "../processes.mjs";

const BIN = fileURLToPath(new URL("../../../dist/bin/deepagent-mcp.js", import.meta.url));
const PROGRAMS = fileURLToPath(new URL("programs", import.meta.url));
const MEASURED = fileURLToPath(new URL("measured.json", import.meta.url));
const KIT = join(tmpdir(), "deepagent-clients");
const NODE = join(KIT, "node");
const KEY = "a-key-for-a-local-server";
const TOOLS = ["run_deep_agent", "check_deep_agent", "read_agent_file"];

/**
 * `call`: a command that makes one call and prints its result. `program`: one of `programs`, whose model is ours. Others
 * are command-line clients with a model of ours:
 * - `install`: its name for our command, which configures it; else `add`, its own command for that;
 * - `settings`: a file of the client, and members to add to it;
 * - `list`: a command that has to name the server;
 * - `ask`: a command that has to end with the run.
 *
 * `packages`: the first is the client. `env`: variables that lead it to our model. `showsForms`: it answers them. `http`: it is also tried over HTTP.
 * `checks`: commands that fail when they find something wrong.
 */
const CLIENTS = {
  "AI SDK": {
    packages: "@ai-sdk/mcp@2.0.99 ai@7.0.173 @ai-sdk/openai-compatible@2.0.92",
    program: "ai-sdk.mjs",
    showsForms: true,
    http: true,
  },
  "LangChain MCP adapters": {
    packages:
      "@langchain/mcp-adapters@1.1.4 @langchain/core@1.2.13 @langchain/langgraph@1.4.18 @langchain/openai@1.5.8 langchain@1.5.14 zod@4.6.7",
    program: "langchain.mjs",
    http: true,
  },
  mcporter: {
    packages: "mcporter@0.12.3",
    call: ({ command, args, env }, tool, given) => {
      const start = ["--stdio", command, ...args.flatMap((arg) => ["--stdio-arg", arg])];
      const config = ["--env", `DEEPAGENT_CONFIG=${env.DEEPAGENT_CONFIG}`];
      const call = ["--tool", tool, "--timeout", "120000", "--args", JSON.stringify(given)];
      return ["mcporter", "call", ...start, ...config, ...call, "--output", "json"];
    },
  },
  "MCP Inspector": {
    packages: "@modelcontextprotocol/inspector@2.12.0",
    call: (target, tool, args) => {
      const call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
      return inspector(target, "--protocol-era", "modern", ...call);
    },
    http: true,
    checks: [
      (target) => inspector(target, "--method", "tools/list", "--strict"),
      (target) => inspector(target, "--method", "tools/call", "--tool-name", "run_deep_agent", "--app-info"),
      (target) => inspector(target, "--method", "skills/list", "--verify", "--require-digests"),
    ],
  },
  "Claude Code": {
    packages: "@anthropic-ai/claude-code@2.1.330",
    install: "claude-code",
    list: ["claude", "mcp", "list"],
    ask: (prompt) => ["claude", "-p", prompt, "--allowedTools", "mcp__deepagent__*"],
    env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY }),
  },
  Codex: {
    packages: "@openai/codex@0.169.0",
    install: "codex",
    list: ["codex", "mcp", "list"],
    ask: (prompt, url) => [
      "codex",
      "exec",
      "--skip-git-repo-check",
      "--model=gpt-5",
      "--config=model_provider=local",
      `--config=model_providers.local={name="local",base_url="${url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`,
      '--config=mcp_servers.deepagent.default_tools_approval_mode="approve"',
      // A busy machine takes longer than its 10 s.
      "--config=mcp_servers.deepagent.startup_timeout_sec=60",
      prompt,
    ],
    env: () => ({ OPENAI_API_KEY: KEY }),
  },
  "Gemini CLI": {
    packages: "@google/gemini-cli@0.61.0",
    install: "gemini",
    settings: {
      file: ".gemini/settings.json",
      add: () => ({ security: { auth: { selectedType: "gemini-api-key" } } }),
    },
    list: ["gemini", "mcp", "list"],
    ask: (prompt) => ["gemini", "--yolo", "-m", "gemini-2.5-pro", "-p", prompt],
    env: (url) => ({
      GEMINI_API_KEY: KEY,
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    }),
  },
  opencode: {
    packages: "opencode-ai@1.18.33",
    install: "opencode",
    settings: {
      file: ".config/opencode/opencode.json",
      add: (url) => {
        const options = { baseURL: `${url}/v1`, apiKey: KEY };
        const local = { npm: "@ai-sdk/openai-compatible", options, models: { m: {} } };
        return { model: "local/m", autoupdate: false, provider: { local } };
      },
    },
    list: ["opencode", "mcp", "list"],
    ask: (prompt) => ["opencode", "run", prompt],
  },
  "Qwen Code": {
    packages: "@qwen-code/qwen-code@0.24.4",
    add: (server) => ["qwen", "mcp", "add", "--scope", "user", "deepagent", ...server],
    list: ["qwen", "mcp", "list"],
    ask: (prompt) => ["qwen", "--yolo", "--auth-type", "openai", "-p", prompt],
    env: (url) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "m" }),
  },
  "GitHub Copilot CLI": {
    packages: "@github/copilot@1.0.102",
    add: (server) => ["copilot", "mcp", "add", "deepagent", "--", ...server],
    list: ["copilot", "mcp", "list"],
    ask: (prompt) => ["copilot", "-p", prompt, "--allow-all-tools"],
    env: (url) => ({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: KEY,
      COPILOT_MODEL: "gpt-4.1",
      COPILOT_OFFLINE: "true",
    }),
  },
};

/** It passes only named variables on. */
function inspector({ url, command, args = [], env }, ...flags) {
  const start = url ? [url] : ["-e", `DEEPAGENT_CONFIG=${env.DEEPAGENT_CONFIG}`, command, ...args];
  return ["mcp-inspector", "--cli", ...start, ...flags];
}

/** Fetches a client into a folder of its own, and gives it a home, a workspace and a model. */
async function prepare(name, { packages, env = () => ({}) }) {
  const folder = join(KIT, name.replaceAll(" ", "-"));
  await install(folder, packages);
  cpSync(PROGRAMS, folder, { recursive: true });
  const home = mkdtempSync(join(KIT, "home-"));
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "long.txt"), FILE);
  const model = await startModel();
  const config = join(home, "config.json");
  const models = { lab: { baseUrl: `${model.url}/agent/v1` } };
  writeFileSync(config, JSON.stringify({ model: "lab:agent", models }));
  const path = [NODE, folder].map((one) => join(one, "node_modules/.bin")).concat(process.env.PATH);
  const variables = {
    PATH: path.join(delimiter),
    HOME: home,
    TERM: "xterm-256color",
    ...env(model.url),
    DEEPAGENT_CONFIG: config,
  };
  return {
    folder,
    home,
    workspace,
    model,
    config,
    env: variables,
    args: ["--workspace", workspace],
    run: (command, { cwd = workspace, mayFail = false } = {}) =>
      output(command, { env: variables, cwd, mayFail }),
  };
}

async function install(folder, packages) {
  mkdirSync(folder, { recursive: true });
  // Without a manifest npm looks for one in the folders above.
  writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
  await output(["npm", "install", "--no-audit", "--no-fund", ...packages.split(" ")], { cwd: folder });
}

/** Adds the server as docs/clients.md says, and our model. */
async function configure({ install, add, settings }, { run, args, home, model, workspace, config }) {
  if (install === undefined) await run(add(["node", BIN, ...args, "--config", config]));
  else {
    const flags = ["--workspace", workspace, "--env", `DEEPAGENT_CONFIG=${config}`];
    // It also checks the model, which has no list of models.
    const said = await run(["node", BIN, "install", install, "--yes", ...flags], { mayFail: true });
    const command = /^ {2}((?:claude|codex) mcp add .*)$/m.exec(said)?.[1];
    if (command !== undefined) await run(["sh", "-c", command]);
  }
  if (settings === undefined) return;
  const file = join(home, settings.file);
  const before = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...before, ...settings.add(model.url) }));
}

/** Approves and answers, as a person in a terminal, what waits for one during `work`. */
async function answering({ run, args }, work) {
  const done = new AbortController();
  const answer = async () => {
    while (!done.signal.aborted) {
      await sleep(1000);
      const listed = await run(["node", BIN, "runs", "list", "--json", "--limit", "1", ...args]);
      const { run_id: id, status } = JSON.parse(listed.split("\n")[0] || "{}");
      if (status !== "input_required") continue;
      for (const given of [["--approve"], ["--value", "blue"]])
        await run(["node", BIN, "runs", "answer", id, ...given, ...args], { mayFail: true });
    }
  };
  const person = answer();
  try {
    return await work();
  } finally {
    done.abort();
    await person;
  }
}

/** Carries a scenario out by single calls; `decide` stands for the model of whoever reads what they print. */
async function byCalls({ call }, place, scenario, target) {
  const messages = [];
  for (;;) {
    const { text, toolCalls } = decide(SCENARIOS[scenario], { tools: TOOLS, messages });
    if (toolCalls === undefined) return text;
    const [{ name, args }] = toolCalls;
    const command = call(target, name, args);
    const printed = await place.run(command, { cwd: place.folder, mayFail: true });
    place.model.seen.push(printed);
    messages.push({ toolCalls, toolResults: [] }, { toolCalls: [], toolResults: [{ text: printed }] });
  }
}

/** Lets a client carry out a scenario, and returns what its model saw of each result. */
async function carryOut(client, place, scenario, target) {
  const { run, model, folder } = place;
  model.begin(scenario);
  const { task = "Read the file." } = SCENARIOS[scenario];
  const prompt = `Delegate this to the deep agent: ${task}`;
  const work = () => {
    if (client.call) return byCalls(client, place, scenario, target);
    if (client.ask) return run(client.ask(prompt, model.url), { mayFail: true });
    const values = [target, model.url, prompt].map((value) => JSON.stringify(value));
    return run(["node", client.program, ...values], { cwd: folder, mayFail: true });
  };
  const printed = await answering(place, work);
  if (model.seen.length === 0)
    throw new Error(`${scenario}: the model saw no result.\n${printed.slice(-2000)}`);
  return { seen: [...model.seen], printed };
}

/** The numbered lines that a model saw. */
const linesIn = (texts) => new Set(texts.flatMap((text) => text.match(/L\d{4}(?= x{62})/g) ?? []));

/** What a model saw of a text of numbered lines that came in pages. */
function pagesOf(seen, whole, next) {
  const pages = seen.filter((text) => linesIn([text]).size > 0);
  const before = pages.slice(0, -1);
  const long = (text) => Math.ceil(text.length / 4);
  return {
    beginning: linesIn(pages).has("L0001"),
    end: linesIn(pages).has(whole.match(/L\d{4}/g).at(-1)),
    whole: linesIn(pages).size === whole.match(/L\d{4}/g).length,
    pages: pages.length,
    // Each page but the last says at its beginning and at its end how to read on.
    continues: before.every(
      (text) => next.test(text.slice(0, long(text))) && next.test(text.slice(-long(text))),
    ),
  };
}

async function measure(client, place, target) {
  const { workspace } = place;
  const report = join(workspace, "deepagent-report.md");
  const approval = await carryOut(client, place, "approval", target);
  const answer = await carryOut(client, place, "answer", target);
  const file = await carryOut(client, place, "file", target);
  const failure = await carryOut(client, place, "failure", target);
  const question = await carryOut(client, place, "question", target);
  const first = answer.seen.find((text) => text.includes("L0001")) ?? "";
  return {
    approval: existsSync(report) && /run_\S+ completed/.test(approval.printed),
    form: first.includes('"run_id"') ? (first.split("L0001").length > 2 ? "both" : "structure") : "text",
    answer: pagesOf(answer.seen, ANSWER, /with run_id run_\S+ and offset \d+|"offset": ?\d+/),
    file: pagesOf(file.seen, FILE, /continue with offset=\d+/),
    failure: failure.seen.some((text) => /Run run_\S+ failed/.test(text)),
    // A client that shows forms asks the person and not its model.
    question:
      /run_\S+ completed/.test(question.printed) &&
      (client.showsForms || question.seen.some((text) => text.includes("Which colour"))),
  };
}

/** Tries a client over stdio, and over HTTP where it can. */
async function drive(client, place) {
  const { run, args, workspace, env } = place;
  const stdio = { command: process.execPath, args: [BIN, "serve", ...args], env };
  let listed = "deepagent";
  if (client.ask) {
    await configure(client, place);
    listed = await run(client.list);
  }
  const found = { configured: listed.includes("deepagent"), ...(await measure(client, place, stdio)) };
  for (const check of client.checks ?? []) await run(check(stdio));
  if (client.http) {
    const http = await startServer([BIN, "serve", "--http", "--port", "0", ...args], env);
    try {
      const { printed } = await carryOut(client, place, "approval", { url: http.url });
      found.http = /run_\S+ completed/.test(printed);
    } finally {
      await http.close();
    }
  }
  await sleep(3000);
  const processes = await run(["ps", "-eo", "args"]);
  return { ...found, "server ended": !processes.includes(`--workspace ${workspace}`) };
}

/** The row of a client in the report. */
async function tried(name) {
  const client = CLIENTS[name];
  const version = /@([^@ ]+)(?: |$)/.exec(client.packages)[1];
  let place;
  try {
    place = await prepare(name, client);
    return { version, ...(await drive(client, place)) };
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    return { version, problem: error.message.split("\n")[0].slice(0, 200) };
  } finally {
    place?.model.close();
    if (place) rmSync(place.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(CLIENTS);
const unknown = names.filter((name) => !Object.hasOwn(CLIENTS, name));
if (unknown.length > 0 || !existsSync(BIN)) {
  console.error(
    unknown.length > 0
      ? `Unknown: ${unknown.join(", ")}. Known: ${Object.keys(CLIENTS).join(", ")}.`
      : "The program is not built: run npm run build first.",
  );
  process.exit(2);
}
const isGood = (value) =>
  typeof value === "object" ? Object.values(value).every(isGood) : value !== false && value !== undefined;
await install(NODE, "node@22.23.3");
for (const name of names) {
  const row = await tried(name);
  console.log(name, row);
  if (!isGood(row) || "problem" in row) process.exitCode = 1;
  // Each client by itself, so that an interrupted run loses nothing.
  const before = existsSync(MEASURED) ? JSON.parse(readFileSync(MEASURED, "utf8")) : {};
  const rows = { ...before, [name]: { date: new Date().toISOString().slice(0, 10), ...row } };
  const sorted = Object.keys(CLIENTS).flatMap((key) => (key in rows ? [[key, rows[key]]] : []));
  writeFileSync(MEASURED, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}
