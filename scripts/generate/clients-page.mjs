import { existsSync, readFileSync } from "node:fs";

/** docs/clients.md: one section for each client that `install` knows, with files and entries as `install` makes them. */

const PLATFORMS = {
  Linux: { platform: "linux", home: "~", env: {} },
  macOS: { platform: "darwin", home: "~", env: {} },
  Windows: { platform: "win32", home: "%USERPROFILE%", env: { APPDATA: "%APPDATA%" } },
};

/**
 * `forms`: the client shows approvals. `notes`: its time limits and peculiarities. `tried`: the version
 * that test/conformance/clients drove, and what was seen; absent: it was not tried.
 */
const NOTES = {
  "claude-desktop": {
    forms: false,
    notes: [
      "It starts servers with almost no environment: pass keys with `--env`, or keep them in the keychain ([models](models.md)).",
      "On Windows, a version installed as a package has the file in `%LOCALAPPDATA%\\Claude-Data` or `%LOCALAPPDATA%\\Packages`; `install` looks there first (untested).",
      "It times out calls after one to four minutes, depending on its version, and this cannot be configured. Nothing is lost: the server answers before that, and the run continues.",
      "**One click:** `npm run mcpb` in a clone packs `build/*.mcpb` for this platform. Open the file with Claude Desktop; it asks for folder, model and key, and keeps the key in the keychain.",
    ],
  },
  "claude-code": {
    forms: true,
    tried:
      "2.1.330. It speaks 2026-07-28. Its model gets `run_deep_agent` and `check_deep_agent` without searching for tools. `claude -p` declares forms and cancels each at once: decide on the page or in a terminal, `check_deep_agent` waits for that. The plugin also installs.",
    notes: [
      "It passes its shell environment, including keys, to the server. `MCP_TOOL_TIMEOUT` is its time limit for a call, in milliseconds.",
      "**Plugin**, which also teaches Claude when to delegate: `claude plugin marketplace add FOLDER_OR_REPOSITORY`, then `claude plugin install deepagent@deepagent-mcp`.",
    ],
  },
  cursor: {
    forms: true,
    notes: ["In `.cursor/mcp.json` of a project, `${workspaceFolder}` is the open folder."],
  },
  vscode: {
    forms: true,
    notes: [
      "With `--env ANTHROPIC_API_KEY` it asks for the key when it first starts the server, and stores it. Copilot sessions outside the editor skip servers that ask: for these, keep the key in the keychain.",
    ],
  },
  windsurf: {
    forms: false,
    notes: ["It offers at most 100 tools in total, from all servers."],
  },
  zed: { forms: false, notes: ["The settings may contain comments; `install` keeps them."] },
  opencode: {
    forms: false,
    tried: "1.18.33, `opencode run`. It declares no forms.",
    notes: [
      "Version 2 nests servers under `mcp.servers`. `install` writes the form that the file already has; both versions read the one above.",
    ],
  },
  gemini: {
    forms: false,
    tried: "0.61.0, `gemini --yolo -p`. It declares no forms.",
    notes: [
      "It waits ten minutes for a call; `timeout` in the entry changes that (milliseconds).",
      "It does not pass variables that look like keys to servers, unless the entry names them: use `--env ANTHROPIC_API_KEY`.",
      "**Extension**, which also teaches Gemini when to delegate: `gemini extensions install plugins/deepagent` in a clone.",
    ],
  },
  codex: {
    forms: true,
    tried:
      "0.169.0, `codex exec`. It declares forms, and `codex exec` declines each at once: decide on the page or in a terminal, `check_deep_agent` waits for that. The plugin also installs.",
    notes: [
      '`codex exec` cannot ask anybody, so it refuses to call `run_deep_agent` until the entry of the server has `default_tools_approval_mode = "approve"` in `~/.codex/config.toml`.',
      "`required = true` makes it wait for the server. Otherwise the first turn of a session has only the servers that answer within about one second, whatever `startup_timeout_sec` says, and its model works without the others. In return, Codex begins no session while the server cannot start (`required MCP servers failed to initialize`): write `required = false` to work without it.",
      "It passes few variables to servers: pass keys with `--env`, or keep them in the keychain ([models](models.md)). `tool_timeout_sec` in `~/.codex/config.toml` is its time limit for a call; the default is 60.",
      "**Plugin**, which also teaches Codex when to delegate: `codex plugin marketplace add FOLDER_OR_REPOSITORY`, then install `deepagent` under `/plugins`.",
    ],
  },
  goose: { forms: false, notes: ["It waits 300 seconds for a call: `timeout` in the entry."] },
  "lm-studio": {
    forms: false,
    notes: [
      "It asks before each tool call. The server does not use the model that is loaded in LM Studio: configure its own.",
    ],
  },
};

/** Results of test/conformance/clients/drive.mjs; absent: it has not run. */
const MEASURED = new URL("../../test/conformance/clients/measured.json", import.meta.url);

export function clientsPage(sources, { name, private: isPrivate }) {
  const launch = isPrivate
    ? ["node", "/path/to/deepagent-mcp/dist/bin/deepagent-mcp.js"]
    : ["npx", "-y", name];
  const program = isPrivate ? "deepagent-mcp" : launch.join(" ");
  const buttons = isPrivate ? {} : installButtons(sources.NAME, launch);
  return `# Clients

Generated by \`node scripts/generate.mjs\`; do not edit.

One command adds the server to a client, asks for folder, model and key, and checks that the client can start it:

\`\`\`sh
${program} install CLIENT          # uninstall CLIENT removes it, --print only shows the entry
\`\`\`

${
  isPrivate
    ? "The package is not on npm yet: run `npm ci && npm run build && npm link` in a clone first. The entry then names Node and the program by their paths, so it works without any environment. Buttons that install with one click appear here once npm has the package."
    : "Run by npx, the entry starts the server by npx too (on Windows `cmd /c npx`); from a clone or another installation it names Node and the program by their paths, so it works without any environment."
} \`install\` keeps comments and all other entries, and makes a backup of the file (or notes that there was none); \`uninstall\` uses it to restore the file, and then deletes it. Keys are never written to files in a project, the workspace, or a git repository: [\`keys\`](models.md) puts them into the keychain.

**Tested** means that the client itself, without a window, was configured by this command and listed the server, and that its model delegated a task that ended with a report, while a person approved in a terminal. Both models, the client's and the agent's, were scripts. After the client ended, no server was left. \`npm run clients\` repeats these tests. Qwen Code 0.24.4, GitHub Copilot CLI 1.0.102 and Cline 3.0.65, which \`install\` does not know, also work with their own \`mcp add\`.

**Approvals** appear where the client can show them: in a form if it supports forms, otherwise on the page (\`deepagent-mcp open\`) or in a terminal (\`deepagent-mcp runs answer\`). [Approvals](approvals.md) has the details. **Long tasks** outlive the call: it answers with a \`run_id\` after 40 seconds (\`--delivery-window\`; 240 for clients that are known to wait as long as they get progress), and \`check_deep_agent\` gets the rest.

${modelsPage(sources)}
${sources.CLIENT_NAMES.map((client) => section(client, { sources, launch, program, buttons })).join("")}`;
}

const row = (...cells) => `| ${cells.join(" | ")} |`;
const PARTS = { text: "the text", structure: "the structured content alone", both: "both" };

/** What the models of clients see of results, and what `npm run clients` saw last. */
function modelsPage({ CLIENTS, resultForm }) {
  const known = CLIENTS.filter(({ sees }) => sees !== undefined);
  const measured = existsSync(MEASURED) ? JSON.parse(readFileSync(MEASURED, "utf8")) : {};
  return `## What a client's model sees

Results of tools have a text, and structured content for programs. Clients pass on one of them or both, and cut long ones. So each client gets results in a form that reaches its model whole: command-line clients get the text alone; programs and unknown clients get both. A long answer comes in pages of about 10,000 bytes (60,000 for clients that cut nothing). Each page says first and last how to read on: \`check_deep_agent\` with the \`run_id\` and an \`offset\`. \`read_agent_file\` has pages of the same size. No result has a resource link, because LangChain's adapters make broken requests of links. To get structured content from a client in this table, let it use another name in \`clientInfo\`.

${[
  row(
    "client",
    "measured",
    "its model sees of text and structured content",
    "it cuts",
    "a failed call is marked",
    "gets",
  ),
  row(...Array(6).fill("---")),
  ...known.map((client) =>
    row(
      client.title,
      `${client.measured.version}, ${client.measured.date}`,
      PARTS[client.sees],
      client.cuts === undefined ? "nothing" : cutText(client.cuts),
      client.marksFailure ? "yes" : "no: the text says it",
      resultForm(client).structure ? "both" : "text",
    ),
  ),
].join("\n")}

\`npm run clients\` lets each client use the server: a run with an approval, an answer of 60,000 characters, a file of 1,000 lines, a failed run and a question to the user, who answers in a terminal. It records what reaches the client's model:

${[
  row("client", "date", "form", "approval", "answer", "file", "failed run", "question"),
  row(...Array(8).fill("---")),
  ...Object.entries(measured).map(([client, found]) => measuredRow(client, found)),
].join("\n")}
`;
}

const cutText = ({ characters, bytes, lines, shows }) =>
  `${[
    characters && `above ${characters.toLocaleString("en")} characters`,
    bytes && `above ${bytes.toLocaleString("en")} bytes`,
    lines && `above ${lines.toLocaleString("en")} lines`,
  ]
    .filter(Boolean)
    .join(" or ")}: ${shows}`;

function measuredRow(client, { version, date, problem, form, approval, answer, file, failure, question }) {
  const title = `${client} ${version}`;
  if (problem !== undefined) return row(title, date, `not driven: ${problem}`, "", "", "", "", "");
  const works = (value) => (value ? "yes" : "**no**");
  return row(title, date, form, works(approval), paged(answer), paged(file), works(failure), works(question));
}

function paged({ beginning, end, whole, pages, continues }) {
  if (whole && continues)
    return pages === 1 ? "whole, in one result" : `whole, ${pages} pages, each names the next`;
  const seen = [beginning && "beginning", end && "end", continues && "how to read on"].filter(Boolean);
  return `**not whole**: ${seen.join(", ") || "nothing"}`;
}

function section(name, { sources, launch, program, buttons }) {
  const onPlatform = (platform) => sources.findClient(name, { host: { cwd: "/", ...PLATFORMS[platform] } });
  const client = onPlatform("Linux");
  const { forms, notes, tried } = NOTES[name];
  const approvals = forms
    ? "in a form of the client, or on the page when the client is closed."
    : "in a form if the client supports forms, otherwise on the page or in a terminal.";
  const parts = [
    `\n## ${client.title}\n`,
    `\`\`\`sh\n${program} install ${name} --workspace DIR\n\`\`\`\n`,
    ...(buttons[name] ? [`${buttons[name]}\n`] : []),
    byHand(client, { sources, launch, onPlatform }),
    `**Approvals:** ${approvals}\n`,
    `**Tested:** ${tried ?? "not yet; the entry follows its documentation."}\n`,
    ...(notes.length === 0 ? [] : [`${notes.map((note) => `- ${note}`).join("\n")}\n`]),
    `Documentation: <${client.docs}>\n`,
  ];
  return parts.join("\n");
}

function byHand(client, { sources, launch, onPlatform }) {
  const [command, ...args] = launch;
  const flags = ["--workspace", "/path/to/folder"];
  if (client.kind === "command") {
    const line = [...client.add([]), "--", ...launch, ...flags].join(" ");
    return `By hand:\n\n\`\`\`sh\n${line}\n\`\`\`\n`;
  }
  const made = sources.entryFor(client, { launch: { command, args }, flags, env: new Map() }, {});
  const files = Object.keys(PLATFORMS).map((platform) => [platform, onPlatform(platform).file]);
  const same = new Map();
  for (const [platform, file] of files) same.set(file, [...(same.get(file) ?? []), platform]);
  const places = [...same].map(([file, names]) => `\`${file}\` (${names.join(", ")})`).join(", ");
  return `By hand, in ${places}:\n\n\`\`\`${client.format}\n${sources.snippetOf(client, made.entry)}\n\`\`\`\n`;
}

const base64 = (value) => encodeURIComponent(Buffer.from(JSON.stringify(value)).toString("base64"));
const button = (title, picture, link) => `[![${title}](${picture})](${link})`;
const badge = (text) => `https://img.shields.io/badge/${encodeURIComponent(text)}-0b6e99`;

/** Buttons that install the published package with one click, as Markdown, by the name of the client. */
function installButtons(name, launch) {
  const [command, ...args] = launch;
  const entry = { command, args };
  return {
    // https://code.visualstudio.com/api/extension-guides/ai/mcp: the name and the entry as JSON in the address.
    vscode: button(
      "Install in VS Code",
      badge("VS Code-install"),
      `https://insiders.vscode.dev/redirect/mcp/install?${vscodeQuery(name, entry)}`,
    ),
    // https://cursor.com/docs/mcp/install-links: the entry as base64.
    cursor: button(
      "Install in Cursor",
      "https://cursor.com/deeplink/mcp-install-dark.svg",
      `https://cursor.com/install-mcp?name=${name}&config=${base64(entry)}`,
    ),
    // https://block.github.io/goose/docs/getting-started/using-extensions, Deeplinks: one `arg` for each argument.
    goose: button(
      "Install in Goose",
      "https://block.github.io/goose/img/extension-install-dark.svg",
      `https://block.github.io/goose/extension?${gooseQuery(name, entry)}`,
    ),
    // https://lmstudio.ai/docs/app/mcp/deeplink: the entry as base64.
    "lm-studio": button(
      "Add to LM Studio",
      "https://files.lmstudio.ai/deeplink/mcp-install-light.svg",
      `https://lmstudio.ai/install-mcp?name=${name}&config=${base64(entry)}`,
    ),
  };
}

function vscodeQuery(name, { command, args }) {
  // The editor knows the folder that is open in it.
  const entry = { type: "stdio", command, args: [...args, "--workspace", "${workspaceFolder}"] };
  return `name=${name}&config=${encodeURIComponent(JSON.stringify(entry))}`;
}

function gooseQuery(name, { command, args }) {
  const parts = [["cmd", command], ...args.map((arg) => ["arg", arg]), ["timeout", "300"], ["id", name]];
  const all = [...parts, ["name", "Deep Agent"], ["description", "Durable deep agent"]];
  return all.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
}
