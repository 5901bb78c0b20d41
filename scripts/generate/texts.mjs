/** Parts of README.md, SECURITY.md, docs/models.md and the pages about the starter that depend on the facts of the project. */

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
        `${open}written by scripts/generate.mjs${close}${firstCommands(manifest)}${end}`,
    )
    .replaceAll(
      /((?:src|srcset)="|\]\()(?:https:\/\/raw\.githubusercontent\.com\/[^/]+\/[^/]+\/HEAD\/)?(?=docs\/pictures\/)/g,
      // npm shows the README, but has no pictures of the repository.
      (_, before) => before + pictures,
    );
}

/** One line, which GitHub and npm show in the same way; empty until npm has the package. */
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

/** SECURITY.md with the address where vulnerabilities are reported. */
export function securityText(text, { securityContact }) {
  const contact = securityContact?.replace(/^mailto:/, "");
  const how =
    contact === undefined
      ? "**The contact is not set yet**, so there is no private way to report. Set `securityContact` in `project.json`; `node scripts/generate.mjs` writes it here."
      : `Report it to <${contact}>.`;
  return text.replace(
    /(<!-- contact: ).*( -->\n)[^]*?(<!-- end -->)/,
    (_, open, close, end) => `${open}written by scripts/generate.mjs${close}${how}\n${end}`,
  );
}

const PROTOCOLS = { chat: "chat completions", messages: "Anthropic's messages" };

/** docs/models.md with the services of profiles.json. */
export function modelsText(text, providers) {
  const code = (names = []) => names.map((name) => `\`${name}\``).join(", ");
  const keyOf = ({ keys, bearerKeys = [], keyless }) => {
    const names = code([...(keys ?? []), ...bearerKeys]);
    return keyless === "always" ? `not needed${names && `, or ${names}`}` : names;
  };
  const addressOf = ({ base = "", baseVariables }) => {
    const parts = code([...base.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    return [code(baseVariables), parts && `its own needs ${parts}`].filter(Boolean).join("; ");
  };
  const rows = Object.entries(providers).map(([name, facts]) => {
    const { wire, package: own } = facts;
    const protocol = PROTOCOLS[wire] ?? (own.versions === undefined ? "its own" : "`models add`");
    return [`\`${name}\``, keyOf(facts), addressOf(facts), protocol];
  });
  const table = [["name", "key", "address", "protocol"], ["---", "---", "---", "---"], ...rows]
    .map((cells) => `| ${cells.map((cell) => cell || "–").join(" | ")} |\n`)
    .join("");
  return text.replace(
    /(<!-- services: ).*( -->\n)[^]*?(<!-- end -->)/,
    (_, open, close, end) => `${open}written by scripts/generate.mjs${close}\n${table}\n${end}`,
  );
}

/** A page about the starter with the line that starts a project, which is its first block of shell code. */
export function starterText(text, { private: isPrivate }) {
  const line = isPrivate
    ? "node /path/to/deepagent-mcp/create/create-deepagent.mjs my-agent --template server"
    : "npm create deepagent my-agent -- --template server";
  return text.replace(/(```sh\n).*\n/, (_, fence) => `${fence}${line}\n`);
}
