/** Decides which calls of a run a person approves; also where the settings would ask about nothing. */
import { join } from "node:path";
import type { InterruptOn } from "../agent/agent.ts";
import { isAtOrBelow, stripPrefix, validatePath } from "../backends/paths.ts";
import { isStartingPath } from "../backends/sandbox/starting-places.ts";
import type { Config } from "../config/schema.ts";
import { realPath } from "../core/real-path.ts";
import { type MountedExecutor, isIsolated } from "./executors.ts";
import { type Owner, type PlacesConfig, workspaceOf } from "./owned-places.ts";
import { WORKSPACE_MOUNT, WRITE_TOOLS, approvalGates, pathsOf } from "./settings.ts";

/** The calls of a run that a person approves. `served`: folders on other servers. */
export const runGates = (
  config: PlacesConfig & Pick<Config, "approvals">,
  owner: Owner,
  { mounted, served }: { mounted: MountedExecutor | undefined; served: readonly string[] },
): InterruptOn => {
  const { approvals } = config;
  // A person reviews the changes of a copy as a whole, and nothing starts programs from there.
  if (owner.changes === "propose")
    return approvalGates(approvals, isIsolated(mounted), { served, isCopy: true });
  return {
    ...approvalGates(approvals, isIsolated(mounted), { served }),
    ...starterGates(approvals, mounted, workspaceOf(config, owner)),
  };
};

/**
 * Gates over those of `approvals.write: none` and `approvals.execute: unsandboxed`. Sandboxed commands cannot change
 * such files, so that they are asked about only while the sandbox cannot protect them.
 */
function starterGates(
  { write, execute }: Config["approvals"],
  mounted: MountedExecutor | undefined,
  workspace: string | undefined,
): InterruptOn {
  const changes = { when: ({ args }: { args: Record<string, unknown> }) => changesStarter(workspace, args) };
  const isUnasked = execute === "unsandboxed" && isIsolated(mounted);
  const commands = { when: () => mounted?.executor.approvalReason?.() !== undefined };
  return {
    ...(write === "none" ? Object.fromEntries(WRITE_TOOLS.map((tool) => [tool, changes])) : {}),
    ...(isUnasked ? { execute: commands } : {}),
  };
}

/** By the name of the path, and by the place that links lead to. */
function changesStarter(workspace: string | undefined, args: Record<string, unknown>): boolean {
  if (workspace === undefined) return false;
  const root = realPath(workspace);
  return pathsOf(args).some((path) => {
    const valid = validatePath(path);
    if (!valid.ok || !isAtOrBelow(valid.path, WORKSPACE_MOUNT)) return false;
    const named = join(root, stripPrefix(WORKSPACE_MOUNT, valid.path));
    return isStartingPath(root, named) || isStartingPath(root, realPath(named));
  });
}
