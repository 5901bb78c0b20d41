/** Derives the limits, environment and mounts of runs from the configuration. */
import { basename, join } from "node:path";
import { z } from "zod";
import type { AgentLimits } from "../agent/contracts/limits.ts";
import { type ModelChoice, OFFLINE } from "../agent/models/choose.ts";
import type { Config } from "../config/schema.ts";
import { orElse } from "../core/errors.ts";
import { defined } from "../core/unknown.ts";
import type { Logger } from "../core/logger.ts";
import { realPath } from "../core/real-path.ts";
import type { Holds } from "../runs/shares.ts";
import type { Storage } from "../storage/storage.ts";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { statsAt } from "../core/stats.ts";

export interface RunSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** True if MCP clients can lend their models. Default false. */
  lendable?: boolean;
  /** True if this process works on runs; false if it only looks and decides. Default true. */
  works?: boolean;
  /** Opens the storage, which is closed with the runs. Default: the configured one. */
  storage?: () => Promise<Storage>;
  /** True if this process deletes runs as configured, now and every hour, and embeds memories. Default true. */
  keepsHouse?: boolean;
  /** True if this process starts the runs of schedules. Default false. */
  startsSchedules?: boolean;
  /** The page of a run, at an address without secrets. Default: there is none. */
  pageOf?: (runId: string) => string | undefined;
  /** Checks tokens that subscriptions were made with. Default: their messages are left to processes that can. */
  holds?: Holds;
}

const environmentSchema = z.object({
  workspace: z.string(),
  kind: z.string(),
  folder: z.unknown().optional(),
});
const parseEnvironment = (environment: string) => environmentSchema.parse(JSON.parse(environment));

/**
 * Describes where a run can continue. Runs continue next to their files: with a shared storage, on machines with the
 * same folder, which its mark identifies. A run that a language model began does not continue with the offline rules,
 * nor the other way round; another language model may continue it.
 */
export function environmentOf({ workspace = "", storage }: Config, choice: ModelChoice): string {
  const kind = choice.ok && choice.provider === OFFLINE ? OFFLINE : "model";
  const environment = JSON.stringify({ workspace: workspace === "" ? "" : realPath(workspace), kind });
  return storage === undefined ? environment : inSharedStorage(environment);
}

/** The environment of a run that comes from files of this machine, where its storage is shared. */
export function inSharedStorage(environment: string): string {
  const { workspace, kind } = parseEnvironment(environment);
  return JSON.stringify({ workspace, kind, ...(workspace === "" ? {} : { folder: folderMark(workspace) }) });
}

/** True if one of the others has another folder at the same path, so they cannot continue each other's runs. */
export function hasOtherFolder(environment: string, others: readonly string[]): boolean {
  const { workspace, folder } = parseEnvironment(environment);
  return others.some((one) => {
    const other = parseEnvironment(one);
    return workspace !== "" && other.workspace === workspace && other.folder !== folder;
  });
}

/** Flags with which another process can continue a run: its folder and its kind of model. */
export function environmentFlags(environment: string, isModelGiven: boolean): string[] {
  const { workspace, kind } = parseEnvironment(environment);
  return [
    ...(workspace === "" ? [] : ["--workspace", workspace]),
    ...(kind === OFFLINE && !isModelGiven ? ["--model", OFFLINE] : []),
  ];
}

/** The folder that a run works in; `undefined`: it has none. */
export function workspaceOf(environment: string): string | undefined {
  const { workspace } = parseEnvironment(environment);
  return workspace === "" ? undefined : workspace;
}

export function folderName(environment: string): string | undefined {
  const workspace = workspaceOf(environment);
  return workspace === undefined ? undefined : basename(workspace) || undefined;
}

/** Returns a check that is true if a run of an environment works in this workspace. */
export function worksIn(workspace = ""): (environment: string) => boolean {
  const folder = workspace === "" ? "" : realPath(workspace);
  return (environment) => parseEnvironment(environment).workspace === folder;
}

/** A bucket as configured, with the keys that its variables hold. */
export function bucketOf(
  { accessKeyIdVariable: id, secretAccessKeyVariable: secret, ...address }: NonNullable<Config["storageS3"]>,
  env: RunSettings["env"],
) {
  const [accessKeyId, secretAccessKey] = [id && env[id], secret && env[secret]];
  const isGiven = accessKeyId !== undefined && secretAccessKey !== undefined;
  return { ...address, ...(isGiven ? { credentials: { accessKeyId, secretAccessKey } } : {}) };
}

/** Location of a shared storage's large values, if they are stored outside of it. */
export const largeValuesOf = ({ storageS3 }: Pick<Config, "storageS3">, env: RunSettings["env"]) =>
  storageS3 && bucketOf(storageS3, env);

export function limitsOf({ limits }: Config): AgentLimits {
  const { parallelSubagents, parallelTools, repeatedTurns, subagentDepth, listedCharacters } = limits;
  const { modelCalls, toolCalls, tokens, costUsd, prices, workTime, toolTime, modelPatience } = limits;
  const wallTimeMs = workTime && workTime * 1000;
  const toolTimeoutMs = toolTime && toolTime * 1000;
  return {
    parallelSubagents,
    parallelTools,
    repeatedTurns,
    subagentDepth,
    listedCharacters,
    modelPatienceMs: modelPatience * 1000,
    ...defined({ maxIterations: modelCalls, toolCalls, tokens, costUsd, prices, wallTimeMs, toolTimeoutMs }),
  };
}

/** Mount point of the shared folders in an agent's tree of files. */
export const WORKSPACE_MOUNT = "/workspace";
/** Files of a sandbox that does not see the workspace. */
export const SANDBOX_MOUNT = "/sandbox";
export const MEMORIES_MOUNT = "/memories";
export const SKILLS_MOUNT = "/skills";

/**
 * Returns a mark that is equal on every machine that sees this folder, and differs elsewhere. It differs for a copy
 * of the folder too, and for an empty folder at an equal path. The mark combines the number of the folder in its file
 * system with a file in it, which is created if missing. In a read-only folder, only the number counts; likewise in a
 * folder whose links would lead to the file.
 */
export function folderMark(folder: string): string {
  const number = statsAt(folder)?.ino ?? 0;
  return `${number}/${readMark(folder) ?? ""}`;
}

function readMark(folder: string): string | undefined {
  const own = join(realPath(folder), ".deepagent");
  const file = join(own, "folder-id");
  // Fails if it exists, or if the folder is read-only.
  orElse(() => mkdirSync(own), undefined);
  if (realPath(file) !== file) return undefined;
  orElse(() => writeFileSync(file, `${randomUUID()}\n`, { flag: "wx" }), undefined);
  return orElse(() => /^[\w-]{36}/.exec(readFileSync(file, "utf8"))?.[0], undefined);
}
