import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { build } from "esbuild";
import type { Connector } from "./clients.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
/** Holds a folder for each test process that uses the program. */
const CACHE = join(ROOT, "node_modules/.cache/deepagent-e2e");
let bundled: Promise<string> | undefined;

/**
 * The program, bundled from the sources as they are now, where it finds the installed packages. A build
 * in `dist` may be older, or be replaced while a test runs.
 */
export function program(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  removeOrphans();
  const outdir = join(CACHE, String(process.pid));
  await build({
    absWorkingDir: ROOT,
    entryPoints: { "deepagent-mcp": "src/main.ts" },
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
    external: ["@langchain/*", "langchain", "better-sqlite3", "@vscode/ripgrep"],
  });
  return join(outdir, "deepagent-mcp.js");
}

/** Test processes are ended from outside and cannot clean up after themselves. */
function removeOrphans(): void {
  for (const pid of existsSync(CACHE) ? readdirSync(CACHE) : []) {
    if (!isAlive(Number(pid))) rmSync(join(CACHE, pid), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export interface StdioServer extends Connector {
  /** Process id of the connection made last. */
  pid(): number;
}

/** Reaches the program over stdio: each connection is a process of its own with this environment. */
export function stdioServer(script: string, env: Record<string, string>, user?: number): StdioServer {
  let last: { pid: number | null } | undefined;
  const program = [process.execPath, script];
  const become = ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups"];
  const [command = "", ...args] = user === undefined ? program : [...become, ...program];
  const parameters = { command, args, env, stderr: "ignore" as const };
  return {
    first: () => {
      const transport = new FirstStdio(parameters);
      last = transport;
      return transport;
    },
    modern: () => {
      const transport = new OneProcess(parameters);
      last = transport;
      return transport;
    },
    pid: () => {
      if (typeof last?.pid !== "number") throw new Error("no process is running");
      return last.pid;
    },
  };
}

/** The client asks a plain transport's version in a second process; a subclass it asks directly. */
class OneProcess extends ModernStdio {}
