/** Finds the repository that a folder belongs to, for commands that see nothing but the folder. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { askGit } from "../../core/git.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { linkStatsAt } from "../../core/stats.ts";
import type { SandboxMount } from "./environment.ts";
import { gitPlaces } from "./starting-places.ts";

/** The mounts that Git needs besides the folder. */
export interface GitView {
  /** Commands may change them, without hooks and settings. */
  writable: SandboxMount[];
  readOnly: SandboxMount[];
  /** Place of a folder inside a repository, below a stand-in for the repository. */
  at?: string;
}

const STAND_IN = "/repository";
const NONE: GitView = { writable: [], readOnly: [] };

/**
 * The view for a worktree, or for a folder inside a repository. Inside a repository Git only reads: the other files
 * are not visible, so that a commit of everything would delete them. `root`: a real path; `at`: its mount.
 */
export function gitView(root: string, at: string): GitView {
  const kind = gitKind(root);
  if (kind === "folder") return NONE;
  if (kind === "file") {
    const common = commonFolder(root, at);
    if (common === undefined || isInside(root, common.folder)) return NONE;
    const isSafe = gitPlaces(common.folder).links.length === 0;
    return isSafe ? { writable: [common], readOnly: [] } : { writable: [], readOnly: [common] };
  }
  const home = realPath(homedir());
  let repository = dirname(root);
  while (gitKind(repository) === undefined && dirname(repository) !== repository)
    repository = dirname(repository);
  const own = { folder: join(repository, ".git"), at: join(STAND_IN, ".git") };
  const common = gitKind(repository) === "file" ? commonFolder(repository, STAND_IN) : own;
  if (gitKind(repository) === undefined || common === undefined || isInside(repository, home)) return NONE;
  return {
    writable: [],
    readOnly: [...new Set([own, common])],
    at: join(STAND_IN, relative(repository, root)),
  };
}

function gitKind(folder: string): "folder" | "file" | undefined {
  const stats = linkStatsAt(join(folder, ".git"));
  if (stats?.isFile() === true) return "file";
  return stats?.isDirectory() === true && isRepository(join(folder, ".git")) ? "folder" : undefined;
}

const isRepository = (folder: string): boolean =>
  ["HEAD", "objects", "refs"].every((name) => linkStatsAt(join(folder, name)) !== undefined);

/**
 * The repository of a worktree. An agent can write the file `.git`, so that it counts only if the repository names this
 * worktree, too.
 */
function commonFolder(worktree: string, at: string): SandboxMount | undefined {
  try {
    const target = /^gitdir: (.+)$/m.exec(readFileSync(join(worktree, ".git"), "utf8"))?.[1] ?? "";
    const own = realPath(resolve(worktree, target));
    const back = resolve(own, readFileSync(join(own, "gitdir"), "utf8").trim());
    const folder = dirname(dirname(own));
    const isMutual = realPath(back) === join(worktree, ".git") && basename(dirname(own)) === "worktrees";
    return isMutual && isRepository(folder) ? { folder, at: resolve(at, target, "../..") } : undefined;
  } catch {
    return undefined;
  }
}

/** The name and the address that Git writes into commits in this folder, as `env`, and if the person signs commits. */
export async function gitIdentity(folder: string): Promise<{ env: Record<string, string>; signs: boolean }> {
  const ask = async (...words: string[]): Promise<string> => {
    const asked = askGit(folder, ["config", ...words], { timeout: 5000 });
    return (await asked.catch(() => "")).trim();
  };
  const env: Record<string, string> = {};
  for (const name of ["name", "email"]) {
    const value = await ask("--get", `user.${name}`);
    if (value === "") continue;
    for (const role of ["AUTHOR", "COMMITTER"]) env[`GIT_${role}_${name.toUpperCase()}`] = value;
  }
  return { env, signs: (await ask("--type", "bool", "--get", "commit.gpgSign")) === "true" };
}
