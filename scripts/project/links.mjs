/** Buttons that install the published package with one click, as Markdown that GitHub and npm show. */

const base64 = (value) => encodeURIComponent(Buffer.from(JSON.stringify(value)).toString("base64"));
const button = (title, picture, link) => `[![${title}](${picture})](${link})`;
const badge = (text) => `https://img.shields.io/badge/${encodeURIComponent(text)}-0b6e99`;

/** The buttons by the client's name. `words`: what starts the server. */
export function installButtons(name, words) {
  const [command, ...args] = words;
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
