import type { InterruptOn } from "../../agent/agent.ts";
import { isAtOrBelow, validatePath, withoutSlash } from "../../backends/paths.ts";
import type { Config } from "../../config/schema.ts";
import { WORKSPACE_MOUNT } from "./mounts.ts";

const WRITE_TOOLS = ["write_file", "edit_file", "delete"] as const;

/**
 * Which tool calls a person approves: file changes as configured, and commands, unless they are sandboxed
 * and the configuration lets those run. `served` are folders on other servers, which are asked about like the
 * workspace.
 */
export function approvalGates(
  { write, execute }: Pick<Config["approvals"], "write" | "execute">,
  isSandboxed: boolean,
  served: readonly string[] = [],
): InterruptOn {
  const gate = {
    all: true,
    none: false,
    workspace: {
      when: ({ args }: { args: Record<string, unknown> }) => touches([WORKSPACE_MOUNT, ...served], args),
    },
  }[write];
  const asksForCommands = execute === "all" || !isSandboxed;
  return { ...Object.fromEntries(WRITE_TOOLS.map((tool) => [tool, gate])), execute: asksForCommands };
}

/**
 * Whether a call with these arguments may change something in one of the folders. True also for a folder around
 * them, and for arguments that do not say clearly where they point.
 */
export function touches(folders: readonly string[], args: Record<string, unknown>): boolean {
  // Models also write `path`, which the tools accept.
  const paths = [args["file_path"], args["path"]].filter((path) => path !== undefined);
  return paths.length === 0 || paths.some((path) => folders.some((folder) => isInOrAround(folder, path)));
}

function isInOrAround(folder: string, path: unknown): boolean {
  const valid = validatePath(path);
  return !valid.ok || isAtOrBelow(valid.path, folder) || isAtOrBelow(withoutSlash(folder), valid.path);
}
