/**
 * Lets clients of other projects drive a run of the built program to its end over stdio, with the offline
 * model: AI SDK, LangChain MCP adapters and the command line of the MCP Inspector. They need Node 22 and
 * are installed into test/conformance/clients (about 400 MB) when they are not there.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const kit = join(root, "test/conformance/clients");
const node = join(kit, "node_modules/node/bin/node");
const bin = join(root, "dist/bin/deepagent-mcp.js");
const scratch = mkdtempSync(join(tmpdir(), "deepagent-clients-"));
const TASK = "List the files";

try {
  if (!existsSync(bin)) throw new Error("The program is not built: run npm run build first.");
  if (!existsSync(node)) {
    console.log("Installing the clients and Node 22 …");
    await output("npm", ["ci", "--no-audit", "--no-fund"]);
  }
  for (const [name, call] of Object.entries(clients())) {
    const printed = await output(node, call);
    const isDone = /run_[\w-]+ completed\./.test(printed) && printed.includes("I am the offline model");
    console.log(`${isDone ? "✓" : "✗"} ${name}`);
    if (isDone) continue;
    console.error(printed);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}

/** For each client what Node 22 is to run; all of them print the result. */
function clients() {
  const workspace = join(scratch, "workspace");
  mkdirSync(workspace);
  const settings = ["--model", "offline", "--workspace", workspace, "--data-dir", join(scratch, "data")];
  const server = [process.execPath, bin, "serve", ...settings];
  const inspector = join(kit, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
  const call = ["--method", "tools/call", "--tool-name", "run_deep_agent", "--tool-arg", `task=${TASK}`];
  return {
    "AI SDK": [join(kit, "ai-sdk.mjs"), TASK, ...server],
    "LangChain MCP adapters": [join(kit, "langchain.mjs"), TASK, ...server],
    "MCP Inspector --cli": [inspector, "--cli", ...server, ...call],
  };
}

function output(command, args) {
  return new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      { cwd: kit, timeout: 300_000, maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${command} ${args.join(" ")} failed: ${stderr || error.message}`));
      },
    );
  });
}
