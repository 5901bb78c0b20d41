/** The package `create-deepagent`, by which `npm create deepagent` makes a project: it goes out with the main one. */

/** Beyond what the main package is tested with. The version of the command is the one that docs/langchain.md tells of. */
const VERSIONS = { "@langchain/langgraph-cli": "1.4.2" };
const SHARED = [
  "@langchain/anthropic",
  "@langchain/core",
  "@langchain/langgraph",
  "@langchain/langgraph-checkpoint",
  "@langchain/langgraph-sdk",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/server",
  "langchain",
  "zod",
];

/** Its package.json, with the versions that projects get: those that the tests of the main package run with. */
export function starterManifest(manifest) {
  const { name, version, private: isPrivate, license, homepage, bugs, author, repository } = manifest;
  const versions = SHARED.map((shared) => [shared, manifest.devDependencies[shared]]);
  return {
    name: "create-deepagent",
    version,
    ...(isPrivate === undefined ? {} : { private: isPrivate }),
    description: `Writes a small project around ${name}: an agent with a tool, a skill and a memory of its own.`,
    keywords: ["agent", "create", "deep-agent", "mcp", "starter"],
    ...(homepage ? { homepage } : {}),
    ...(bugs ? { bugs } : {}),
    license,
    ...(author ? { author } : {}),
    ...(repository ? { repository: { ...repository, directory: "create" } } : {}),
    bin: { "create-deepagent": "create-deepagent.mjs" },
    files: ["create-deepagent.mjs", "templates"],
    type: "module",
    engines: { node: ">=20.12" },
    deepagent: { package: name, versions: { ...VERSIONS, ...Object.fromEntries(versions) } },
  };
}

/** The line that starts it: from a clone while the package is not on npm. */
export const starterCommand = ({ private: isPrivate }) =>
  isPrivate
    ? "node /path/to/deepagent-mcp/create/create-deepagent.mjs my-agent --template server"
    : "npm create deepagent my-agent -- --template server";
