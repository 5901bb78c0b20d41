/**
 * Writes what follows from project.json, which has the facts that only the owner of the project knows: members of
 * package.json, the beginning of the README, server.json for the MCP registry, the manifests of the plugins. With --check it only fails when a file
 * says something else.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { generatedFiles } from "./project/files.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

try {
  for (const [name, text] of Object.entries(generatedFiles(root))) {
    const target = join(root, name);
    const before = existsSync(target) ? readFileSync(target, "utf8") : undefined;
    if (before === text) continue;
    if (process.argv.includes("--check")) {
      console.error(`${name} is stale. Run: node scripts/project-facts.mjs`);
      process.exitCode = 1;
    } else if (text === undefined) rmSync(target);
    else {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
    }
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
