/** Checks the place where commands of the agent run. */
import { sandboxProblem } from "../../backends/sandbox/create-sandbox.ts";
import type { Config } from "../../config/schema.ts";
import { chooseExecutor } from "../executors.ts";
import type { Check } from "./check.ts";

const name = "Commands";

/** Runs a command that does nothing in the sandbox of this machine. A run also works without a sandbox. */
export async function checkCommands(config: Config, platform?: NodeJS.Platform): Promise<Check> {
  const [missing] = await checkSandbox(config, true);
  if (missing !== undefined) return missing;
  const choice = await chooseExecutor(config, platform);
  const { approvals, execute } = config;
  const asked = (always: boolean): string =>
    always || approvals.execute === "all" ? "each approved by a person" : "without approval";
  const isRequired = execute.mode === "sandbox" || execute.sandbox?.provider === "bubblewrap";
  switch (choice.kind) {
    case "sandbox":
      return { name, ok: true, text: `run in a sandbox (${choice.name}), ${asked(false)}` };
    case "host":
      return { name, ok: true, text: `run without a sandbox, ${asked(true)}\n${choice.reason}` };
    case "none":
      return { name, ok: execute.mode === "off" || !isRequired, text: `are not run: ${choice.reason}` };
  }
}

/** Finds the part that the configured sandbox lacks. `isThorough`: also asks the service of a container. */
export async function checkSandbox({ execute: { mode, sandbox } }: Config, isThorough: boolean) {
  if (mode === "off" || sandbox === undefined) return [];
  const problem = await sandboxProblem(sandbox, isThorough);
  return problem === undefined ? [] : [{ name, ok: false, text: `execute.sandbox: ${problem}` }];
}
