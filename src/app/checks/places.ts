/** Checks folders, files and storage that the configuration names. */
import { constants, existsSync } from "node:fs";
import { access, mkdir, mkdtemp, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { allowedFolders } from "../../config/folders.ts";
import { folderProblem } from "../../config/paths.ts";
import { counted } from "../../tools/format.ts";
import type { Config } from "../../config/schema.ts";
import { StorageError, errorMessage } from "../../core/errors.ts";
import { silentLogger } from "../../core/logger.ts";
import { ServerMounts } from "../file-tree.ts";
import { promptFileProblem } from "../instructions.ts";
import { type Check, type Facts, type OwnFacts, closing, within } from "./check.ts";

export function checkWorkspace({ config, warnings }: Pick<Facts, "config" | "warnings">): Check {
  const name = "Workspace";
  const { workspace, folders, privatePaths } = config;
  const found = allowedFolders(folders, privatePaths).length;
  const choices =
    folders.length === 0 ? [] : [`${counted(found, "folder")} to choose from: ${folders.join(", ")}`];
  if (workspace === undefined) return { name, ok: found > 0, text: [...choices, ...warnings].join("\n") };
  const problem = folderProblem(workspace);
  return {
    name,
    ok: problem === undefined,
    text: [problem ?? workspace, ...choices, ...warnings].join("\n"),
  };
}

/** Tries whether runs can be stored in the data folder or the Postgres of the configuration. */
export const checkStorage = ({ config, env }: OwnFacts): Promise<Check> =>
  config.storage === undefined ? checkDataDir(config, env) : checkPostgres(config.storage, config, env);

/** Connects, makes missing tables as the server would, and tries the bucket for large values. */
async function checkPostgres(url: string, config: Config, env: Facts["env"]): Promise<Check> {
  const name = "Storage";
  try {
    const { openSharedStorage } = await import("../open-storage.ts");
    const storage = await openSharedStorage(url, { config, env, logger: silentLogger });
    await closing(storage, async () => {
      await storage.runs.assertWritable();
      await storage.tryLargeValues();
    });
    const { hostname, pathname } = new URL(url);
    const { storageS3: s3, storageRole: role } = config;
    const facts = [
      `Postgres at ${hostname}${pathname}, schema ${config.storageSchema}`,
      ...(s3 === undefined ? [] : [`Large values in S3, ${s3.bucket}`]),
      // Opening it with a role has tried whether the role is confined.
      role === undefined
        ? "Principals are kept apart by queries alone; storageRole adds row-level security."
        : `Row-level security confines each principal, as role ${role}.`,
    ];
    return { name, ok: true, text: facts.join("\n") };
  } catch (error) {
    return { name, ok: false, text: errorMessage(error) };
  }
}

/** Creates a missing folder and opens existing databases, as a run would, which converts those of earlier versions. */
async function checkDataDir(config: Config, env: Facts["env"]): Promise<Check> {
  const name = "Data folder";
  const { dataDir } = config;
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await access(dataDir, constants.R_OK | constants.W_OK);
    await rm(await mkdtemp(join(dataDir, "doctor-")), { recursive: true });
    if (existsSync(join(dataDir, "deepagent.db"))) {
      const { openStorage } = await import("../open-storage.ts");
      const storage = await openStorage({ config, env, logger: silentLogger });
      await closing(storage, () => storage.runs.assertWritable());
    }
    const { bavail, bsize } = await statfs(dataDir);
    const free = `${(bavail * bsize * 1e-9).toFixed(1)} GB free`;
    // Large results and copies of the workspace are in the folder, too.
    const note = bavail * bsize < 1e9 ? `Only ${free}: delete files, or choose another --data-dir.` : free;
    return { name, ok: true, text: `${dataDir}\n${note}` };
  } catch (error) {
    const text = errorMessage(error);
    const advice =
      error instanceof StorageError ? text : `cannot be written: ${text}. Choose another --data-dir.`;
    return { name, ok: false, text: `${dataDir}: ${advice}` };
  }
}

export async function checkPromptFile(config: Config): Promise<Check[]> {
  const { systemPromptFile: file } = config;
  if (file === undefined) return [];
  const problem = await promptFileProblem(config);
  const text = problem === undefined ? file : `${problem}\n${file}`;
  return [{ name: "Prompt file", ok: problem === undefined, text }];
}

export async function checkRules({ rules }: Pick<Config, "rules">): Promise<Check[]> {
  const count = rules.allow.length + rules.ask.length + rules.deny.length;
  if (count === 0) return [];
  const { ruleProblem } = await import("../../rules/rule.ts");
  const problem = ruleProblem(rules);
  return [{ name: "Rules", ok: problem === undefined, text: problem ?? `${count} in the configuration` }];
}

/** Finds read-only folders that do not exist: commands would miss the first kind, and the second protects nothing. */
export function checkReadOnly({ execute, files, workspace, workspaceFolder }: Config): Check[] {
  const name = "Read-only";
  const forCommands = execute.readOnly.flatMap((folder) => {
    const problem = folderProblem(folder);
    return problem === undefined ? [] : [{ name, ok: false, text: `execute.readOnly: ${problem}` }];
  });
  if (workspace === undefined || workspaceFolder !== undefined) return forCommands;
  const missing = files.readOnly.filter((path) => !existsSync(join(workspace, path)));
  const texts = missing.map(
    (path) => `files.readOnly: ${path} does not exist in the workspace, so it protects nothing`,
  );
  return [...forCommands, ...texts.map((text) => ({ name, ok: false, text }))];
}

/** Lists every folder on other servers once, as an agent of the local principal would see it. */
export async function checkMounts({ config, env }: OwnFacts): Promise<Check[]> {
  const served = new ServerMounts(config.mounts, env);
  const folders = Object.entries(served.of({ principal: "local", threadId: "doctor" }));
  try {
    return await Promise.all(
      folders.map(async ([path, folder]) => {
        const late = (time: string) => ({
          error: `no answer within ${time}; check that the server runs and the address is right`,
        });
        const { error: problem } = await within(8, async (signal) => folder.ls("/", { signal }), late);
        return { name: "Mount", ok: problem === undefined, text: `${path}: ${problem ?? "can be listed"}` };
      }),
    );
  } finally {
    const late = () => undefined;
    await within(1, () => served.close(), late);
  }
}
