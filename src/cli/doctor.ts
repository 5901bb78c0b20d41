/** Checks what the program needs on this machine and in this configuration. */
import { access, constants, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type McpToolSet, leftOutText, openMcpTools } from "../agent/mcp-tools/open-mcp-tools.ts";
import {
  CLIENT,
  type Environment,
  type ModelChoice,
  OFFLINE,
  PROVIDERS,
  modelChoice,
  variable,
} from "../agent/models/choose.ts";
import { embedderProblem } from "../agent/models/embeddings.ts";
import { packageProblem, packagesFolder } from "../agent/models/packages.ts";
import { chooseExecutor } from "../app/executors.ts";
import { withStoredKeys } from "../app/stored-keys.ts";
import { hasDescriptorPaths } from "../backends/filesystem/handles.ts";
import { loadConfig } from "../config/load.ts";
import { type HostFacts, folderProblem, packageVersion } from "../config/paths.ts";
import { commandLine } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { runProgram } from "../core/child-process.ts";
import { DeepAgentError, errorMessage } from "../core/errors.ts";
import { silentLogger } from "../core/logger.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type Check, checkAgentFiles, checkSubagentTools } from "./doctor-files.ts";
import { colorsFor } from "./terminal/text.ts";

/** Prints one line for each check; exit code 1 when one of them failed. */
export async function runDoctor({ flags, host }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  const checks: Check[] = [checkNode(process.versions.node), ...checkPlatform(host.platform)];
  if (loaded.ok) {
    const { config, warnings } = loaded;
    checks.push({ name: "Configuration", ok: true, text: "valid" });
    checks.push(checkWorkspace(config, warnings), await checkPlace(config, host.env));
    const { env, found, problem } = await withStoredKeys(config, host.env);
    checks.push(withRemedy(await checkModel(config, env), { config, env, host, problem }));
    checks.push(...checkOtherModels(config, env), ...checkEmbeddings(config, env));
    checks.push(...checkKeys(config, env, found));
    checks.push(await checkCommands(config), ...(await checkTools(config, host.env)));
    checks.push(...(await checkAgentFiles(config, env)));
  } else {
    checks.push(...loaded.problems.map((text) => ({ name: "Configuration", ok: false, text })));
  }
  const usesFiles = !loaded.ok || loaded.config.storage === undefined;
  checks.push(...(usesFiles ? [await checkStorage()] : []), await checkSearch());
  const colors = colorsFor(process.stdout, host.env);
  const lines = checks.map(({ name, ok, text }) => {
    const mark = ok ? colors.green("✔") : colors.red("✖");
    return `${mark} ${name.padEnd(14)}${text.replaceAll("\n", `\n${" ".repeat(16)}`)}`;
  });
  const failed = checks.filter(({ ok }) => !ok).length;
  const verdict =
    failed === 0 ? "Everything a run needs is there." : `${failed} of ${checks.length} checks failed.`;
  process.stdout.write(`deepagent-mcp ${packageVersion()}\n\n${lines.join("\n")}\n\n${verdict}\n`);
  return failed === 0 ? 0 : 1;
}

const MIN_NODE = 20;
const SEARCH_TIMEOUT_MS = 5000;

export function checkNode(version: string): Check {
  const ok = Number(version.split(".")[0]) >= MIN_NODE;
  return { name: "Node", ok, text: ok ? version : `${version} is too old; install ${MIN_NODE} or later` };
}

const BY_NAME =
  "Paths are looked up by name, and compared before and after: a program that swaps a folder for a link at the right moment is not shut out.";

const LIMITS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: [
    BY_NAME,
    "Commands in Seatbelt have no limits of memory and processes, and no filter of system calls.",
    "A background process of a command that leaves its group is not ended with the run.",
    "A search has no limit of memory.",
  ],
  win32: [
    BY_NAME,
    "There is no sandbox, and no shell for commands: without execute.sandbox the agent runs none.",
    "Files have the rights of the folder they are in: the data folder is private where its folder is.",
    "A program that is ended leaves the programs that it started, and the container of a server that was killed goes on.",
    "A search has no limit of memory.",
  ],
};

/** What is isolated less than on Linux, one sentence each. `tried`: whether the tests run on this system. */
export function platformLimits(platform: NodeJS.Platform): { tried: boolean; limits: readonly string[] } {
  const others = hasDescriptorPaths(platform) ? [] : [BY_NAME];
  return { tried: platform === "linux", limits: LIMITS[platform] ?? others };
}

/** Lists the limits of this platform: what it does not isolate, or no test has tried. Empty without limits. */
export function checkPlatform(platform: NodeJS.Platform): Check[] {
  const { tried, limits } = platformLimits(platform);
  const untried = tried ? [] : [`${platform} is not tried by the tests of this program.`];
  const found = [...untried, ...limits];
  return found.length === 0 ? [] : [{ name: "Platform", ok: true, text: found.join("\n") }];
}

export function checkWorkspace({ workspace }: Config, warnings: readonly string[]): Check {
  const name = "Workspace";
  if (workspace === undefined) return { name, ok: false, text: warnings.join("\n") };
  const problem = folderProblem(workspace);
  return { name, ok: problem === undefined, text: [problem ?? workspace, ...warnings].join("\n") };
}

/** Whether runs can be stored where the configuration says. */
const checkPlace = (config: Config, env: NodeJS.ProcessEnv): Promise<Check> =>
  config.storage === undefined ? checkDataDir(config) : checkPostgres(config.storage, config, env);

/** Connects, and makes the tables when they are missing, as the server would. Tries the bucket for large values. */
async function checkPostgres(url: string, config: Config, env: NodeJS.ProcessEnv): Promise<Check> {
  const name = "Storage";
  try {
    const { openSharedStorage } = await import("../app/open-storage.ts");
    const storage = await openSharedStorage(url, { config, env, logger: silentLogger });
    try {
      await storage.runs.assertWritable();
      await storage.tryLargeValues();
    } finally {
      await storage.close();
    }
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

/** Creates the folder when it is not there, as the server would. */
export async function checkDataDir({ dataDir }: Config): Promise<Check> {
  const name = "Data folder";
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await access(dataDir, constants.R_OK | constants.W_OK);
    await rm(await mkdtemp(join(dataDir, "doctor-")), { recursive: true });
    return { name, ok: true, text: dataDir };
  } catch (error) {
    return {
      name,
      ok: false,
      text: `${dataDir} cannot be written: ${errorMessage(error)}. Choose another --data-dir.`,
    };
  }
}

/** Looks at names, variables and packages only; no request is made. */
export async function checkModel(config: Config, env: NodeJS.ProcessEnv): Promise<Check> {
  const choice = usableModel(config.model, config, env);
  if (!choice.ok) return { name: "Model", ok: false, text: choice.message };
  const endpoint = choice.endpoint === undefined ? "" : ` at ${choice.endpoint}`;
  return { name: "Model", ok: true, text: `${choice.spec}${endpoint} (${choice.why})` };
}

/** Opens a database in memory, which shows that the driver can be loaded. */
export async function checkStorage(): Promise<Check> {
  const name = "Storage";
  const { DRIVER, repairAnywhere } = await import("../storage/sqlite/driver.ts");
  const repair = (problem: string): Check => ({
    name,
    ok: false,
    text: `${problem}\nIn any folder: ${repairAnywhere()}`,
  });
  try {
    const { openDatabase } = await import("../storage/sqlite/database.ts");
    const database = openDatabase(":memory:");
    const version: unknown = database.prepare("SELECT sqlite_version()").pluck().get();
    database.close();
    return { name, ok: true, text: `SQLite ${String(version)} (${DRIVER})` };
  } catch (error) {
    return error instanceof DeepAgentError
      ? repair(error.message)
      : { name, ok: false, text: errorMessage(error) };
  }
}

/** Runs a command that does nothing in the sandbox. Without one a run still works, with less comfort. */
export async function checkCommands(config: Config, platform?: NodeJS.Platform): Promise<Check> {
  const name = "Commands";
  const choice = await chooseExecutor(config, platform);
  const asked = (always: boolean): string =>
    always || config.approvals.execute === "all" ? "each approved by a person" : "without approval";
  switch (choice.kind) {
    case "sandbox":
      return { name, ok: true, text: `run in a sandbox (${choice.name}), ${asked(false)}` };
    case "host":
      return { name, ok: true, text: `run without a sandbox, ${asked(true)}\n${choice.reason}` };
    case "none":
      return { name, ok: config.execute.mode !== "sandbox", text: `are not run: ${choice.reason}` };
  }
}

export async function checkSearch(): Promise<Check> {
  const name = "Search";
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    const version = await runProgram(rgPath, ["--version"], { timeout: SEARCH_TIMEOUT_MS });
    return { name, ok: true, text: version.split("\n")[0] ?? "ripgrep" };
  } catch (error) {
    return {
      name,
      ok: false,
      text: `ripgrep cannot be run: ${errorMessage(error)}\nInstall again without --omit=optional.`,
    };
  }
}

/** Adds how the key that a model lacks can be kept, or why the keychain could not be asked for it. */
function withRemedy(
  check: Check,
  { config, env, host, problem }: { config: Config; env: Environment; host: HostFacts; problem?: string },
): Check {
  const choice = modelChoice({ model: config.model, env, lendable: true });
  const [name] = choice.ok ? [] : (choice.keys ?? []);
  if (name === undefined) return check;
  const remedy = `To keep it in the keychain: ${commandLine(host, ["keys", "set", name])}`;
  return { ...check, text: `${check.text}\n${problem ?? remedy}` };
}

/** Where the key of each model that is used comes from. `found`: those that the keychain has. */
export function checkKeys(
  { model, fallbackModels, allowedModels, subagents, memories }: Config,
  env: Environment,
  found: readonly string[],
): Check[] {
  const own = subagents.map((one) => one.model);
  const used = [model, ...fallbackModels, ...allowedModels, ...own, memories.embeddings];
  const names = used.flatMap((spec, index) => {
    if (spec === undefined && index > 0) return [];
    const choice = modelChoice({ model: spec, env, lendable: true });
    return (choice.ok && PROVIDERS[choice.provider]?.key) || [];
  });
  const known = [...new Set(names)].filter((name) => variable(env, name) !== undefined);
  const lines = known.map((name) => `${name}, from the ${found.includes(name) ? "keychain" : "environment"}`);
  return lines.length === 0 ? [] : [{ name: "Keys", ok: true, text: lines.join("\n") }];
}

/** Chooses a model whose package is there, too. */
function usableModel(
  model: string | undefined,
  { dataDir }: Pick<Config, "dataDir">,
  env: NodeJS.ProcessEnv,
): ModelChoice {
  const choice = modelChoice({ model, env, lendable: true });
  if (!choice.ok || choice.provider === OFFLINE || choice.provider === CLIENT) return choice;
  const message = packageProblem(choice.provider, packagesFolder(dataDir));
  return message === undefined ? choice : { ok: false, code: "model_package_missing", message };
}

/** The models besides the main one; looks at names, variables and packages only. */
export function checkOtherModels(
  config: Pick<Config, "fallbackModels" | "allowedModels" | "subagents" | "dataDir">,
  env: NodeJS.ProcessEnv,
): Check[] {
  const { fallbackModels, allowedModels, subagents } = config;
  const used = [
    ...fallbackModels.map((model) => ({ model, by: "fallback" })),
    ...allowedModels.map((model) => ({ model, by: "allowed for subagent files" })),
    ...subagents.flatMap(({ name, model }) => (model === undefined ? [] : [{ model, by: `of ${name}` }])),
  ];
  return used.map(({ model, by }) => {
    const choice = usableModel(model, config, env);
    return {
      name: "Model",
      ok: choice.ok,
      text: choice.ok ? `${choice.spec} (${by})` : `${by}: ${choice.message}`,
    };
  });
}

/** Whether memories can be found by their meaning, when that is wanted; makes no request. */
export function checkEmbeddings({ memories }: Pick<Config, "memories">, env: NodeJS.ProcessEnv): Check[] {
  const { embeddings: model } = memories;
  if (model === undefined) return [];
  const problem = embedderProblem({ model, env });
  return [
    { name: "Embeddings", ok: problem === undefined, text: problem?.message ?? `${model} (of memories)` },
  ];
}

/** Starts every other MCP server, asks for its tools and ends it; looks whether subagents name tools that exist. */
export async function checkTools(
  config: Pick<Config, "mcpServers" | "subagents" | "workspace">,
  env: NodeJS.ProcessEnv,
): Promise<Check[]> {
  const mcp = openMcpTools(config.mcpServers, { env, version: packageVersion(), log: silentLogger });
  try {
    const offers = await mcp.forAgent();
    const servers = Object.keys(config.mcpServers);
    const missing = offers.problems.map(({ server }) => server);
    return [
      ...servers.map((server) => checkServer(server, offers)),
      ...(await checkSubagentTools(config, { tools: offers.tools, servers, missing })),
    ];
  } finally {
    await mcp.close();
  }
}

function checkServer(server: string, { tools, gated, problems, leftOut, notes }: McpToolSet): Check {
  const problem = problems.find((found) => found.server === server);
  if (problem)
    return { name: "MCP server", ok: false, text: `${server} is not available: ${problem.reason}` };
  const own = (name: string): boolean => name.startsWith(`${server}__`);
  const asked = gated.filter(own).length;
  const all = tools.filter(({ name }) => own(name)).length;
  const found = `${server}: ${all} tools, ${asked} of them with approval`;
  const missing = leftOut.filter((tool) => tool.server === server).map(leftOutText);
  const detours = notes.flatMap((note) => (note.server === server ? [note.text] : []));
  return { name: "MCP server", ok: true, text: [found, ...missing, ...detours].join("\n") };
}
