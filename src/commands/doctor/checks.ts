import { access, constants, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { modelChoice } from "../../agent/models/choose.ts";
import { folderProblem } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import { runProgram } from "../../core/child-process.ts";
import { DeepAgentError, errorMessage } from "../../core/errors.ts";
import { chooseExecutor } from "../compose/executors.ts";

/** One thing a run needs. */
export interface Check {
  name: string;
  ok: boolean;
  /** What was found, or what is wrong and what to do. */
  text: string;
}

const MIN_NODE = 20;
const SEARCH_TIMEOUT_MS = 5000;

export function checkNode(version: string): Check {
  const ok = Number(version.split(".")[0]) >= MIN_NODE;
  return { name: "Node", ok, text: ok ? version : `${version} is too old; install ${MIN_NODE} or later` };
}

export function checkWorkspace({ workspace }: Config, warnings: readonly string[]): Check {
  const name = "Workspace";
  if (workspace === undefined) return { name, ok: false, text: warnings.join("\n") };
  const problem = folderProblem(workspace);
  return { name, ok: problem === undefined, text: [problem ?? workspace, ...warnings].join("\n") };
}

/** Creates the folder when it is not there, as the server would. */
export async function checkDataDir({ dataDir }: Config): Promise<Check> {
  const name = "Data folder";
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await access(dataDir, constants.R_OK | constants.W_OK);
    await rm(await mkdtemp(join(dataDir, "doctor-")), { recursive: true });
    return { name, ok: true, text: dataDir };
  } catch (error) {
    return {
      name,
      ok: false,
      text: `${dataDir} cannot be written: ${errorMessage(error)}. Choose another --data-dir.`,
    };
  }
}

/** Looks at names and variables only; no request is made. */
export async function checkModel({ model }: Config, env: NodeJS.ProcessEnv): Promise<Check> {
  const choice = modelChoice({ model, env, lendable: true });
  if (!choice.ok) return { name: "Model", ok: false, text: choice.message };
  const endpoint = choice.endpoint === undefined ? "" : ` at ${choice.endpoint}`;
  return { name: "Model", ok: true, text: `${choice.spec}${endpoint} (${choice.why})` };
}

/** Whether the native module fits this Node. */
export async function checkStorage(): Promise<Check> {
  const name = "Storage";
  const { CAN_ABORT, repairAnywhere } = await import("../../storage/sqlite/driver.ts");
  const repair = (problem: string): Check => ({
    name,
    ok: false,
    text: `${problem}\nIn any folder: ${repairAnywhere()}`,
  });
  try {
    const { openDatabase } = await import("../../storage/sqlite/database.ts");
    const database = openDatabase(":memory:");
    const version: unknown = database.prepare("SELECT sqlite_version()").pluck().get();
    database.close();
    return CAN_ABORT
      ? repair(
          `better-sqlite3 12 can end this program at any time on Node ${process.versions.node}. Install Python, then its release 13 (or use Node 22).`,
        )
      : { name, ok: true, text: `SQLite ${String(version)}` };
  } catch (error) {
    return error instanceof DeepAgentError
      ? repair(error.message)
      : { name, ok: false, text: errorMessage(error) };
  }
}

/** Runs a command that does nothing in the sandbox. Without one a run still works, with less comfort. */
export async function checkCommands(config: Config): Promise<Check> {
  const name = "Commands";
  const choice = await chooseExecutor(config);
  const asked = (always: boolean): string =>
    always || config.approvals.execute === "all" ? "each approved by a person" : "without approval";
  switch (choice.kind) {
    case "sandbox":
      return { name, ok: true, text: `run in a sandbox (${choice.name}), ${asked(false)}` };
    case "host":
      return { name, ok: true, text: `run without a sandbox, ${asked(true)}\n${choice.reason}` };
    case "none":
      return { name, ok: config.execute.mode !== "sandbox", text: `are not run: ${choice.reason}` };
  }
}

export async function checkSearch(): Promise<Check> {
  const name = "Search";
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    const version = await runProgram(rgPath, ["--version"], { timeout: SEARCH_TIMEOUT_MS });
    return { name, ok: true, text: version.split("\n")[0] ?? "ripgrep" };
  } catch (error) {
    return {
      name,
      ok: false,
      text: `ripgrep cannot be run: ${errorMessage(error)}\nInstall again without --omit=optional.`,
    };
  }
}
