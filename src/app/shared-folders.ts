/** Finds the folders of skills, subagents and commands outside the workspace that other programs read too. */
import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import folders from "../agent/layers/shared-folders.json" with { type: "json" };
import type { Config } from "../config/schema.ts";
import { isInside, realPath, repositoryAround } from "../core/real-path.ts";
import { LOCAL } from "../runs/run.ts";
import type { Owner } from "./owned-places.ts";

/** A folder of this machine, and those below it that exist, lowest priority first. */
interface SharedRoot {
  root: string;
  /** Names it in paths that the agent sees: `~` for the home folder. */
  label: string;
  folders: string[];
}

/**
 * The home folder, only for the person at this machine, then the folders from the root of the repository down to the
 * one above the workspace. The workspace itself is not among them. Folders whose links lead to other places than
 * their root are left out.
 */
export function sharedRoots(
  kind: "skills" | "agents" | "commands",
  { homeFolder, workspace, workspaceFolder }: Pick<Config, "homeFolder" | "workspace" | "workspaceFolder">,
  { principal }: Owner,
): SharedRoot[] {
  const { home, project } = folders[kind];
  const existing = (
    root: string,
    names: readonly string[],
    isAllowed: (place: string) => boolean,
  ): string[] =>
    names.filter((name) => existsSync(join(root, name)) && isAllowed(realPath(join(root, name))));
  const isOwn = homeFolder !== undefined && principal === LOCAL;
  const own = isOwn
    ? [
        {
          root: homeFolder,
          label: "~",
          folders: existing(homeFolder, home, (place) => !isInside(place, homeFolder)),
        },
      ]
    : [];
  // Where people have folders of their own, what is above them belongs to others.
  const folder = workspace === undefined || workspaceFolder !== undefined ? undefined : realPath(workspace);
  const repository = folder && repositoryAround(folder);
  if (
    folder === undefined ||
    repository === undefined ||
    (homeFolder !== undefined && isInside(repository, homeFolder))
  )
    return own;
  const above: string[] = [];
  for (let at = folder; at !== repository; at = dirname(at)) above.unshift(dirname(at));
  const roots = above.map((root) => ({
    root,
    label: ["repository", ...relative(repository, root).split(sep)].filter((name) => name !== "").join("-"),
    folders: existing(root, project, (place) => isInside(repository, place)),
  }));
  return [...own, ...roots].filter((one) => one.folders.length > 0);
}
