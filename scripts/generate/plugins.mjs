/**
 * The plugin for clients that install skills and servers together: Claude Code (https://code.claude.com/docs/en/plugins),
 * Codex (https://developers.openai.com/codex/plugins/build) and Gemini CLI
 * (https://geminicli.com/docs/extensions/reference) read the same folder, each with a manifest of its own. The server is in
 * it once npm has the package: before that there is no command that starts it on every machine.
 */

const FOLDER = "plugins/deepagent";
const NAME = "deepagent";
const TITLE = "Deep Agent";
const DESCRIPTION = "Hands tasks that take minutes to hours to a durable deep agent.";

/** Each file by its name, with the value it should hold; `undefined`: there should be none. */
export function pluginFiles({ repository, homepage, author }, { version, license, keywords, ...manifest }) {
  const isPublished = manifest.private !== true;
  const server = { [NAME]: { command: "npx", args: ["-y", manifest.name] } };
  const owner = { name: author?.replace(/\s*[<(].*$/, "") ?? "deepagent-mcp contributors" };
  const about = {
    name: NAME,
    version,
    description: DESCRIPTION,
    author: owner,
    ...(homepage ? { homepage } : {}),
    ...(repository ? { repository } : {}),
    license,
    keywords,
  };
  return {
    [`${FOLDER}/.claude-plugin/plugin.json`]: about,
    [`${FOLDER}/.codex-plugin/plugin.json`]: {
      ...about,
      skills: "./skills/",
      ...(isPublished ? { mcpServers: "./.mcp.json" } : {}),
      interface: { displayName: TITLE, shortDescription: DESCRIPTION, category: "Productivity" },
    },
    // Read by Claude Code on its own.
    [`${FOLDER}/.mcp.json`]: isPublished ? server : undefined,
    [`${FOLDER}/gemini-extension.json`]: {
      name: NAME,
      version,
      description: DESCRIPTION,
      ...(isPublished ? { mcpServers: server, settings: KEYS } : {}),
    },
    ".claude-plugin/marketplace.json": {
      name: "deepagent-mcp",
      owner,
      plugins: [{ name: NAME, source: `./${FOLDER}`, description: DESCRIPTION }],
    },
    ".agents/plugins/marketplace.json": {
      name: "deepagent-mcp",
      interface: { displayName: TITLE },
      plugins: [
        {
          name: NAME,
          source: { source: "local", path: `./${FOLDER}` },
          policy: { installation: "AVAILABLE", authentication: "ON_INSTALL" },
          category: "Productivity",
        },
      ],
    },
  };
}

/** Gemini CLI keeps variables that look like keys from servers, but for those that an extension asks for. */
const KEYS = ["Anthropic", "OpenAI"].map((provider) => ({
  name: `Key of ${provider}`,
  description: `For models of ${provider}; empty if another model is used.`,
  envVar: `${provider.toUpperCase()}_API_KEY`,
  sensitive: true,
}));
