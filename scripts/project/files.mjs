/** The files that are made of the facts of the project, and the parts of files that are. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFacts } from "./facts.mjs";
import { pluginFiles } from "./plugins.mjs";
import { readmeText } from "./readme.mjs";
import { serverEntry } from "./server-entry.mjs";
import { starterCommand, starterManifest } from "./starter.mjs";

/** Each file by its name, with the text it should have; `undefined`: there should be none. */
export function generatedFiles(root) {
  const read = (name) => (existsSync(join(root, name)) ? readFileSync(join(root, name), "utf8") : undefined);
  const facts = readFacts(root);
  const manifest = manifestWith(JSON.parse(read("package.json")), facts);
  const settings = JSON.parse(read("config.schema.json")).properties;
  const plugins = Object.entries(pluginFiles(facts, manifest));
  return {
    ...Object.fromEntries(plugins.map(([name, value]) => [name, value && json(value)])),
    "package.json": json(manifest),
    "package-lock.json": json(lockWith(JSON.parse(read("package-lock.json")), manifest)),
    "README.md": readmeText(read("README.md"), facts, manifest),
    "create/package.json": json(starterManifest(manifest)),
    "create/LICENSE": read("LICENSE"),
    ...Object.fromEntries(
      ["create/README.md", "docs/starter.md"].map((name) => [name, withCommand(read(name), manifest)]),
    ),
    "server.json": ((entry) => entry && json(entry))(serverEntry(facts, manifest, settings)),
  };
}

export const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** A text with the line that starts a project: the first of its code blocks. */
const withCommand = (text, manifest) =>
  text.replace(/(```sh\n).*\n/, (_, fence) => `${fence}${starterCommand(manifest)}\n`);

/** The members of package.json that come from the facts, where npm's own tools put them. */
function manifestWith(manifest, { repository, homepage, author, npmName, registryName }) {
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

/** The lock file names the package, too. */
function lockWith(lock, { name, version }) {
  const { "": own, ...packages } = lock.packages;
  return { ...lock, name, version, packages: { "": { ...own, name, version }, ...packages } };
}
