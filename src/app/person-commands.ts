/** The commands and skills that a person may start, of the workspace, the folders above it and the home folder. */
import { loadCommands } from "../agent/layers/command-files.ts";
import { loadSkills } from "../agent/layers/skill-files.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import { FileTree, sharedBackends, workspaceFolders } from "./file-tree.ts";
import type { Owner } from "./owned-places.ts";

/** Reads the files again on each call. Of two commands with one name, that of the workspace counts. */
export async function readPersonCommands(config: Config, owner: Owner, log: Logger) {
  const tree = new FileTree(config);
  const files = tree.mounts(owner);
  const skills = await loadSkills(files, tree.skillSources(owner), log);
  const places = [
    ...sharedBackends("commands", config, owner),
    [files, workspaceFolders("commands")] as const,
  ];
  return loadCommands(places, files, Object.values(skills), log);
}
