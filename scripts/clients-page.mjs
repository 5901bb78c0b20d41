/**
 * Writes docs/clients.md: one section for each client that `install` knows, with files and entries as `install` makes them.
 * With --check it only fails when the file says something else.
 */
import { readFile } from "node:fs/promises";
import { writeGenerated } from "./generated.mjs";
import { installButtons } from "./project/links.mjs";
import { loadSources } from "./sources.mjs";

const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
const { CLIENT_NAMES, NAME, entryFor, findClient, snippetOf } = await loadSources(
  'export * from "./src/cli/clients/catalogue.ts"; export * from "./src/cli/clients/entries.ts";',
);

const LAUNCH = manifest.private
  ? ["node", "/path/to/deepagent-mcp/dist/bin/deepagent-mcp.js"]
  : ["npx", "-y", manifest.name];
const PROGRAM = manifest.private ? "deepagent-mcp" : LAUNCH.join(" ");
const BUTTONS = manifest.private ? {} : installButtons(NAME, LAUNCH);

const PLATFORMS = {
  Linux: { platform: "linux", home: "~", env: {} },
  macOS: { platform: "darwin", home: "~", env: {} },
  Windows: { platform: "win32", home: "%USERPROFILE%", env: { APPDATA: "%APPDATA%" } },
};

/**
 * Where the client shows approvals, how long it waits, and what else is special about it. `tried`: the version
 * that scripts/real-clients.mjs drives, and what was seen; absent: it was not tried.
 */
const NOTES = {
  "claude-desktop": {
    forms: false,
    notes: [
      "It starts servers with almost no environment: give keys with `--env`, or keep them in the keychain ([models](models.md)).",
      "On Windows, a version that is installed as a package has the file in `%LOCALAPPDATA%\\Claude-Data` or `%LOCALAPPDATA%\\Packages`; `install` looks there first. This is untried.",
      "It gives up a call after one to four minutes, depending on its version, and cannot be told to wait longer. Nothing is lost: a call answers before that, and the run goes on.",
      "**One click:** `npm run mcpb` in a clone packs `build/*.mcpb` for this platform. Open the file with Claude Desktop; it asks for folder, model and key, and keeps the key in the keychain.",
    ],
  },
  "claude-code": {
    forms: true,
    tried:
      "2.1.330. It speaks 2026-07-28. Its model gets the structured result as JSON instead of the text, and `run_deep_agent` and `check_deep_agent` without searching for tools. `claude -p` declares forms and cancels each at once: decide on the page or in a terminal, `check_deep_agent` waits for that. The plugin installs, too.",
    notes: [
      "It hands on the environment of its shell, keys too. `MCP_TOOL_TIMEOUT` is how many milliseconds it waits for a call.",
      "**Plugin**, which also teaches Claude when to delegate: `claude plugin marketplace add FOLDER_OR_REPOSITORY`, then `claude plugin install deepagent@deepagent-mcp`.",
    ],
  },
  cursor: {
    forms: true,
    notes: ["In `.cursor/mcp.json` of a project, `${workspaceFolder}` is the folder that is open."],
  },
  vscode: {
    forms: true,
    notes: [
      "With `--env ANTHROPIC_API_KEY` it asks for the key itself when it first starts the server, and keeps it. Sessions of Copilot outside the editor leave out servers that ask: for these, keep the key in the keychain.",
    ],
  },
  windsurf: {
    forms: false,
    notes: ["It offers at most 100 tools of all servers together."],
  },
  zed: { forms: false, notes: ["The settings may have comments; `install` keeps them."] },
  opencode: {
    forms: false,
    tried: "1.18.33, `opencode run`. It declares no forms. Its model gets the text.",
    notes: [
      "Version 2 nests servers under `mcp.servers`. `install` writes the form that the file has already; both versions read the one above.",
    ],
  },
  gemini: {
    forms: false,
    tried: "0.61.0, `gemini --yolo -p`. It declares no forms. Its model gets the text.",
    notes: [
      "It waits ten minutes for a call; `timeout` in the entry changes that (milliseconds).",
      "It keeps variables that look like keys from servers, unless the entry names them: use `--env ANTHROPIC_API_KEY`.",
      "**Extension**, which also teaches Gemini when to delegate: `gemini extensions install plugins/deepagent` in a clone.",
    ],
  },
  codex: {
    forms: true,
    tried:
      "0.169.0, `codex exec`. Its model gets the structured result as JSON. It declares forms, and `codex exec` declines each at once: decide on the page or in a terminal, `check_deep_agent` waits for that. The plugin installs, too.",
    notes: [
      '`codex exec` asks nobody, and so refuses to call `run_deep_agent` until its server has `default_tools_approval_mode = "approve"` in `~/.codex/config.toml`.',
      "It hands on few variables: give keys with `--env`, or keep them in the keychain ([models](models.md)). `tool_timeout_sec` in `~/.codex/config.toml` is how long it waits for a call; the default is 60.",
      "**Plugin**, which also teaches Codex when to delegate: `codex plugin marketplace add FOLDER_OR_REPOSITORY`, then install `deepagent` under `/plugins`.",
    ],
  },
  goose: { forms: false, notes: ["It waits 300 seconds for a call: `timeout` in the entry."] },
  "lm-studio": {
    forms: false,
    notes: [
      "It asks before each call of a tool. The server does not use the model that is loaded there: give it one of its own.",
    ],
  },
};

const text = `# Clients

Generated by \`node scripts/clients-page.mjs\`; do not edit.

One command adds the server to a client, asks for folder, model and key, and checks that the client can start it:

\`\`\`sh
${PROGRAM} install CLIENT          # uninstall CLIENT takes it out again, --print only shows the entry
\`\`\`

${
  manifest.private
    ? "The package is not on npm yet: run `npm ci && npm run build && npm link` in a clone first. The entry then names Node and the program by their paths, so it works without any environment. Buttons that install with one click appear here once npm has the package."
    : "Run by npx, the entry starts the server by npx too (on Windows `cmd /c npx`); from a clone or another installation it names Node and the program by their paths, so it works without any environment."
} \`install\` keeps comments and all other entries, and a backup of the file, or a note that there was none; \`uninstall\` needs it to restore the file, and deletes it. Keys get into no file of a project, of the workspace or of a git repository: [\`keys\`](models.md) puts them into the keychain.

**Tried** means that the client itself, without a window, was configured by this command, listed the server, and had its model delegate a task that ended with a report, while a person approved in a terminal; its model was a script, and the agent's the offline model. After it ended, no server was left. \`node scripts/real-clients.mjs\` does that again. Qwen Code 0.24.4 and GitHub Copilot CLI 1.0.102, which \`install\` does not know, work too when their own \`mcp add\` gets the command; so does Cline 3.0.65.

**Approvals** appear where the client can show them: by a form if it declares that, else on the page (\`deepagent-mcp open\`) or in a terminal (\`deepagent-mcp runs answer\`). [Approvals](approvals.md) has the details. **Long tasks** outlive the call: it answers with a \`run_id\` after 40 seconds (\`--delivery-window\`; 240 for clients that are known to wait while they hear of progress), and \`check_deep_agent\` gets the rest.
${CLIENT_NAMES.map(section).join("")}`;

await writeGenerated("docs/clients.md", text);

function section(name) {
  const client = onPlatform(name, "Linux");
  const { forms, notes, tried } = NOTES[name];
  const approvals = forms
    ? "by a form in the client; on the page when it is closed."
    : "by a form if it declares that it shows them, else on the page or in a terminal.";
  const parts = [
    `\n## ${client.title}\n`,
    `\`\`\`sh\n${PROGRAM} install ${name} --workspace DIR\n\`\`\`\n`,
    ...(BUTTONS[name] ? [`${BUTTONS[name]}\n`] : []),
    byHand(name, client),
    `**Approvals:** ${approvals}\n`,
    `**Tried:** ${tried ?? "not yet; the entry follows its documentation."}\n`,
    ...(notes.length === 0 ? [] : [`${notes.map((note) => `- ${note}`).join("\n")}\n`]),
    `Its documentation: <${client.docs}>\n`,
  ];
  return parts.join("\n");
}

function byHand(name, client) {
  const [command, ...args] = LAUNCH;
  const flags = ["--workspace", "/path/to/folder"];
  if (client.kind === "command") {
    const line = [...client.add([]), "--", ...LAUNCH, ...flags].join(" ");
    return `By hand:\n\n\`\`\`sh\n${line}\n\`\`\`\n`;
  }
  const made = entryFor(client, { launch: { command, args }, flags, env: new Map() }, {});
  const files = Object.keys(PLATFORMS).map((platform) => [platform, onPlatform(name, platform).file]);
  const same = new Map();
  for (const [platform, file] of files) same.set(file, [...(same.get(file) ?? []), platform]);
  const places = [...same].map(([file, names]) => `\`${file}\` (${names.join(", ")})`).join(", ");
  return `By hand, in ${places}:\n\n\`\`\`${client.format}\n${snippetOf(client, made.entry)}\n\`\`\`\n`;
}

function onPlatform(name, platform) {
  return findClient(name, { host: { cwd: "/", ...PLATFORMS[platform] } });
}
