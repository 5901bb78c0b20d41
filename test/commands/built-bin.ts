import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { INITIALIZE as OPENING } from "../support/clients-raw.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The program as it is shipped; `npm test` builds it before. */
export const BIN = join(ROOT, "dist/bin/deepagent-mcp.js");
if (!existsSync(BIN)) throw new Error("The program is not built: run npm run build before these tests.");

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** Default: the package's folder. */
  cwd?: string;
  /** Added to the environment, out of which DEEPAGENT_ settings and provider keys are taken. */
  env?: Record<string, string>;
  /** Written to standard input, which is then closed. */
  input?: string;
  /** Which program. Default: the one that is shipped. */
  program?: string;
}

/** Runs the program to its end. */
export function runBin(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [options.program ?? BIN, ...args],
      { cwd: options.cwd ?? ROOT, env: { ...cleanEnv(), ...options.env }, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        resolve({ code, stdout, stderr });
      },
    );
    child.stdin?.end(options.input ?? "");
  });
}

/** The environment without what would choose a model or change settings. */
export function cleanEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(DEEPAGENT|ANTHROPIC|OPENAI)_/.test(name)),
  );
}

/** One JSON-RPC line that opens a connection. */
export const INITIALIZE = `${OPENING}
`;
