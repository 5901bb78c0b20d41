/**
 * Packs the program as an MCP Bundle for this platform, which desktop clients install with one click:
 * build/deepagent-mcp-VERSION-PLATFORM-ARCH.mcpb. The official tool validates and packs it. Beside it stands the entry of
 * the MCP registry that names all bundles of this version in the folder, once it is known where a release is.
 *
 * `npm run mcpb`; it needs what `npm run build` makes. `--stage` stops before packing, and needs no other program.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFacts } from "./generate/facts.mjs";
import { json } from "./generate/manifests.mjs";
import { serverEntry } from "./generate/server-entry.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const build = join(root, "build");
const stage = join(build, "bundle");
const read = (name) => JSON.parse(readFileSync(join(root, name), "utf8"));

/** The tool has fifty packages behind it and is needed for a release only, so it is installed from its own lockfile. */
const TOOL_MANIFEST = "scripts/mcpb";
const TOOL_FOLDER = "node_modules/.cache/mcpb";
const TOOL_PACKAGE = "node_modules/@anthropic-ai/mcpb";
const tool = join(root, TOOL_FOLDER, TOOL_PACKAGE, "dist/cli/cli.js");

/** What the server reads; the library, its declarations and the documents stay out. */
const FILES = ["dist/bin", "dist/THIRD-PARTY-LICENSES.txt", "dist/sbom.cdx.json", "skills", "LICENSE"];
/** The only program beside the server. The Node versions that the manifest names bring SQLite. */
const PACKAGES = ["@vscode/ripgrep", `@vscode/ripgrep-${process.platform}-${process.arch}`];

/** `author` of npm in parts: "Name <mail> (page)". */
function authorOf(text) {
  const [, name, email, url] = /^([^<(]*?)\s*(?:<([^>]*)>)?\s*(?:\(([^)]*)\))?$/.exec(text) ?? [];
  return { name: name || text, ...(email ? { email } : {}), ...(url ? { url } : {}) };
}

/** A key that the client asks for. The server ignores an empty one. */
const secret = (provider) => ({
  type: "string",
  title: `Key of ${provider}`,
  description: `For models of ${provider}. The client keeps it in the keychain of the system.`,
  sensitive: true,
  required: false,
  default: "",
});

/** Manifest of the bundle: https://github.com/modelcontextprotocol/mcpb, MANIFEST.md, version 0.3. */
function bundleManifest({ repository, homepage, author }, manifest, settings) {
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
        // In `env`, Claude Desktop makes `a$b` of a folder named `a$$b`.
        args: ["${__dirname}/dist/bin/deepagent-mcp.js", "serve", "--workspace", value("workspace")],
        env: {
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
    // ripgrep is built for one platform, and Node brings SQLite from this version on.
    compatibility: { platforms: [process.platform], runtimes: { node: ">=22.13.0" } },
  };
}

function writeStage(facts, manifest, settings) {
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  for (const name of FILES) cpSync(join(root, name), join(stage, name), { recursive: true });
  for (const name of PACKAGES.filter((name) => existsSync(join(root, "node_modules", name)))) {
    const [source, target] = [root, stage].map((folder) => join(folder, "node_modules", name));
    cpSync(source, target, { recursive: true, dereference: true });
  }
  const { name, version, license, private: isPrivate, type } = manifest;
  const own = { name, version, license, type, ...(isPrivate ? { private: true } : {}) };
  writeFileSync(join(stage, "package.json"), json(own));
  writeFileSync(join(stage, "manifest.json"), json(bundleManifest(facts, manifest, settings)));
}

function pack(manifest) {
  if (!isToolCurrent()) installTool();
  const name = `${manifest.name.replace(/^.*\//, "")}-${manifest.version}-${process.platform}-${process.arch}.mcpb`;
  run(process.execPath, [tool, "validate", join(stage, "manifest.json")]);
  run(process.execPath, [tool, "pack", stage, join(build, name)]);
  return name;
}

/** npm writes what it installed in the form of the lockfile, without the entry of the folder itself. */
function isToolCurrent() {
  const installed = join(root, TOOL_FOLDER, "node_modules/.package-lock.json");
  if (!existsSync(tool) || !existsSync(installed)) return false;
  const version = (lockfile) => JSON.parse(readFileSync(lockfile, "utf8")).packages[TOOL_PACKAGE]?.version;
  return version(installed) === version(join(root, TOOL_MANIFEST, "package-lock.json"));
}

function installTool() {
  for (const name of ["package.json", "package-lock.json"])
    cpSync(join(root, TOOL_MANIFEST, name), join(root, TOOL_FOLDER, name));
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", TOOL_FOLDER]);
}

/** The bundles of this version that stand in the folder, for whichever platforms they are. */
function bundles({ version }) {
  return readdirSync(build)
    .filter((name) => name.endsWith(".mcpb") && name.includes(`-${version}-`))
    .sort()
    .map((name) => ({
      name,
      sha256: createHash("sha256")
        .update(readFileSync(join(build, name)))
        .digest("hex"),
    }));
}

/** npm is a script on Windows, which only a shell starts; nothing here has to be quoted for it. */
function run(command, args) {
  const shell = process.platform === "win32" && command === "npm";
  execFileSync(command, args, { cwd: root, shell, stdio: ["ignore", "ignore", "inherit"] });
}

try {
  const [facts, manifest] = [readFacts(root), read("package.json")];
  const settings = read("config.schema.json").properties;
  writeStage(facts, manifest, settings);
  if (!process.argv.includes("--stage")) {
    console.log(`build/${pack(manifest)}`);
    rmSync(stage, { recursive: true });
    const entry = serverEntry(facts, manifest, settings, bundles(manifest));
    if (entry) {
      writeFileSync(join(build, "server.json"), json(entry));
      console.log("build/server.json");
    }
  }
} catch (error) {
  console.error(`No bundle: ${error.message}`);
  process.exitCode = 1;
}
