/**
 * Lets clients of other projects drive a run of the built program to its end, with the offline model and an approval on
 * the way, and prints what worked. `npm run clients -- NAME…` takes some of them. They and Node 22 are fetched from npm
 * into a temporary folder, about 2.5 GB, which is kept for the next time.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TASK, startModel } from "./model.mjs";
import { output, startServer } from "../processes.mjs";

const BIN = fileURLToPath(new URL("../../../dist/bin/deepagent-mcp.js", import.meta.url));
const PROGRAMS = fileURLToPath(new URL("programs", import.meta.url));
const KIT = join(tmpdir(), "deepagent-clients");
const NODE = join(KIT, "node");
const KEY = "a-key-for-a-local-server";
const PROMPT = `Delegate this to the deep agent: ${TASK}`;
/** An open run is checked this often before it counts as stuck. */
const MAX_CALLS = 20;

/**
 * A program of `programs`, or the Inspector, makes one tool call over stdio or HTTP:
 * - `calls`: commands, each of which makes one call and prints its result;
 * - `showsForms`: the client approves; else a person does so in a terminal;
 * - `checks`: more commands, which fail when they find something wrong.
 *
 * A command-line client has a model of ours:
 * - `install`: its name for our command, which configures it; else `add`, its own command for that;
 * - `settings`: a file of the client, and members to add to it;
 * - `list`: a command that has to name the server;
 * - `ask`: a command that has to end with the run.
 *
 * `packages`: the first is the client. `env`: variables that lead it to our model.
 */
const CLIENTS = {
  "AI SDK": { packages: "@ai-sdk/mcp@2.0.99", calls: [program("ai-sdk.mjs")], showsForms: true },
  "LangChain MCP adapters": {
    packages: "@langchain/mcp-adapters@1.1.4 @langchain/core@1.2.13 @langchain/langgraph@1.4.18 zod@4.6.7",
    calls: [program("langchain.mjs")],
  },
  "MCP Inspector": {
    packages: "@modelcontextprotocol/inspector@2.12.0",
    calls: ["legacy", "modern"].map((era) => (target, tool, args) => {
      const call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
      return inspector(target, "--protocol-era", era, ...call);
    }),
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
    ask: () => ["claude", "-p", PROMPT, "--allowedTools", "mcp__deepagent__*"],
    env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY }),
  },
  Codex: {
    packages: "@openai/codex@0.169.0",
    install: "codex",
    list: ["codex", "mcp", "list"],
    ask: (url) => [
      "codex",
      "exec",
      "--skip-git-repo-check",
      "--model=gpt-5",
      "--config=model_provider=local",
      `--config=model_providers.local={name="local",base_url="${url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`,
      '--config=mcp_servers.deepagent.default_tools_approval_mode="approve"',
      // A busy machine takes longer than its 10 s.
      "--config=mcp_servers.deepagent.startup_timeout_sec=60",
      PROMPT,
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
    ask: () => ["gemini", "--yolo", "-m", "gemini-2.5-pro", "-p", PROMPT],
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
    ask: () => ["opencode", "run", PROMPT],
  },
  "Qwen Code": {
    packages: "@qwen-code/qwen-code@0.24.4",
    add: (server) => ["qwen", "mcp", "add", "--scope", "user", "deepagent", ...server],
    list: ["qwen", "mcp", "list"],
    ask: () => ["qwen", "--yolo", "--auth-type", "openai", "-p", PROMPT],
    env: (url) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "m" }),
  },
  "GitHub Copilot CLI": {
    packages: "@github/copilot@1.0.102",
    add: (server) => ["copilot", "mcp", "add", "deepagent", "--", ...server],
    list: ["copilot", "mcp", "list"],
    ask: () => ["copilot", "-p", PROMPT, "--allow-all-tools"],
    env: (url) => ({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: KEY,
      COPILOT_MODEL: "gpt-4.1",
      COPILOT_OFFLINE: "true",
    }),
  },
};

function program(name) {
  return (...values) => ["node", name, ...values.map((value) => JSON.stringify(value))];
}

function inspector({ url, command, args = [] }, ...flags) {
  return ["mcp-inspector", "--cli", ...(url ? [url] : [command, ...args]), ...flags];
}

/** Fetches a client into a folder of its own, and gives it a home, a workspace and a model. */
async function prepare(name, { packages, env = () => ({}) }) {
  const folder = join(KIT, name.replaceAll(" ", "-"));
  await install(folder, packages);
  cpSync(PROGRAMS, folder, { recursive: true });
  const home = mkdtempSync(join(KIT, "home-"));
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.js"), "// TODO: everything\n");
  const model = await startModel();
  const path = [NODE, folder].map((one) => join(one, "node_modules/.bin")).concat(process.env.PATH);
  const variables = { PATH: path.join(delimiter), HOME: home, TERM: "xterm-256color", ...env(model.url) };
  return {
    folder,
    home,
    workspace,
    model,
    env: variables,
    report: join(workspace, "deepagent-report.md"),
    args: ["--workspace", workspace, "--model", "offline"],
    run: (command, cwd = workspace) => output(command, { env: variables, cwd }),
  };
}

async function install(folder, packages) {
  mkdirSync(folder, { recursive: true });
  // Without a manifest npm looks for one in the folders above.
  writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
  await output(["npm", "install", "--no-audit", "--no-fund", ...packages.split(" ")], { cwd: folder });
}

/** Delegates the task by single calls, over both transports. */
async function driveCalls({ calls, showsForms, checks }, place) {
  const http = await startServer([BIN, "serve", "--http", "--port", "0", ...place.args], place.env);
  const stdio = { command: process.execPath, args: [BIN, "serve", ...place.args] };
  const over = (target) =>
    allSucceed(calls, (call) => {
      const work = () =>
        delegate((tool, args) => place.run(call(target, tool, args), place.folder), place.report);
      return showsForms ? work() : approving(place, work);
    });
  try {
    return {
      stdio: await over(stdio),
      HTTP: await over({ url: http.url }),
      ...(checks && { checks: await allSucceed(checks, (check) => place.run(check(stdio))) }),
    };
  } finally {
    await http.close();
  }
}

/** Starts a run and checks it until it has ended. */
async function delegate(call, report) {
  rmSync(report, { force: true });
  let printed = await call("run_deep_agent", { task: TASK });
  for (let calls = 0; calls < MAX_CALLS && !/run_[\w-]+ completed\./.test(printed); calls += 1) {
    const [runId] = /run_[\w-]{20,}/.exec(printed) ?? [];
    if (runId === undefined) throw new Error(`There is no run:\n${printed}`);
    printed = await call("check_deep_agent", { run_id: runId, wait_seconds: 30 });
  }
  if (!existsSync(report)) throw new Error(`The run did not end with a report:\n${printed}`);
}

/** Configures a command-line client, and asks its model to delegate the task. */
async function driveCommand(client, place) {
  const { run, model, report, workspace } = place;
  await configure(client, place);
  const listed = await run(client.list);
  const printed = await approving(place, () => run(client.ask(model.url)));
  await sleep(3000);
  const processes = await run(["ps", "-eo", "args"]);
  return {
    configured: listed.includes("deepagent"),
    "run completed": /run_\S+ completed/.test(printed) && existsSync(report),
    "server ended": !processes.includes(`--workspace ${workspace}`),
    "model gets": model.seen.some((text) => text.includes('"run_id"')) ? "JSON" : "text",
    results: model.seen.length,
  };
}

/** Adds the server as docs/clients.md says, and our model. */
async function configure({ install, add, settings }, { run, args, home, model }) {
  if (install === undefined) await run(add(["node", BIN, ...args]));
  else {
    const said = await run(["node", BIN, "install", install, "--yes", ...args]);
    const command = /^ {2}((?:claude|codex) mcp add .*)$/m.exec(said)?.[1];
    if (command !== undefined) await run(["sh", "-c", command]);
  }
  if (settings === undefined) return;
  const file = join(home, settings.file);
  const before = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...before, ...settings.add(model.url) }));
}

/** Approves, as a person in a terminal, what waits for it during `work`. */
async function approving({ run, args }, work) {
  const done = new AbortController();
  const approve = async () => {
    while (!done.signal.aborted) {
      await sleep(1000);
      const listed = await run(["node", BIN, "runs", "list", "--json", "--limit", "1", ...args]);
      const { run_id: id, status } = JSON.parse(listed.split("\n")[0] || "{}");
      if (status === "input_required") await run(["node", BIN, "runs", "answer", id, "--approve", ...args]);
    }
  };
  const person = approve();
  try {
    return await work();
  } finally {
    done.abort();
    await person;
  }
}

async function allSucceed(parts, work) {
  try {
    for (const part of parts) await work(part);
    return true;
  } catch (error) {
    console.error(error.message);
    return false;
  }
}

/** The row of a client in the report. */
async function tried(name) {
  const client = CLIENTS[name];
  const version = /@([^@ ]+)(?: |$)/.exec(client.packages)[1];
  let place;
  try {
    place = await prepare(name, client);
    return { version, ...(await (client.calls ? driveCalls : driveCommand)(client, place)) };
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    return { version, configured: false };
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
const table = {};
await install(NODE, "node@22.23.3");
for (const name of names) table[name] = await tried(name);
console.table(table);
if (Object.values(table).some((row) => Object.values(row).includes(false))) process.exitCode = 1;
