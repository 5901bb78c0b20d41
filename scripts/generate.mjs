/**
 * Writes every file that follows from the sources, from package.json and from project.json, which has the facts that
 * only the owner of the project knows. With --check it writes nothing, and fails when a file says something else.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { apiPage } from "./generate/api-page.mjs";
import { clientsPage } from "./generate/clients-page.mjs";
import { configurationPage, configurationSchema } from "./generate/configuration.mjs";
import { readFacts } from "./generate/facts.mjs";
import { json, lockWith, manifestWith, starterManifest } from "./generate/manifests.mjs";
import { pluginFiles } from "./generate/plugins.mjs";
import { serverEntry } from "./generate/server-entry.mjs";
import { modelsText, readmeText, securityText, starterText } from "./generate/texts.mjs";
import { loadSources } from "./sources.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined);

/** Each file with the text that it should have; `undefined`: there should be no such file. */
async function generatedFiles() {
  const facts = readFacts(root);
  const manifest = manifestWith(JSON.parse(read("package.json")), facts);
  const sources = await loadSources(`
    export * from "./src/cli/clients/catalogue.ts";
    export * from "./src/cli/clients/entries.ts";
    export * from "./src/config/schema.ts";
    export * from "./src/config/settings.ts";
    export { openApi } from "./src/server/api/openapi.ts";
    export { CLIENTS, resultForm } from "./src/server/calls/known-clients.ts";
    export { toJSONSchema } from "zod";
  `);
  const schema = configurationSchema(sources);
  return [
    { path: "docs/configuration.md", text: () => configurationPage(schema, sources) },
    { path: "config.schema.json", text: () => json(schema) },
    { path: "docs/api.md", text: () => apiPage(read("docs/api.md"), sources) },
    { path: "docs/clients.md", text: () => clientsPage(sources, manifest) },
    { path: "package.json", text: () => json(manifest) },
    {
      path: "package-lock.json",
      text: () => json(lockWith(JSON.parse(read("package-lock.json")), manifest)),
    },
    { path: "README.md", text: () => readmeText(read("README.md"), facts, manifest) },
    {
      path: "docs/models.md",
      text: () =>
        modelsText(
          read("docs/models.md"),
          JSON.parse(read("src/agent/models/profiles/profiles.json")).providers,
        ),
    },
    { path: "SECURITY.md", text: () => securityText(read("SECURITY.md"), facts) },
    { path: "server.json", text: () => json(serverEntry(facts, manifest, schema.properties)) },
    { path: "create/package.json", text: () => json(starterManifest(manifest)) },
    { path: "create/LICENSE", text: () => read("LICENSE") },
    ...["create/README.md", "docs/starter.md"].map((path) => ({
      path,
      text: () => starterText(read(path), manifest),
    })),
    ...Object.entries(pluginFiles(facts, manifest)).map(([path, value]) => ({
      path,
      text: () => json(value),
    })),
  ];
}

function write(path, text) {
  const target = join(root, path);
  if (text === undefined) return rmSync(target);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

try {
  for (const { path, text } of await generatedFiles()) {
    const wanted = text();
    if (read(path) === wanted) continue;
    if (process.argv.includes("--check")) {
      console.error(`${path} is stale. Run: node scripts/generate.mjs`);
      process.exitCode = 1;
    } else write(path, wanted);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
