/** The entry of the MCP registry: https://github.com/modelcontextprotocol/registry, docs/reference/server-json. */

const SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/** The registry allows 100 characters. */
const DESCRIPTION =
  "A durable deep agent for any client: plans, files, subagents, memory and human approval.";

/**
 * The entry with the package on npm and the bundles of a release; `undefined` while it is not known where those are.
 * A bundle is `{ name, sha256 }`: its file in the release, and the digest that clients compare.
 */
export function serverEntry({ repository, homepage, registryName }, manifest, settings, bundles = []) {
  if (!repository || !registryName) return undefined;
  const { name, version } = manifest;
  const inputs = inputsOf(settings);
  const npm = {
    registryType: "npm",
    registryBaseUrl: "https://registry.npmjs.org",
    identifier: name,
    version,
    runtimeHint: "npx",
    runtimeArguments: [{ type: "positional", value: "-y" }],
    transport: { type: "stdio" },
    ...inputs,
  };
  // A bundle has its command in itself, and asks for its values itself.
  const packed = bundles.map((bundle) => ({
    registryType: "mcpb",
    identifier: `${repository}/releases/download/v${version}/${bundle.name}`,
    version,
    fileSha256: bundle.sha256,
    transport: { type: "stdio" },
  }));
  return {
    $schema: SCHEMA,
    name: registryName,
    title: "Deep Agent",
    description: DESCRIPTION,
    version,
    repository: { url: repository, source: "github" },
    ...(homepage ? { websiteUrl: homepage } : {}),
    packages: [npm, ...packed],
  };
}

/** What a client asks its user for: the folder, the model and its key. */
function inputsOf({ workspace, model }) {
  const key = (name, provider) => ({
    name,
    description: `Key for models of ${provider}.`,
    format: "string",
    isRequired: false,
    isSecret: true,
  });
  return {
    packageArguments: [
      {
        type: "named",
        name: "--workspace",
        description: workspace.description,
        format: "filepath",
        isRequired: true,
      },
    ],
    environmentVariables: [
      key("ANTHROPIC_API_KEY", "Anthropic"),
      key("OPENAI_API_KEY", "OpenAI"),
      { name: "DEEPAGENT_MODEL", description: model.description, format: "string", isRequired: false },
    ],
  };
}
