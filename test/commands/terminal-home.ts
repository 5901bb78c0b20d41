import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { openRuns } from "../../src/app/open-runs.ts";
import { loadConfig } from "../../src/config/load.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { ME } from "../runs/support.ts";
import { program } from "../support/harness-stdio.ts";
import { cleanEnv, runBin, type Outcome } from "./built-bin.ts";

/** A workspace and a data directory of a person who works in the terminal with the offline model. */
export interface TerminalHome {
  workspace: string;
  env: Record<string, string>;
  /** Runs the program in the workspace. */
  bin(...args: string[]): Promise<Outcome>;
  /** The same as a process of its own, which ends with the test at the latest. */
  start(...args: string[]): Promise<ChildProcessWithoutNullStreams>;
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
    bin: async (...args) => runBin(args, { cwd: workspace, env, program: await program() }),
    start: async (...args) => {
      const child = spawn(process.execPath, [await program(), ...args], {
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

/** A run that has stopped where it wants to write its report, made by a service that was closed again. */
export async function waitingRun({ workspace, env }: TerminalHome, principal = ME): Promise<string> {
  const { platform } = process;
  const loaded = loadConfig({ flags: {}, cwd: workspace, home: env["HOME"] ?? "", platform, env });
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  const service = await openRuns({ config: loaded.config, env, logger: silentLogger });
  try {
    const started = await service.as({ principal }).control.start({ task: "list every TODO" });
    if (!started.ok) throw new Error(started.message);
    const { id } = started.run;
    const signal = AbortSignal.timeout(60_000);
    for await (const _event of service.as({ principal }).watch.events(id, { after: 0, signal }))
      if ((await service.as({ principal }).read.view(id))?.run.status === "input_required") return id;
    throw new Error("The run did not wait.");
  } finally {
    await service.close();
  }
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
