/** The runs of all folders that runs may work in: a service for each folder, and one in front of them. */
import { basename } from "node:path";
import { modelChoice } from "../agent/models/choose.ts";
import { allowedFolders, foldersNamed } from "../config/folders.ts";
import { realPath } from "../core/real-path.ts";
import { fill, shownName } from "../core/text.ts";
import type { StartRequest } from "../runs/ports.ts";
import { type Holder, LOCAL, type Principal, parsePoint } from "../runs/run.ts";
import { demandScope } from "../runs/scopes.ts";
import type { PrincipalRuns, RunService, StartOutcome } from "../runs/service.ts";
import { lazyRuns } from "../server/contracts/deps.ts";
import { type OpenedRuns, openRuns } from "./open-runs.ts";
import { type RunSettings, environmentOf, workspaceOf } from "./settings.ts";
import texts from "./texts.json" with { type: "json" };

/** Methods about one run, its first argument, that need the files or the worker of its folder. */
const OF_RUN = {
  watch: ["events", "live"],
  control: ["tell", "replyToModel", "cancel", "delete"],
  requests: ["answer", "useAnswer"],
  changes: ["proposed", "review", "discard"],
  files: ["ofRun"],
} as const satisfies { [Group in keyof PrincipalRuns]?: readonly (keyof PrincipalRuns[Group])[] };

/** Closing it closes all services. */
export async function openFolderRuns(settings: RunSettings): Promise<OpenedRuns> {
  const base = await openRuns(settings);
  const folders = new FolderServices(settings, base);
  folders.continueWork();
  return {
    ...base,
    as: (holder) => folders.as(holder),
    drain: async (milliseconds) => {
      await Promise.all([base, ...(await folders.opened())].map((one) => one.drain(milliseconds)));
    },
    close: async () => {
      await folders.close();
      await base.close();
    },
  };
}

class FolderServices {
  readonly #settings: RunSettings;
  readonly #base: OpenedRuns;
  readonly #services = new Map<string, ReturnType<typeof lazyRuns>>();
  /** The folder of the setting `workspace`. */
  readonly #home: string | undefined;

  constructor(settings: RunSettings, base: OpenedRuns) {
    const { workspace } = settings.config;
    this.#settings = settings;
    this.#base = base;
    this.#home = workspace && realPath(workspace);
  }

  as(holder: Holder): PrincipalRuns {
    const own = this.#base.as(holder);
    const { principal } = holder;
    return {
      ...this.#routed(own, holder),
      agents: {
        ...own.agents,
        readiness: async () => {
          const offered = this.#offered(principal).folders.map(({ path }) => path);
          const first = (await this.#serviceOf(this.#home ?? offered[0])).as(holder);
          const readiness = await first.agents.readiness();
          return offered.length > 1 ? { ...readiness, folders: offered } : readiness;
        },
      },
    };
  }

  /** Opens the services of folders with open runs or schedules. */
  continueWork(): void {
    const open = async () => {
      for (const environment of await this.#base.rows.environments()) await this.#serviceIn(environment);
    };
    open().catch((error: unknown) => this.#settings.logger.error("folders.not_opened", { error }));
  }

  opened = (): Promise<RunService[]> => Promise.all([...this.#services.values()].map((one) => one.runs()));

  async close(): Promise<void> {
    await Promise.all([...this.#services.values()].map((one) => one.close()));
  }

  #routed(own: PrincipalRuns, holder: Holder): PrincipalRuns {
    type Methods = Record<string, Record<string, (...args: unknown[]) => unknown>>;
    const ofRun = async (runId: unknown): Promise<PrincipalRuns> => {
      const run = await this.#base.rows.read.run(holder.principal, String(runId));
      return run === undefined ? own : (await this.#serviceIn(run.environment)).as(holder);
    };
    const start: PrincipalRuns["control"]["start"] = async (request) => this.#start(holder, request);
    const { add, runNow } = own.schedules;
    const schedules: Partial<PrincipalRuns["schedules"]> = {
      add: async ({ folder, ...request }) => {
        const chosen = await this.#folderFor(holder.principal, { folder });
        if (typeof chosen === "object") return { ok: false, code: "invalid", field: "folder", ...chosen };
        return add(chosen === undefined ? request : { ...request, environment: this.#environmentOf(chosen) });
      },
      runNow: async (id) => {
        const outcome = await runNow(id);
        if (outcome.ok) await this.#serviceIn(outcome.run.environment);
        return outcome;
      },
    };
    // The names of OF_RUN are those of methods, whose first argument is the ID of a run.
    const handle = {
      ...own,
      control: { ...own.control, start },
      schedules: { ...own.schedules, ...schedules },
    };
    for (const [group, names] of Object.entries(OF_RUN)) {
      const methods = names.map((name) => [
        name,
        group === "watch"
          ? async function* (...args: unknown[]) {
              yield* ((await ofRun(args[0])) as unknown as Methods)[group]?.[name]?.(
                ...args,
              ) as AsyncIterable<unknown>;
            }
          : async (...args: unknown[]) =>
              ((await ofRun(args[0])) as unknown as Methods)[group]?.[name]?.(...args),
      ]);
      Object.assign(handle, {
        [group]: { ...handle[group as keyof PrincipalRuns], ...Object.fromEntries(methods) },
      });
    }
    return handle;
  }

  async #start(holder: Holder, { folder, clientFolders, ...request }: StartRequest): Promise<StartOutcome> {
    demandScope(holder, ["run"]);
    const { threadId } = request;
    const chosen = await this.#folderFor(holder.principal, { folder, clientFolders, threadId });
    if (typeof chosen === "object") return { ok: false, code: "folder_not_allowed", ...chosen };
    return (await this.#serviceOf(chosen)).as(holder).control.start(request);
  }

  /** The folder for a start, or why it cannot start; `undefined`: that of the setting `workspace`, if there is one. */
  async #folderFor(
    principal: Principal,
    { folder, clientFolders = [], threadId }: Pick<StartRequest, "folder" | "clientFolders" | "threadId">,
  ): Promise<string | undefined | { message: string }> {
    const { folders, hasChoice } = this.#offered(principal);
    if (folder === undefined && !hasChoice) return undefined;
    const isOffered = (path: string): boolean => folders.some((one) => one.path === path);
    const shown = (path: string): string => (principal === LOCAL ? path : basename(path));
    const named = folder === undefined ? [] : foldersNamed(folder, folders);
    const kept = hasChoice && threadId ? await this.#folderOfThread(principal, threadId) : undefined;
    if (kept !== undefined && (folder === undefined ? isOffered(kept) : named.includes(kept))) return kept;
    if (kept !== undefined)
      return { message: `No run was started: ${fill(texts.otherFolder, shownName(shown(kept)))}` };
    const [chosen = folder === undefined ? this.#home : undefined] =
      folder === undefined ? clientFolders.flatMap((one) => foldersNamed(one, folders)) : named;
    if (chosen !== undefined && named.length < 2) return chosen;
    const problem =
      folder === undefined
        ? texts.noFolder
        : fill(named.length > 1 ? texts.manyFolders : texts.folderNotAllowed, shownName(folder));
    const list = (named.length > 1 ? named : folders.map(({ path }) => path)).map(shown);
    const more = list.length > LISTED ? ` and ${list.length - LISTED} more` : "";
    const choices = list.length === 0 ? "" : ` Choose one of: ${list.slice(0, LISTED).join(", ")}${more}.`;
    return { message: `No run was started: ${problem}${choices}` };
  }

  async #folderOfThread(principal: Principal, threadId: string): Promise<string | undefined> {
    const filter = { threadId: parsePoint(threadId)?.threadId ?? threadId, tasksOnly: true };
    const [newest] = await this.#base.rows.read.summaries(principal, filter, { limit: 1 });
    return newest && workspaceOf(newest.environment);
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

  #environmentOf(folder: string): string {
    const { config, env, lendable = false } = this.#settings;
    const choice = modelChoice({ model: config.model, models: config.models, env, lendable });
    return environmentOf({ ...config, workspace: folder }, choice);
  }

  /** The service that works on runs of an environment; that of the setting `workspace` if the folder is not allowed. */
  async #serviceIn(environment: string): Promise<RunService> {
    const { folders, principalFolders, privatePaths } = this.#settings.config;
    const folder = workspaceOf(environment);
    if (folder === undefined || folder === this.#home || this.#services.has(folder))
      return this.#serviceOf(folder);
    const allowed = allowedFolders([...folders, ...Object.values(principalFolders).flat()], privatePaths);
    return this.#serviceOf(allowed.some(({ path }) => path === folder) ? folder : undefined);
  }

  async #serviceOf(folder: string | undefined): Promise<RunService> {
    if (folder === undefined || folder === this.#home) return this.#base;
    const { storage: _shared, ...settings } = this.#settings;
    const { workspaceFolder: _own, ...config } = settings.config;
    const service =
      this.#services.get(folder) ??
      lazyRuns(() => openRuns({ ...settings, config: { ...config, workspace: folder } }));
    this.#services.set(folder, service);
    return service.runs();
  }
}

/** Folders in a message. */
const LISTED = 20;
