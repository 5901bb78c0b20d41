/** The commands and skills that a person may start, of the workspace, the folders above it and the home folder. */
import { type PersonCommand, loadCommands, skillCommands } from "../agent/layers/command-files.ts";
import shared from "../agent/layers/shared-folders.json" with { type: "json" };
import { MOST_READ, loadSkills } from "../agent/layers/skill-files.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import { FileTree } from "./file-tree.ts";
import type { Owner } from "./owned-places.ts";
import { WORKSPACE_MOUNT } from "./settings.ts";
import { sharedBackends } from "./shared-folders.ts";

/** Reads the files again on each call. Of two commands with one name, that of the workspace counts. */
export async function readPersonCommands(
  config: Config,
  owner: Owner,
  log: Logger,
): Promise<PersonCommand[]> {
  const tree = new FileTree(config);
  const files = tree.mounts(owner);
  const commands = new Map<string, PersonCommand>();
  const own = shared.commands.project.map((folder) => `${WORKSPACE_MOUNT}/${folder}`);
  for (const [backend, folders] of [...sharedBackends("commands", config, owner), [files, own] as const])
    for (const command of await loadCommands(backend, folders, log)) commands.set(command.name, command);
  const skills = Object.values(await loadSkills(files, tree.skillSources(owner), log, MOST_READ));
  for (const command of await skillCommands(files, skills)) commands.set(command.name, command);
  // Clients show them in a menu.
  return [...commands.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, 200);
}
