/** Finds the folders of skills, subagents and commands outside the workspace that other programs read too. */
import { existsSync } from "node:fs";
import { join, relative, sep } from "node:path";
import folders from "../agent/layers/shared-folders.json" with { type: "json" };
import { type AgentFile, loadAgentFiles } from "../agent/build/agent-files.ts";
import type { Backend } from "../backends/backend.ts";
import { FilesystemBackend } from "../backends/filesystem/filesystem.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { LOCAL } from "../runs/run.ts";
import { type Owner, findRepository } from "./owned-places.ts";
import { WORKSPACE_MOUNT } from "./settings.ts";

export type SharedConfig = Pick<Config, "homeFolder" | "workspace" | "workspaceFolder" | "privatePaths">;

type SharedKind = keyof Pick<typeof folders, "skills" | "agents" | "commands">;

/**
 * Returns folders of this machine, and in `folders` those below it that exist, lowest priority first. `label` names
 * it in paths that the agent sees. They are the home folder, `~`, only for the person at this machine, then the folders from the root of the repository down to the
 * one above the workspace. The workspace itself is not among them. Folders whose links lead to other places than
 * their root are left out.
 */
export function sharedRoots(
  kind: SharedKind,
  { homeFolder, workspace, workspaceFolder }: SharedConfig,
  { principal }: Owner,
) {
  const { home, project } = folders[kind];
  const existing = (root: string, names: readonly string[], isAllowed: (place: string) => boolean) =>
    names.filter((name) => existsSync(join(root, name)) && isAllowed(realPath(join(root, name))));
  const roots = [];
  if (homeFolder !== undefined && principal === LOCAL)
    roots.push({
      root: homeFolder,
      label: "~",
      folders: existing(homeFolder, home, (place) => !isInside(place, homeFolder)),
    });
  // If people have folders of their own, the folders above them belong to others.
  const repository = findRepository({ workspace, workspaceFolder });
  const isWide = repository && homeFolder !== undefined && isInside(repository, homeFolder);
  const way = repository && !isWide ? relative(repository, realPath(workspace ?? "")) : "";
  for (const [level] of way === "" ? [] : way.split(sep).entries()) {
    const names = way.split(sep).slice(0, level);
    const root = join(repository ?? "", ...names);
    roots.push({
      root,
      label: ["repository", ...names].join("-"),
      folders: existing(root, project, (place) => isInside(repository ?? root, place)),
    });
  }
  return roots.filter((one) => one.folders.length > 0);
}

/** Backends over the shared folders of a kind, with the folders to read there, lowest priority first. */
export const sharedBackends = (kind: SharedKind, config: SharedConfig, owner: Owner) =>
  sharedRoots(kind, config, owner).map(({ root, folders: names }): [Backend, string[]] => {
    const { privatePaths: hidden = [] } = config;
    const backend = new FilesystemBackend({ rootDir: root, virtualMode: true, hidden });
    return [backend, names.map((name) => `/${name}`)];
  });

/** The subagents of all agent files, those of the workspace at `mount`; of two with one name that of the workspace counts, then the nearest. */
export async function readAgentFiles(
  config: SharedConfig,
  owner: Owner,
  files: Backend,
  log: Logger,
  mount = WORKSPACE_MOUNT,
): Promise<AgentFile[]> {
  const own = [files, workspaceFolders("agents", undefined, mount)] as const;
  const agents = new Map<string, AgentFile>();
  for (const [backend, names] of [...sharedBackends("agents", config, owner), own])
    for (const file of await loadAgentFiles(backend, names, log)) agents.set(file.name, file);
  return [...agents.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Folders of the workspace for files of a kind, lowest priority first. `within`: only those that exist there. */
export const workspaceFolders = (kind: SharedKind, within?: string, mount = WORKSPACE_MOUNT): string[] =>
  folders[kind].project
    .filter((folder) => within === undefined || existsSync(join(within, folder)))
    .map((folder) => `${mount}/${folder}`);
