/** Checks that a server makes before each start. Clients read the texts, so they name no path of this machine. */
import type { ModelChoice } from "../agent/models/choose.ts";
import { folderProblem } from "../config/paths.ts";
import { PROGRAM } from "../config/program.ts";
import type { Readiness } from "../runs/service.ts";
import { promptFileProblem } from "./instructions.ts";
import { otherModelProblem } from "./models.ts";
import type { RunSettings } from "./settings.ts";

/** Finds the first reason why no run can be started now. */
export async function startRefusal(
  settings: RunSettings,
  choice: ModelChoice,
): Promise<Readiness["refusal"]> {
  const { workspace } = settings.config;
  if (workspace === undefined) return { code: "workspace_missing", message: NO_WORKSPACE };
  if (folderProblem(workspace) !== undefined) return { code: "workspace_missing", message: WORKSPACE_GONE };
  const message = choice.ok ? otherModelProblem(settings.config, settings) : choice.message;
  if (message !== undefined) {
    const [key] = choice.ok ? [] : (choice.keys ?? []);
    const remedy = key === undefined ? {} : { remedy: `${PROGRAM} keys set ${key}` };
    return { code: "model_not_configured", message, ...remedy };
  }
  const problem = await promptFileProblem(settings.config);
  return problem === undefined
    ? undefined
    : { code: "configuration_invalid", message: `No run was started. ${problem}` };
}

const SET_WORKSPACE =
  'Set it in the server\'s configuration: --workspace DIR among its arguments, DEEPAGENT_WORKSPACE in its environment or "workspace" in its config file.';
const NO_WORKSPACE = `No run was started: the server has no workspace, the folder the agent works in. ${SET_WORKSPACE}`;
const WORKSPACE_GONE = `No run was started: the workspace folder no longer exists or cannot be opened. Restore it, or choose another. ${SET_WORKSPACE}`;
