import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { MaybePromise } from "../backends/backend.ts";
import type { SandboxBackend } from "../backends/executor.ts";
import { SandboxError } from "../backends/sandbox/base-sandbox.ts";
import type { BubblewrapOptions } from "../backends/sandbox/bubblewrap.ts";
import { BubblewrapBackend, probeBubblewrap } from "../backends/sandbox/bubblewrap.ts";
import { createSandbox, prepareSandbox, readSetupScript } from "../backends/sandbox/create-sandbox.ts";
import type { SandboxMount } from "../backends/sandbox/environment.ts";
import { gitIdentity } from "../backends/sandbox/git-view.ts";
import { programFolders } from "../backends/sandbox/program-folders.ts";
import type { NoSandbox } from "../backends/sandbox/probe.ts";
import { systemCallFilter } from "../backends/sandbox/process-limits.ts";
import { SeatbeltBackend, type SeatbeltOptions, seatbeltProblem } from "../backends/sandbox/seatbelt.ts";
import { LocalShellBackend } from "../backends/sandbox/shell-backend.ts";
import { folderProblem } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { ConfigurationError } from "../core/errors.ts";
import type { FileTreeConfig } from "./file-tree.ts";
import { MOST_LINKED, linkedSkills, skillFolders, workspaceFolders } from "./file-tree.ts";
import { stripPrefix } from "../backends/paths.ts";
import type { Logger } from "../core/logger.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { sharedObjects } from "../proposals/scan.ts";
import { type Owner, originalOf, workspaceOf } from "./owned-places.ts";
import { SANDBOX_MOUNT, SKILLS_MOUNT, WORKSPACE_MOUNT } from "./settings.ts";

export type ExecutorConfig = FileTreeConfig & Pick<Config, "execute" | "permissions">;

/** Files among which commands run. Closing it ends the commands. */
export type Executor = SandboxBackend & { close(): Promise<void> };

/** Creation of an executor, and the place of its files in the tree. */
interface Opening {
  /** `folder`: the workspace of the run, or its copy. `shown`: other folders that its commands read. */
  open(folder: string, shown?: readonly SandboxMount[]): MaybePromise<Executor>;
  mount: string;
}

/** The executor for commands of this server. */
export type ExecutorChoice =
  | ({ kind: "sandbox"; name: string } & Opening)
  /** They run as any program of this user, because no sandbox was found. */
  | ({ kind: "host" } & Opening & NoSandbox)
  /** They do not run. */
  | ({ kind: "none" } & NoSandbox);

/** Finds out how commands can run here. Starts one that does nothing, to test the sandbox. */
export async function chooseExecutor(
  config: ExecutorConfig,
  platform: NodeJS.Platform = process.platform,
): Promise<ExecutorChoice> {
  const { execute } = config;
  if (execute.mode === "off") return { kind: "none", reason: "switched off by execute.mode" };
  const { sandbox, timeout, maxOutputBytes } = execute;
  if (sandbox === undefined) return workspaceExecutor(config, { platform });
  const { provider, setupScript, setupScriptPath, setupTimeout, ...options } = sandbox;
  const setup = { setupScript, setupScriptPath, setupTimeout };
  if (provider === "bubblewrap" || provider === "local") {
    const choice = await workspaceExecutor(config, { platform, provider });
    if (choice.kind === "none") return choice;
    return {
      ...choice,
      open: async (...places) => {
        const script = await readSetupScript(setup);
        const executor = await choice.open(...places);
        if (script !== undefined) await prepareSandbox(executor, script, setup.setupTimeout).catch(explain);
        return executor;
      },
    };
  }
  const open = (): Promise<Executor> =>
    createSandbox({ provider, ...options, ...setup, timeout, maxOutputBytes }).catch(explain);
  return { kind: "sandbox", name: provider, open, mount: SANDBOX_MOUNT };
}

const NO_SHELL =
  "they are written for a POSIX shell, which Windows does not have. Run the server in WSL, or name a container or a provider in execute.sandbox";

/** Runs commands among the files of the workspace. `provider` allows only one way. */
async function workspaceExecutor(
  config: ExecutorConfig,
  { platform, provider }: { platform: NodeJS.Platform; provider?: "bubblewrap" | "local" },
): Promise<ExecutorChoice> {
  const { workspace: rootDir, workspaceFolder, execute, respectGitignore, files, permissions } = config;
  const { privatePaths: hidden = [] } = config;
  if (rootDir === undefined || folderProblem(rootDir) !== undefined)
    return { kind: "none", reason: "there is no workspace to run them in" };
  if (platform === "win32") return { kind: "none", reason: NO_SHELL };
  const rules = { "files.hide": files.hide, "files.readOnly": files.readOnly, permissions };
  const given = Object.entries(rules).flatMap(([name, list]) => (list.length > 0 ? [name] : []));
  if (given.length > 0) return { kind: "none", reason: `${given.join(" and ")} would not hold for commands` };
  const { timeout, maxOutputBytes, memoryMb, processes: maxProcesses } = execute;
  const { maxFileSizeMb } = files;
  const limits = { rootDir, respectGitignore, hidden, timeout, maxOutputBytes, maxFileSizeMb };
  const host = (why: NoSandbox): ExecutorChoice => {
    const options = { ...limits, virtualMode: true };
    const open: Opening["open"] = (folder, shown = []) =>
      new LocalShellBackend({
        ...options,
        rootDir: folder,
        readOnly: [...shown, ...workspaceSkills(folder)],
      });
    return { ...why, kind: "host", open, mount: WORKSPACE_MOUNT };
  };
  if (provider === "local") return host({ reason: "execute.sandbox says so" });
  // Folders of principals do not belong to the person whose repository and identity these are.
  const repository = workspaceFolder === undefined;
  const programs = programFolders(process.env, rootDir);
  const identity = repository ? await gitIdentity(rootDir) : undefined;
  const env = { ...programs.env, ...identity?.env };
  const readOnly = [...programs.mounts, ...sameFolders(execute.readOnly)];
  const common = { ...limits, env, signs: identity?.signs === true, readOnly, protectsStarters: true };
  const more = { mountPath: WORKSPACE_MOUNT, repository };
  const sandbox =
    platform === "darwin" && provider === undefined
      ? await seatbelt(common, platform)
      : await bubblewrap({ ...common, ...more, memoryMb, maxProcesses }, platform);
  const isEnough = sandbox.kind === "sandbox" || execute.mode === "sandbox" || provider !== undefined;
  return isEnough ? sandbox : host(sandbox);
}

/** Ends the run with the reason where its sandbox cannot be opened. */
function explain(error: unknown): never {
  if (!(error instanceof SandboxError)) throw error;
  throw new ConfigurationError("sandbox", `execute.sandbox: ${error.message}`, { cause: error });
}

type SandboxChoice = Extract<ExecutorChoice, { kind: "sandbox" | "none" }>;

async function bubblewrap(options: BubblewrapOptions, platform: NodeJS.Platform): Promise<SandboxChoice> {
  const found = await probeBubblewrap(options, { platform });
  if (!found.ok) {
    const { ok: _not, ...why } = found;
    return { kind: "none", ...why };
  }
  const open: Opening["open"] = (rootDir, shown = []) =>
    new BubblewrapBackend({ ...options, rootDir, readOnly: [...(options.readOnly ?? []), ...shown] }, found);
  const filter =
    systemCallFilter() === undefined ? `, without a filter of system calls on ${process.arch}` : "";
  return { kind: "sandbox", name: `Bubblewrap ${found.version}${filter}`, open, mount: WORKSPACE_MOUNT };
}

async function seatbelt(options: SeatbeltOptions, platform: NodeJS.Platform): Promise<SandboxChoice> {
  const problem = await seatbeltProblem(options, platform);
  if (problem !== undefined) return { kind: "none", ...problem };
  return {
    kind: "sandbox",
    name: "Seatbelt",
    open: (rootDir, shown = []) => {
      const readOnly = [...(options.readOnly ?? []), ...shown, ...workspaceSkills(rootDir)];
      // A copy lies in a folder that is hidden everywhere else.
      const hidden = options.hidden?.filter((place) => !isInside(realPath(place), realPath(rootDir))) ?? [];
      return new SeatbeltBackend({ ...options, rootDir, readOnly, hidden });
    },
    mount: WORKSPACE_MOUNT,
  };
}

const sameFolders = (folders: readonly string[]): SandboxMount[] =>
  folders.map((folder) => ({ folder, at: folder }));

/**
 * Skills at the paths the agent knows. The bundled ones are mounted one by one, because folders of other sources lie
 * beside them, and so are the skills of a folder with links.
 */
function skillMounts(config: ExecutorConfig, owner: Owner): SandboxMount[] {
  const folders = skillFolders(config, owner);
  const linked = linkedSkills(config, folders).map(([at, folder]) => ({ folder, at }));
  const own = folders
    .filter(([, folder]) => existsSync(folder))
    .flatMap(([at, folder]) =>
      at !== SKILLS_MOUNT && !linked.some((link) => dirname(link.at) === at)
        ? [{ folder, at }]
        : readdirSync(folder, { withFileTypes: true })
            .filter((entry) => entry.isDirectory())
            .slice(0, MOST_LINKED)
            .map(({ name }) => ({ folder: join(folder, name), at: `${at}/${name}` })),
    );
  return [...own, ...linked];
}

/** Skills of the workspace, for commands that do not see it at the path that file tools use. */
const workspaceSkills = (folder: string): SandboxMount[] =>
  workspaceFolders("skills").map((at) => ({ folder: join(folder, stripPrefix(WORKSPACE_MOUNT, at)), at }));

/** Returns the workspace of a run, with the other folders that its commands need. */
function openingPlaces(config: ExecutorConfig, owner: Owner): Parameters<Opening["open"]> | undefined {
  const folder = workspaceOf(config, owner);
  if (folder === undefined) return undefined;
  const original = owner.changes === "propose" ? originalOf(config, owner) : undefined;
  const objects = original === undefined ? [] : sharedObjects(original);
  return [folder, [...sameFolders(objects), ...skillMounts(config, owner)]];
}

/** An executor, and where its files are in the tree. */
export interface MountedExecutor {
  executor: Executor;
  mount: string;
}

/** Executors of the runs at work: one each, so that programs started by its commands end with the run. */
export class RunExecutors {
  readonly #choose: () => Promise<ExecutorChoice>;
  readonly #openingPlaces: (owner: Owner) => Parameters<Opening["open"]> | undefined;
  #choice: Promise<ExecutorChoice>;
  readonly #open = new Map<string, Promise<MountedExecutor>>();

  static for(config: ExecutorConfig): RunExecutors {
    const choose = () => chooseExecutor(config);
    return new RunExecutors(choose, (owner) => openingPlaces(config, owner));
  }

  /** Calls `choose` now, and again before each run while its answer is temporary. `openingPlaces`: those of a run. */
  constructor(
    choose: () => Promise<ExecutorChoice>,
    openingPlaces: (owner: Owner) => Parameters<Opening["open"]> | undefined,
  ) {
    this.#choose = choose;
    this.#openingPlaces = openingPlaces;
    this.#choice = choose();
  }

  async warnOfHost(log: Logger): Promise<void> {
    const choice = await this.#choice;
    if (choice.kind === "host") log.warn("commands.not_isolated", { reason: choice.reason });
  }

  /**
   * The run's executor; undefined if commands cannot run. A run keeps the executor it began with, even if others get
   * another one later. `ended` resolves at the end of the run.
   */
  async of(run: Owner & { id: string }, ended: () => Promise<void>): Promise<MountedExecutor | undefined> {
    const { id: runId } = run;
    const choice = this.#open.has(runId) ? undefined : await this.#current();
    const known = this.#open.get(runId);
    if (known !== undefined || choice === undefined || choice.kind === "none") return known;
    const places = this.#openingPlaces(run);
    if (places === undefined) return undefined;
    const { mount } = choice;
    const opening = Promise.resolve(choice.open(...places)).then((executor) => ({ executor, mount }));
    this.#open.set(runId, opening);
    opening.catch(() => this.#open.delete(runId));
    const release = (): Promise<void> => this.#release(runId);
    // Deferred, because the first run starts while the service is still being created.
    void Promise.resolve().then(ended).then(release, release);
    return opening;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((runId) => this.#release(runId)));
  }

  /** Runs that begin at one time wait for one attempt. */
  async #current(): Promise<ExecutorChoice> {
    const asked = this.#choice;
    const choice = await asked;
    if (choice.kind === "sandbox" || choice.isTransient !== true) return choice;
    if (this.#choice === asked) this.#choice = this.#choose().catch(() => choice);
    return this.#choice;
  }

  async #release(runId: string): Promise<void> {
    const opening = this.#open.get(runId);
    this.#open.delete(runId);
    const opened = await opening?.catch(() => undefined);
    await opened?.executor.close();
  }
}

/** True if the commands of an executor can reach nothing but its files. */
export const isIsolated = (mounted: MountedExecutor | undefined): boolean =>
  (mounted?.executor.capabilities?.isolation ?? "none") !== "none";
