/**
 * Writes the commands at the beginning of the README: from a clone while package.json says `private`, by npx
 * once that is taken out to publish the package. With --check it only fails when the README has others.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const target = fileURLToPath(new URL("../README.md", import.meta.url));
const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));

const launch = manifest.private
  ? ["node", "/path/to/deepagent-mcp/dist/bin/deepagent-mcp.js"]
  : ["npx", "-y", "deepagent-mcp"];
const [command, ...args] = launch;
const entry = { command, args: [...args, "--workspace", "/path/to/folder"] };
const shell = launch.join(" ");
const install = manifest.private
  ? `npm ci && npm run build && npm link     # in a clone: the package is not on npm yet
deepagent-mcp install cursor --workspace DIR`
  : `${shell} install cursor --workspace DIR`;

const start = `\`\`\`sh
${install}
\`\`\`

By hand${manifest.private ? ", with the path of your clone" : ""}:

\`\`\`jsonc
// Claude Desktop, Cursor, VS Code ("servers" instead of "mcpServers"), Windsurf, …
${JSON.stringify({ mcpServers: { deepagent: entry } })}
\`\`\`

\`\`\`sh
claude mcp add deepagent -- ${shell}    # Claude Code
codex mcp add deepagent -- ${shell}     # Codex
\`\`\`
`;

const before = await readFile(target, "utf8");
const after = before.replace(
  /(<!-- start: .* -->\n)[^]*?(<!-- end -->)/,
  (_, open, close) => open + start + close,
);
if (!process.argv.includes("--check")) await writeFile(target, after);
else if (after !== before) {
  console.error("README.md is stale. Run: node scripts/readme-start.mjs");
  process.exitCode = 1;
}
