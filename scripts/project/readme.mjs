/** The parts of the README that depend on where the project and its package can be found. */

/**
 * The README with its first commands, badges and the addresses of its pictures: by npx once the package is on npm, from
 * a clone while package.json says `private`.
 */
export function readmeText(text, { repository }, manifest) {
  const pictures = repository
    ? `${repository.replace("https://github.com", "https://raw.githubusercontent.com")}/HEAD/`
    : "";
  return text
    .replace(/^(# .*\n)(?:\[!\[.*\n)?/, (_, title) => title + badges(manifest))
    .replace(
      /(<!-- start: ).*( -->\n)[^]*?(<!-- end -->)/,
      (_, open, close, end) =>
        `${open}written by scripts/project-facts.mjs${close}${firstCommands(manifest)}${end}`,
    )
    .replaceAll(
      /((?:src|srcset)="|\]\()(?:https:\/\/raw\.githubusercontent\.com\/[^/]+\/[^/]+\/HEAD\/)?(?=docs\/pictures\/)/g,
      // npm shows the README, but has no pictures of the repository.
      (_, before) => before + pictures,
    );
}

/** One line, which GitHub and npm show in the same way; nothing before there is a package to speak of. */
function badges({ name, private: isPrivate }) {
  if (isPrivate) return "";
  const badge = (title, path, target) => `[![${title}](https://img.shields.io/${path}/${name})](${target})`;
  const page = `https://www.npmjs.com/package/${name}`;
  const all = [
    badge("npm", "npm/v", page),
    badge("Node", "node/v", page),
    badge("licence", "npm/l", "LICENSE"),
  ];
  return `${all.join(" ")}\n`;
}

function firstCommands({ name, private: isPrivate }) {
  const launch = isPrivate
    ? ["node", "/path/to/deepagent-mcp/dist/bin/deepagent-mcp.js"]
    : ["npx", "-y", name];
  const [command, ...args] = launch;
  const entry = { command, args: [...args, "--workspace", "/path/to/folder"] };
  const shell = launch.join(" ");
  const install = isPrivate
    ? `npm ci && npm run build && npm link     # in a clone: the package is not on npm yet
deepagent-mcp install cursor --workspace DIR`
    : `${shell} install cursor --workspace DIR`;
  return `\`\`\`sh
${install}
\`\`\`

By hand${isPrivate ? ", with the path of your clone" : ""}:

\`\`\`jsonc
// Claude Desktop, Cursor, VS Code ("servers" instead of "mcpServers"), Windsurf, …
${JSON.stringify({ mcpServers: { deepagent: entry } })}
\`\`\`

\`\`\`sh
claude mcp add deepagent -- ${shell}    # Claude Code
codex mcp add deepagent -- ${shell}     # Codex
\`\`\`
`;
}
