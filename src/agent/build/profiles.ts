import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { BackendSource } from "../../backends/backend.ts";
import { CompositeBackend } from "../../backends/composite/composite.ts";
import { FilesystemBackend } from "../../backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../backends/policy.ts";
import { LocalShellBackend, type LocalShellOptions } from "../../backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../backends/stores/state.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { InterruptOn } from "../layers/human-in-the-loop.ts";

/** The settings of an agent that works on a folder, as data: copy one and change what you need. */
export interface AgentProfile {
  /** Set: commands run on this machine, in the folder, which files and commands name by its real path. */
  readonly shell?: Pick<LocalShellOptions, "timeout" | "maxOutputBytes" | "inheritEnv">;
  /** Larger files are not searched and not edited. Default 10. */
  readonly maxFileSizeMb?: number;
  readonly filesystem?: FilesystemOptions;
  readonly interruptOn: InterruptOn;
  readonly limits?: AgentLimits;
}

const GATES = { write_file: true, edit_file: true, execute: true } as const;

/**
 * `deepcowork`: a person and an agent at one folder, seven file tools with a shell of this machine, at most 25
 * model calls for a task. `production`: the folder at `/workspace/`, everything else in the thread, no commands,
 * small files and small results.
 */
export const PROFILES = {
  deepcowork: {
    shell: { timeout: 60, maxOutputBytes: 50_000, inheritEnv: true },
    filesystem: { tools: ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "execute"] },
    interruptOn: GATES,
    limits: { maxIterations: 25 },
  },
  production: { maxFileSizeMb: 5, filesystem: { evictTokens: 10_000 }, interruptOn: GATES },
} as const satisfies Record<string, AgentProfile>;

export type ProfileName = keyof typeof PROFILES;

/** The workplace of an agent. `folder`: its own name for it; `close` stops its programs. */
export interface Place {
  readonly backend: BackendSource;
  readonly folder: string;
  readonly skills: readonly string[];
  close(): Promise<void>;
}

const GLOBAL_SKILLS = "/skills/";
const WORKSPACE = "/workspace/";

/** The place that a profile describes. Skills of `globalSkills` are read-only; workspace skills take precedence. */
export function openPlace(
  { shell, maxFileSizeMb = 10 }: AgentProfile,
  workspaceDir: string,
  globalSkills: string,
): Place {
  const rootDir = resolve(workspaceDir);
  const hasGlobal = existsSync(globalSkills);
  const skillsOf = (folder: string): string[] => [
    ...(hasGlobal ? [GLOBAL_SKILLS] : []),
    ...(existsSync(join(rootDir, "skills")) ? [join(folder, "skills")] : []),
  ];
  const mounts: Record<string, BackendSource> = {};
  if (hasGlobal) {
    const global = new FilesystemBackend({ rootDir: globalSkills, virtualMode: true });
    mounts[GLOBAL_SKILLS] = new PolicyBackend(global, { readOnly: true });
  }
  if (shell) {
    const local = new LocalShellBackend({ ...shell, rootDir, maxFileSizeMb });
    const backend = hasGlobal ? new CompositeBackend(local, mounts) : local;
    return { backend, folder: rootDir, skills: skillsOf(rootDir), close: () => local.close() };
  }
  const files = new FilesystemBackend({ rootDir, virtualMode: true, maxFileSizeMb });
  const backend = new CompositeBackend(StateBackend, { ...mounts, [WORKSPACE]: files });
  return { backend, folder: WORKSPACE, skills: skillsOf(WORKSPACE), close: () => Promise.resolve() };
}
