/** package.json, the lock file, and the manifest of the starter, with the facts of the project in them. */

/** The text of a file with `value`; `undefined`, which means no file, stays that. */
export const json = (value) => value && `${JSON.stringify(value, null, 2)}\n`;

/** Puts the members that come from the facts where npm's own tools put them. */
export function manifestWith(manifest, { repository, homepage, author, npmName, registryName }) {
  const { homepage: _h, bugs: _b, repository: _r, author: _a, mcpName: _m, ...others } = manifest;
  const { name, version, private: isPrivate, description, keywords, license, ...rest } = others;
  return {
    name: npmName ?? name,
    version,
    ...(isPrivate === undefined ? {} : { private: isPrivate }),
    description,
    keywords,
    ...(homepage ? { homepage } : {}),
    ...(repository ? { bugs: { url: `${repository}/issues` } } : {}),
    license,
    ...(author ? { author } : {}),
    ...(repository ? { repository: { type: "git", url: `git+${repository}.git` } } : {}),
    ...rest,
    ...(registryName ? { mcpName: registryName } : {}),
  };
}

/** The lock file repeats the name and version of the package. */
export function lockWith(lock, { name, version }) {
  const { "": own, ...packages } = lock.packages;
  return { ...lock, name, version, packages: { "": { ...own, name, version }, ...packages } };
}

/** The command is not tested here: docs/langchain.md describes this version. */
const LANGGRAPH_CLI = { "@langchain/langgraph-cli": "1.4.2" };
/** Packages of new projects, in the versions that the tests of the main package run with. */
const STARTER_PACKAGES = [
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

/** The package.json of `create-deepagent`, by which `npm create deepagent` makes a project. */
export function starterManifest(manifest) {
  const { name, version, private: isPrivate, license, homepage, bugs, author, repository } = manifest;
  const packages = { ...manifest.devDependencies, ...manifest.dependencies };
  const tested = STARTER_PACKAGES.map((used) => [used, packages[used]]);
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
    deepagent: { package: name, versions: { ...LANGGRAPH_CLI, ...Object.fromEntries(tested) } },
  };
}
