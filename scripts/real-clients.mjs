/**
 * Lets the real command-line clients delegate a task to the built program, and prints what worked. Their model is
 * a local server that speaks the wire protocol of their provider and asks for our tools; the agent's is the
 * offline model; a person approves in a terminal. Each has a home of its own, and is configured by `install`
 * where that knows it, else by its own command. Names on the command line choose clients. They and Node 22 are
 * fetched from npm into a temporary folder, about 2 GB, which stays for the next time.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { loadSources } from "./sources.mjs";

const { anthropic, openaiChat, openaiResponses } = await loadSources(
  ["anthropic", "openai", "responses"]
    .map((name) => `export * from "./test/support/wire-server-${name}.ts";`)
    .join("\n"),
);
const BIN = fileURLToPath(new URL("../dist/bin/deepagent-mcp.js", import.meta.url));
const kit = join(tmpdir(), "deepagent-real-clients");
const NODE = "node@22.23.3";
const KEY = "a-key-for-a-local-server";
const TASK = "List every TODO and write a report.";
const PROMPT = `Delegate this to the deep agent: ${TASK}`;
/** Results of our tools after which the model gives up. */
const MAX_RESULTS = 12;

/**
 * `setUp`: commands before the first start, or what they are made of. `list`: has to name the server. `ask`: has
 * to end with the run. `install`: the client as our command names it.
 */
const CLIENTS = {
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
      add: (url) => ({
        model: "local/m",
        autoupdate: false,
        provider: {
          local: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${url}/v1`, apiKey: KEY },
            models: { m: {} },
          },
        },
      }),
    },
    list: ["opencode", "mcp", "list"],
    ask: () => ["opencode", "run", PROMPT],
    env: () => ({}),
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

/** The part of Google's protocol that Gemini CLI needs. */
const gemini = {
  read: ({ contents = [], tools = [] }, number) => ({
    number,
    stream: true,
    tools: tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
    messages: contents.map(({ parts = [] }) => ({
      toolCalls: parts.flatMap(({ functionCall }) => functionCall ?? []),
      toolResults: parts.flatMap(({ functionResponse: said }) =>
        said ? [{ text: JSON.stringify(said.response) }] : [],
      ),
    })),
  }),
  body: (_request, { text, toolCalls = [] }) => ({
    candidates: [
      {
        content: {
          role: "model",
          parts: [...(text ? [{ text }] : []), ...toolCalls.map((functionCall) => ({ functionCall }))],
        },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  }),
  events: (request, answer) => [`data: ${JSON.stringify(gemini.body(request, answer))}\n\n`],
};

const PROTOCOLS = [
  [/\/v1\/messages$/, anthropic],
  [/\/chat\/completions$/, openaiChat],
  [/\/responses$/, openaiResponses],
  [/:(streamG|g)enerateContent$/, gemini],
];

/** What a model with our tools does: starts a run, checks it until it has ended, and says how. */
function decide({ tools, messages }) {
  const named = (end) => tools.find((name) => name.endsWith(end));
  const calls = messages.flatMap(({ toolCalls }) => toolCalls);
  const results = messages.flatMap(({ toolResults }) => toolResults).map(({ text }) => text);
  const search = tools.find((name) => /^tool_?search$/i.test(name));
  const [run, check] = [named("run_deep_agent"), named("check_deep_agent")];
  const searched = calls.some(({ name }) => name === search);
  if (run === undefined && search !== undefined && !searched) {
    return { toolCalls: [{ name: search, args: { query: "run_deep_agent", max_results: 5 } }] };
  }
  // Some let a tool that was found be called, and list it nowhere.
  const found = {
    run: run ?? "mcp__deepagent__run_deep_agent",
    check: check ?? "mcp__deepagent__check_deep_agent",
  };
  if (run === undefined && search === undefined) return { text: "ok" };
  if (!calls.some(({ name }) => name.endsWith("run_deep_agent"))) {
    return { toolCalls: [{ name: found.run, args: { task: TASK } }] };
  }
  const id = /run_[\w-]{20,}/.exec(results.join("\n"))?.[0];
  const ended = /run_[\w-]{20,} (completed|failed|cancelled)/.exec(results.at(-1) ?? "");
  if (ended !== null) return { text: ended[0] };
  if (id === undefined || results.length > MAX_RESULTS) return { text: `Gave up: ${results.at(-1)}` };
  const after = Number(/\bafter: (\d+)/.exec(results.at(-1) ?? "")?.[1] ?? 0);
  return { toolCalls: [{ name: found.check, args: { run_id: id, after } }] };
}

/** Answers as the provider would; `seen` gets the results of tools as the client gives them to its model. */
async function startModel(seen) {
  let number = 0;
  const answer = async (incoming, response) => {
    const pieces = [];
    for await (const piece of incoming) pieces.push(piece);
    const path = incoming.url.split("?")[0];
    const protocol = PROTOCOLS.find(([pattern]) => pattern.test(path))?.[1];
    if (protocol === undefined || incoming.method !== "POST") {
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const body = JSON.parse(Buffer.concat(pieces).toString());
    const request = protocol.read(body, number++);
    // Codex groups the tools of a server.
    const grouped = (body.tools ?? [])
      .filter(({ type }) => type === "namespace")
      .flatMap((group) => group.tools.map((tool) => ({ name: tool.name, namespace: group.name })));
    const reply = decide({ ...request, tools: [...request.tools, ...grouped.map(({ name }) => name)] });
    const last = request.messages.flatMap(({ toolResults }) => toolResults).at(-1);
    if (last !== undefined) seen.push(last.text);
    const streams = protocol === gemini ? path.includes("stream") : request.stream;
    let out = streams
      ? protocol.events(request, reply).join("")
      : JSON.stringify(protocol.body(request, reply));
    for (const { name, namespace } of grouped) {
      out = out.replaceAll(`"name":"${name}"`, `"name":"${name}","namespace":"${namespace}"`);
    }
    response.writeHead(200, { "content-type": streams ? "text/event-stream" : "application/json" }).end(out);
  };
  const server = createServer((incoming, response) => void answer(incoming, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** What a person does in a terminal. */
async function approveAll(args, env, signal) {
  while (!signal.aborted) {
    await sleep(1000);
    const listed = await output(
      [process.execPath, BIN, "runs", "list", "--json", "--limit", "1", ...args],
      env,
    );
    const { run_id: id, status } = JSON.parse(listed.split("\n")[0] || "{}");
    if (status === "input_required") {
      await output([process.execPath, BIN, "runs", "answer", id, "--approve", ...args], env);
    }
  }
}

async function drive(client) {
  const home = mkdtempSync(join(kit, "home-"));
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.js"), "// TODO: everything\n");
  const seen = [];
  const model = await startModel(seen);
  const path = [join(kit, "node_modules/node/bin"), join(kit, "node_modules/.bin"), process.env.PATH];
  const env = { PATH: path.join(delimiter), HOME: home, TERM: "xterm-256color", ...client.env(model.url) };
  const args = ["--workspace", workspace, "--model", "offline"];
  const run = (command) => output(command, env, workspace);
  const done = new AbortController();
  let approving;
  try {
    await configure(client, { args, run, home, url: model.url });
    const isListed = /deepagent/.test(await run(client.list));
    approving = approveAll(args, env, done.signal);
    const printed = await run(client.ask(model.url));
    await sleep(3000);
    const processes = await output(["ps", "-eo", "args"], env);
    return {
      configured: isListed,
      "run completed":
        /run_\S+ completed/.test(printed) && existsSync(join(workspace, "deepagent-report.md")),
      "server ended": !processes.includes(`--workspace ${workspace}`),
      "model gets": seen.some((text) => text.includes('"run_id"')) ? "JSON" : "text",
      results: seen.length,
    };
  } finally {
    done.abort();
    await approving;
    model.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Adds the server as docs/clients.md says, and a model of its own. */
async function configure(client, { args, run, home, url }) {
  if (client.install === undefined) {
    await run(client.add(["node", BIN, ...args]));
  } else {
    const said = await run(["node", BIN, "install", client.install, "--yes", ...args]);
    const command = /^ {2}((?:claude|codex) mcp add .*)$/m.exec(said)?.[1];
    if (command !== undefined) await run(["sh", "-c", command]);
  }
  if (client.settings === undefined) return;
  const file = join(home, client.settings.file);
  writeFileSync(
    file,
    JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...client.settings.add(url) }),
  );
}

function output([command, ...args], env, cwd = kit) {
  return new Promise((resolve, reject) => {
    const options = { cwd, env, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout + stderr);
      else reject(new Error(`${command} ${args[0] ?? ""} failed: ${stderr || error.message}\n${stdout}`));
    });
    child.stdin.end();
  });
}

const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(CLIENTS);
const unknown = chosen.filter((name) => !Object.hasOwn(CLIENTS, name));
if (unknown.length > 0 || !existsSync(BIN)) {
  console.error(
    unknown.length > 0
      ? `Unknown: ${unknown.join(", ")}. Known: ${Object.keys(CLIENTS).join(", ")}.`
      : "The program is not built: run npm run build first.",
  );
  process.exit(2);
}
mkdirSync(kit, { recursive: true });
if (!existsSync(join(kit, "package.json"))) writeFileSync(join(kit, "package.json"), '{"private":true}');
const packages = [NODE, ...chosen.map((name) => CLIENTS[name].packages)];
await output(["npm", "install", "--no-audit", "--no-fund", ...packages], process.env);
const table = {};
for (const name of chosen) {
  const version = CLIENTS[name].packages.split("@").at(-1);
  try {
    table[name] = { version, ...(await drive(CLIENTS[name])) };
  } catch (error) {
    table[name] = { version, configured: false };
    console.error(`${name}: ${error.message}`);
  }
  const { configured, "run completed": completed, "server ended": ended } = table[name];
  if (!(configured && completed && ended)) process.exitCode = 1;
}
console.table(table);
