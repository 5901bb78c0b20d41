/** Places that belong to one principal or one thread by configuration, and the rules about their files. */
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { IgnoreFiles } from "../backends/ignore-files.ts";
import { PolicyRules, SENSITIVE_GLOBS } from "../backends/policy-rules.ts";
import type { Config } from "../config/schema.ts";
import { copyOf } from "../proposals/workspace-copy.ts";
import { ConfigurationError } from "../core/errors.ts";
import { realPath } from "../core/real-path.ts";
import { linkStatsAt } from "../core/stats.ts";
import type { Principal } from "../runs/run.ts";
import { MEMORIES_MOUNT } from "./settings.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

/** Owner of files. Without a thread: those that all threads of the principal share. */
export interface Owner {
  principal: Principal;
  threadId?: string;
  /** Its workspace files are in its thread's copy. */
  changes?: "propose";
  /** Files of the copy that a person did not apply before, each with the reason if there is one. */
  notApplied?: readonly string[];
}

/** Names of principals that no file system takes for one another, and that no digest looks like. */
const PLAIN = /^[a-z0-9_+-][a-z0-9_.@+-]{0,63}$/;
/** Ids of threads as this program makes them: long and random. */
const THREAD = /^[\w-]{1,64}$/;

/** Puts the names of the owner into a template; `undefined` when it needs a thread and there is none. */
export function ownedPath(template: string, { principal, threadId }: Owner): string | undefined {
  if (threadId === undefined && template.includes("{thread}")) return undefined;
  return template.replaceAll(/\{(principal|thread)\}/g, (_, whose: string) => {
    const [name, plain] = whose === "principal" ? [principal, PLAIN] : [threadId ?? "", THREAD];
    // Other names become digests.
    return plain.test(name) ? name : `~${createHash("sha256").update(name).digest("hex").slice(0, 40)}`;
  });
}

/** The folder of an agent's notes about its project; `undefined` where all runs of a principal work in one. */
export function projectNotes(
  config: Pick<Config, "folders" | "principalFolders" | "workspace" | "workspaceFolder">,
  owner: Owner,
): string | undefined {
  const folder = originalOf(config, owner);
  if (folder === undefined || config.folders.length + Object.keys(config.principalFolders).length === 0)
    return undefined;
  const mark = createHash("sha256").update(realPath(folder)).digest("hex").slice(0, 8);
  return `${MEMORIES_MOUNT}/projects/${basename(folder).replaceAll(/[^\w.-]/g, "_")}-${mark}`;
}

/** Folder of the copies in which runs work that propose their changes. */
export const copiesFolder = ({ dataDir, proposals }: PlacesConfig): string =>
  proposals.folder ?? join(dataDir, "proposals");

export type PlacesConfig = Pick<Config, "workspace" | "workspaceFolder" | "dataDir" | "proposals">;

/**
 * Returns the folder that agents see at `/workspace/`: the owner's workspace or its copy. Returns undefined if there
 * is none.
 */
export function workspaceOf(config: PlacesConfig, owner: Owner): string | undefined {
  const { changes, threadId } = owner;
  if (changes === "propose" && threadId !== undefined && config.workspace !== undefined)
    return copyOf(copiesFolder(config), threadId);
  return originalOf(config, owner);
}

/**
 * Returns the owner's workspace, and creates it if needed. Returns undefined if there is none.
 *
 * @throws ConfigurationError when it cannot be created
 */
export function originalOf(
  { workspace, workspaceFolder }: Pick<Config, "workspace" | "workspaceFolder">,
  owner: Owner,
): string | undefined {
  if (workspace === undefined || workspaceFolder === undefined) return workspace;
  const own = ownedPath(workspaceFolder, owner);
  if (own === undefined) return undefined;
  const folder = join(workspace, own);
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    const code = String(Reflect.get(Object(error), "code"));
    throw new ConfigurationError("workspace_folder", fill(texts.folderNotMade, code), { cause: error });
  }
  return folder;
}

/**
 * The root of the repository around the owner's workspace, if it has the same user. A folder of a principal has none:
 * folders above it belong to others.
 */
export function findRepository(config: Pick<Config, "workspace" | "workspaceFolder">): string | undefined {
  const { workspace, workspaceFolder } = config;
  if (workspace === undefined || workspaceFolder !== undefined) return undefined;
  const start = realPath(workspace);
  let folder = start;
  for (let level = 0; level < 40 && folder !== dirname(folder); level += 1, folder = dirname(folder))
    if (linkStatsAt(join(folder, ".git")) !== undefined)
      return linkStatsAt(folder)?.uid === linkStatsAt(start)?.uid ? folder : undefined;
  return undefined;
}

/** The ignore files for the owner's workspace. Those of a copy are the original's, which its run cannot change. */
export function readIgnoreFiles(config: PlacesConfig, owner: Owner): IgnoreFiles | null {
  const workspace = originalOf(config, owner);
  return workspace === undefined ? null : IgnoreFiles.of(workspace, findRepository(config));
}

/** The rules of the setting `files` about the files of a workspace. */
export function rulesOf({ files: { hide, readOnly } }: Pick<Config, "files">): PolicyRules | undefined {
  const denyGlobs = hide.flatMap((glob) => (glob === "sensitive" ? SENSITIVE_GLOBS : [glob]));
  const hasRules = hide.length + readOnly.length > 0;
  return hasRules ? new PolicyRules({ denyGlobs, denyPrefixes: readOnly }) : undefined;
}
