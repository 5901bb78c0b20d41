import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { BIN, cleanEnv, runBin, type Outcome } from "./built-bin.ts";

/** A workspace and a data directory of a person who works in the terminal with the offline model. */
export interface TerminalHome {
  workspace: string;
  env: Record<string, string>;
  /** Runs the program in the workspace. */
  bin(...args: string[]): Promise<Outcome>;
  /** The same as a process of its own, which ends with the test at the latest. */
  start(...args: string[]): ChildProcessWithoutNullStreams;
}

export function terminalHome(): TerminalHome {
  const root = mkdtempSync(join(tmpdir(), "terminal-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const workspace = join(root, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "notes.md"), "# Notes\n\nTODO: buy tea\n");
  const env = { HOME: root, DEEPAGENT_DATA_DIR: join(root, "data"), DEEPAGENT_MODEL: "offline" };
  return {
    workspace,
    env,
    bin: (...args) => runBin(args, { cwd: workspace, env }),
    start: (...args) => {
      const child = spawn(process.execPath, [BIN, ...args], {
        cwd: workspace,
        env: { ...cleanEnv(), ...env },
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      return child;
    },
  };
}

const Line = z.looseObject({ run_id: z.string(), status: z.string() });

/** The rows of `runs list --json`. */
export async function listed(home: TerminalHome): Promise<z.output<typeof Line>[]> {
  const { stdout } = await home.bin("runs", "list", "--json");
  return linesOf(stdout).map((line) => Line.parse(JSON.parse(line)));
}

/** Starts a run that stops where it wants to write its report. */
export async function waitingRun(home: TerminalHome): Promise<string> {
  const { stdout, stderr } = await home.bin("run", "list every TODO", "--json");
  const last = linesOf(stdout).at(-1);
  if (last === undefined) throw new Error(`the run was not started: ${stderr}`);
  const run = Line.parse(JSON.parse(last));
  if (run.status !== "input_required") throw new Error(`the run is ${run.status}`);
  return run.run_id;
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
