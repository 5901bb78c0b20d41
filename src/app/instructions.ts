import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, relative } from "node:path";
import type { InstructionOptions } from "../agent/layers/instruction-files.ts";
import { FilesystemBackend } from "../backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../backends/policy.ts";
import type { IgnoreFiles } from "../backends/ignore-files.ts";
import { isAtOrBelow, stripPrefix } from "../backends/paths.ts";
import { folderProblem } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { defined } from "../core/unknown.ts";
import { ConfigurationError, errorMessage } from "../core/errors.ts";
import { realPath } from "../core/real-path.ts";
import { LOCAL } from "../runs/run.ts";
import type { Owner, PlacesConfig } from "./owned-places.ts";
import {
  readIgnoreFiles,
  originalOf,
  findRepository,
  projectNotes,
  rulesOf,
  workspaceOf,
} from "./owned-places.ts";
import { WORKSPACE_MOUNT } from "./settings.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

/** Limits them, because every model call carries all of them. */
const LONGEST_INSTRUCTIONS = 100_000;

/** Returns the instructions of a run: configured ones with the facts about its workspace, and the folders that have others. */
export async function instructionsFor(
  config: Parameters<typeof loadInstructions>[0] &
    Parameters<typeof instructionPlaces>[0] &
    Parameters<typeof projectNotes>[0],
  owner: Owner & { notApplied?: readonly string[] },
  home: string | undefined,
  ignored: IgnoreFiles | null,
): Promise<{ systemPrompt?: string; instructions?: InstructionOptions }> {
  const { changes, notApplied = [] } = owner;
  const notes = projectNotes(config, owner);
  const earlier = [texts.notApplied, ...notApplied.map((one) => `- ${one}`)];
  const parts = [
    await loadInstructions(config),
    notes && fill(texts.projectNotes, notes),
    ...(changes === "propose" ? [texts.worksOnCopy] : []),
    ...(changes === "propose" && notApplied.length > 0 ? [earlier.join("\n")] : []),
  ].filter((part) => part !== undefined);
  const instructions = instructionPlaces(config, owner, home, ignored);
  return defined({ systemPrompt: parts.length > 0 ? parts.join("\n\n") : undefined, instructions });
}

/** Folders with instructions for the run. Those of the home folder are for the person at this machine only. */
export function instructionPlaces(
  config: PlacesConfig & Pick<Config, "homeFiles" | "privatePaths" | "files">,
  owner: Owner,
  home: string = homedir(),
  ignored = readIgnoreFiles(config, owner),
): InstructionOptions | undefined {
  const workspace = originalOf(config, owner);
  if (workspace === undefined) return undefined;
  const { privatePaths: hidden = [], homeFiles } = config;
  const openFolder = (rootDir: string) => new FilesystemBackend({ rootDir, virtualMode: true, hidden });
  const repositoryFiles = (folder: string) => new PolicyBackend(openFolder(folder), rulesOf(config) ?? {});
  const [root, place] = [findRepository(config), realPath(workspace)];
  const path = root === undefined ? "/" : `/${relative(root, place).replaceAll("\\", "/")}`;
  const shown = workspaceOf(config, owner) ?? workspace;
  return {
    folder: WORKSPACE_MOUNT,
    exists: (at) => {
      const way = stripPrefix(path, at);
      const above = join(root ?? shown, at);
      const place = isAtOrBelow(at, path) ? join(shown, way) : above;
      return existsSync(at.startsWith("~") ? join(home, at.slice(1)) : place);
    },
    ...(root === undefined || path === "/" ? {} : { repository: { files: repositoryFiles(root), path } }),
    ...(owner.principal === LOCAL && folderProblem(home) === undefined
      ? { home: { files: openFolder(home), isShared: !homeFiles } }
      : {}),
    ...(ignored && { isPrivate: (file) => ignored.isAsked(stripPrefix(WORKSPACE_MOUNT, file)) }),
  };
}

/** The configured instructions, if there are any. Throws `ConfigurationError` for a file that cannot be read. */
export async function loadInstructions({
  systemPrompt,
  systemPromptFile: file,
}: Pick<Config, "systemPrompt" | "systemPromptFile">): Promise<string | undefined> {
  if (file === undefined) return systemPrompt;
  const broken = (problem: string): ConfigurationError =>
    new ConfigurationError("system_prompt_file", `The file of systemPromptFile ${problem}`);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw broken(`cannot be read (${error.code}). Restore it, or correct the setting.`);
  });
  if (text.length > LONGEST_INSTRUCTIONS) throw broken(fill(texts.instructionsTooLong, LONGEST_INSTRUCTIONS));
  return systemPrompt === undefined ? text : `${systemPrompt}\n\n${text}`;
}

/** The reason why a run could not read its instructions. It names no path, so clients may see it. */
export const promptFileProblem = (
  config: Parameters<typeof loadInstructions>[0],
): Promise<string | undefined> => loadInstructions(config).then(() => undefined, errorMessage);
