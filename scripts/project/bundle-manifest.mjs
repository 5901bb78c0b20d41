/** The manifest of the bundle: https://github.com/modelcontextprotocol/mcpb, MANIFEST.md, version 0.3. */

/** `author` of npm in parts: "Name <mail> (page)". */
function authorOf(text) {
  const [, name, email, url] = /^([^<(]*?)\s*(?:<([^>]*)>)?\s*(?:\(([^)]*)\))?$/.exec(text) ?? [];
  return { name: name || text, ...(email ? { email } : {}), ...(url ? { url } : {}) };
}

/** A value that the client asks for. An empty one is as good as none for the server. */
const secret = (provider) => ({
  type: "string",
  title: `Key of ${provider}`,
  description: `For models of ${provider}. The client keeps it in the keychain of the system.`,
  sensitive: true,
  required: false,
  default: "",
});

export function bundleManifest({ repository, homepage, author }, manifest, settings) {
  const value = (name) => `\${user_config.${name}}`;
  return {
    manifest_version: "0.3",
    name: manifest.name.replace(/^.*\//, ""),
    display_name: "Deep Agent",
    version: manifest.version,
    description: manifest.description,
    author: authorOf(author ?? "deepagent-mcp contributors"),
    ...(repository
      ? { repository: { type: "git", url: `${repository}.git` }, support: `${repository}/issues` }
      : {}),
    ...(homepage ? { homepage } : {}),
    license: manifest.license,
    keywords: manifest.keywords,
    server: {
      type: "node",
      entry_point: "dist/bin/deepagent-mcp.js",
      mcp_config: {
        command: "node",
        args: ["${__dirname}/dist/bin/deepagent-mcp.js", "serve"],
        env: {
          DEEPAGENT_WORKSPACE: value("workspace"),
          DEEPAGENT_MODEL: value("model"),
          ANTHROPIC_API_KEY: value("anthropic_api_key"),
          OPENAI_API_KEY: value("openai_api_key"),
        },
      },
    },
    tools_generated: true,
    user_config: {
      workspace: {
        type: "directory",
        title: "Folder",
        description: "The folder the agent works in. You are asked before anything there changes.",
        required: true,
      },
      model: {
        type: "string",
        title: "Model",
        description: settings.model.description.replaceAll("`", ""),
        required: false,
        default: "",
      },
      anthropic_api_key: secret("Anthropic"),
      openai_api_key: secret("OpenAI"),
    },
    // What the native parts are for, and the first Node with SQLite in it.
    compatibility: { platforms: [process.platform], runtimes: { node: ">=22.13.0" } },
  };
}
