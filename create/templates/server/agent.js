// The server with the settings of deepagent.json and the variables of .env, from whichever folder it is started:
// node agent.js [COMMAND ...], with the commands of deepagent-mcp; without one it serves a client over stdio.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

process.chdir(import.meta.dirname);
if (existsSync(".env")) process.loadEnvFile();
process.env.DEEPAGENT_CONFIG ||= "deepagent.json";
process.env.DEEPAGENT_WORKSPACE ||= join(import.meta.dirname, "workspace");
process.env.DEEPAGENT_SKILLS ||= join(import.meta.dirname, "skills");
if (process.argv.length === 2) process.argv.push("serve");

const manifest = createRequire(import.meta.url).resolve("deepagent-mcp/package.json");
const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
await import(pathToFileURL(join(dirname(manifest), bin["deepagent-mcp"])));
