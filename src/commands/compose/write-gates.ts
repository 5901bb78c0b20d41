import type { InterruptOn } from "../../agent/agent-core.ts";
import { isAtOrBelow, validatePath } from "../../backends/paths.ts";
import type { Config } from "../../config/schema.ts";
import { WORKSPACE_MOUNT } from "./mounts.ts";

const WRITE_TOOLS = ["write_file", "edit_file", "delete"] as const;

/**
 * Which tool calls a person approves: file changes as configured, and commands, unless they are sandboxed
 * and the configuration lets those run.
 */
export function approvalGates(
  { write, execute }: Pick<Config["approvals"], "write" | "execute">,
  isSandboxed: boolean,
): InterruptOn {
  const gate = {
    all: true,
    none: false,
    workspace: { when: ({ args }: { args: Record<string, unknown> }) => touchesWorkspace(args) },
  }[write];
  const asksForCommands = execute === "all" || !isSandboxed;
  return { ...Object.fromEntries(WRITE_TOOLS.map((tool) => [tool, gate])), execute: asksForCommands };
}

/**
 * Whether a call with these arguments may change something in the workspace. True also for a folder that
 * holds the workspace, and for arguments that do not say clearly where they point.
 */
export function touchesWorkspace(args: Record<string, unknown>): boolean {
  // Models also write `path`, which the tools accept.
  const paths = [args["file_path"], args["path"]].filter((path) => path !== undefined);
  return paths.length === 0 || paths.some((path) => isInOrAroundWorkspace(path));
}

function isInOrAroundWorkspace(path: unknown): boolean {
  const valid = validatePath(path);
  if (!valid.ok) return true;
  return isAtOrBelow(valid.path, WORKSPACE_MOUNT) || isAtOrBelow(WORKSPACE_MOUNT, valid.path);
}
