/** The runs of all folders that runs may work in: a service for each folder, and one in front of them. */
import { basename } from "node:path";
import { modelChoice } from "../agent/models/choose.ts";
import { allowedFolders, foldersNamed } from "../config/folders.ts";
import { realPath } from "../core/real-path.ts";
import { fill, shownName } from "../core/text.ts";
import type { StartRequest } from "../runs/ports.ts";
import { type Holder, LOCAL, type Principal, parsePoint } from "../runs/run.ts";
import { demandScope } from "../runs/scopes.ts";
import type { PrincipalRuns, RunService } from "../runs/service.ts";
import { lazyRuns } from "../server/contracts/deps.ts";
import { type OpenedRuns, openRuns } from "./open-runs.ts";
import { type RunSettings, environmentOf, workspaceOf } from "./settings.ts";
import texts from "./texts.json" with { type: "json" };

/** Methods about one run, its first argument, that need the files or the worker of its folder. */
const ROUTED = {
  watch: ["events", "live"],
  control: ["tell", "replyToModel", "cancel", "delete"],
  requests: ["answer", "useAnswer"],
  changes: ["proposed", "review", "discard"],
  files: ["ofRun"],
} as const satisfies { [Group in keyof PrincipalRuns]?: readonly (keyof PrincipalRuns[Group])[] };

/** Folders in a message. */
const MOST_SHOWN = 20;

/** Opens the service of the setting `workspace` now, and those of other folders when they are needed. */
export async function openFolderRuns(settings: RunSettings): Promise<OpenedRuns> {
  const base = await openRuns(settings);
  const folders = new FolderServices(settings, base);
  // Runs and schedules of an earlier process continue though nobody names their folder.
  const environments = settings.keepsHouse === false ? Promise.resolve([]) : base.rows.environments();
  const continued = environments.then((all) => Promise.all(all.map((one) => folders.in(one))));
  continued.catch((error: unknown) => settings.logger.error("folders.not_opened", { error }));
  const { services } = folders;
  return {
    ...base,
    as: (holder) => folders.as(holder),
    drain: async (milliseconds) => {
      const opened = await Promise.all([...services.values()].map((one) => one.runs()));
      await Promise.all([base, ...opened].map((one) => one.drain(milliseconds)));
    },
    close: async () => {
      await Promise.all([...services.values()].map((one) => one.close()));
      await base.close();
    },
  };
}

class FolderServices {
  /** By folder. */
  readonly services = new Map<string, ReturnType<typeof lazyRuns>>();
  readonly #settings: RunSettings;
  readonly #base: OpenedRuns;
  /** The folder of the setting `workspace`. */
  readonly #home: string | undefined;

  constructor(settings: RunSettings, base: OpenedRuns) {
    const { workspace } = settings.config;
    this.#settings = settings;
    this.#base = base;
    this.#home = workspace && realPath(workspace);
  }

  as(holder: Holder): PrincipalRuns {
    const { principal } = holder;
    const own = this.#base.as(holder);
    const start: PrincipalRuns["control"]["start"] = async ({ folder, clientFolders, ...request }) => {
      demandScope(holder, ["run"]);
      const chosen = await this.#choose(principal, { folder, clientFolders, threadId: request.threadId });
      if (typeof chosen === "object") return { ok: false, code: "folder_not_allowed", ...chosen };
      return (await this.#of(chosen)).as(holder).control.start(request);
    };
    const schedules: PrincipalRuns["schedules"] = {
      ...own.schedules,
      add: async ({ folder, ...request }) => {
        const chosen = await this.#choose(principal, { folder });
        if (typeof chosen === "object") return { ok: false, code: "invalid", field: "folder", ...chosen };
        if (chosen === undefined) return own.schedules.add(request);
        const { config, env, lendable = false } = this.#settings;
        const model = modelChoice({ model: config.model, models: config.models, env, lendable });
        const environment = environmentOf({ ...config, workspace: chosen }, model);
        await this.in(environment);
        return own.schedules.add({ ...request, environment });
      },
    };
    const readiness: PrincipalRuns["agents"]["readiness"] = async () => {
      const folders = this.#offered(principal).folders.map(({ path }) => path);
      const first = (await this.#of(this.#home ?? folders[0])).as(holder);
      return { ...(await first.agents.readiness()), ...(folders.length > 1 ? { folders } : {}) };
    };
    const agents = { ...own.agents, readiness };
    return this.#routed({ ...own, control: { ...own.control, start }, schedules, agents }, holder);
  }

  /** The service that works on runs of an environment; that of the setting `workspace` if the folder is not allowed. */
  async in(environment: string): Promise<RunService> {
    const { folders, principalFolders, privatePaths } = this.#settings.config;
    const folder = workspaceOf(environment);
    if (folder === undefined || folder === this.#home || this.services.has(folder)) return this.#of(folder);
    const allowed = allowedFolders([...folders, ...Object.values(principalFolders).flat()], privatePaths);
    return this.#of(allowed.some(({ path }) => path === folder) ? folder : undefined);
  }

  async #of(folder: string | undefined): Promise<RunService> {
    if (folder === undefined || folder === this.#home) return this.#base;
    const { storage: _shared, ...settings } = this.#settings;
    const { workspaceFolder: _own, ...config } = { ...settings.config, workspace: folder };
    const service = this.services.get(folder) ?? lazyRuns(() => openRuns({ ...settings, config }));
    this.services.set(folder, service);
    return service.runs();
  }

  #routed(handle: PrincipalRuns, holder: Holder): PrincipalRuns {
    type Method = (...args: unknown[]) => unknown;
    const methodOf = async (group: string, name: string, runId: unknown): Promise<Method> => {
      const run = await this.#base.rows.read.run(holder.principal, String(runId));
      const service = run === undefined ? this.#base : await this.in(run.environment);
      return Reflect.get(Reflect.get(service.as(holder), group), name) as Method; // ROUTED has names of methods
    };
    const groups = Object.entries(ROUTED).map(([group, names]) => {
      const methods = names.map((name) => {
        const call: Method = async (...args) => (await methodOf(group, name, args[0]))(...args);
        const stream: Method = async function* (...args) {
          yield* (await methodOf(group, name, args[0]))(...args) as AsyncIterable<unknown>;
        };
        return [name, group === "watch" ? stream : call];
      });
      return [group, { ...handle[group as keyof PrincipalRuns], ...Object.fromEntries(methods) }];
    });
    return { ...handle, ...Object.fromEntries(groups) };
  }

  /** The folder for a start, or why it cannot start; `undefined`: that of the setting `workspace`, if there is one. */
  async #choose(
    principal: Principal,
    { folder, clientFolders = [], threadId }: Pick<StartRequest, "folder" | "clientFolders" | "threadId">,
  ): Promise<string | undefined | { message: string }> {
    const { folders, hasChoice } = this.#offered(principal);
    if (folder === undefined && !hasChoice) return undefined;
    const named = folder === undefined ? [] : foldersNamed(folder, folders);
    const filter = threadId && { threadId: parsePoint(threadId)?.threadId ?? threadId, tasksOnly: true };
    const [newest] = filter ? await this.#base.rows.read.summaries(principal, filter, { limit: 1 }) : [];
    const kept = hasChoice && newest ? workspaceOf(newest.environment) : undefined;
    const mayKeep =
      folder === undefined ? folders.some(({ path }) => path === kept) : named.includes(kept ?? "");
    if (kept !== undefined && mayKeep) return kept;
    const shown = (path: string): string => (principal === LOCAL ? path : basename(path));
    if (kept !== undefined)
      return { message: `No run was started: ${fill(texts.otherFolder, shownName(shown(kept)))}` };
    const own = clientFolders.flatMap((one) => foldersNamed(one, folders))[0] ?? this.#home;
    const chosen = folder === undefined ? own : named[0];
    if (chosen !== undefined && named.length < 2) return chosen;
    const wrong = named.length > 1 ? texts.manyFolders : texts.folderNotAllowed;
    const problem = folder === undefined ? texts.noFolder : fill(wrong, shownName(folder));
    const list = (named.length > 1 ? named : folders.map(({ path }) => path)).map(shown);
    const more = list.length > MOST_SHOWN ? ` and ${list.length - MOST_SHOWN} more` : "";
    const choices =
      list.length === 0 ? "" : ` Choose one of: ${list.slice(0, MOST_SHOWN).join(", ")}${more}.`;
    return { message: `No run was started: ${problem}${choices}` };
  }

  /** The folders that a principal's runs may work in, first that of the setting `workspace`. */
  #offered(principal: Principal) {
    const { folders, principalFolders: others, privatePaths, workspace } = this.#settings.config;
    const name = Object.hasOwn(others, principal) ? principal : "*";
    const patterns = principal === LOCAL ? folders : (others[name] ?? []);
    const home = workspace === undefined ? [] : [{ path: realPath(workspace), named: workspace }];
    const more = allowedFolders(patterns, privatePaths).filter(({ path }) => path !== this.#home);
    return { folders: [...home, ...more], hasChoice: patterns.length > 0 };
  }
}
