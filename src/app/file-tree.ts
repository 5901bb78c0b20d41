/** The folders that an agent sees, over the places that the configuration names. */
import type { Environment } from "../agent/models/choose.ts";
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { Backend } from "../backends/backend.ts";
import type { SandboxBackend } from "../backends/executor.ts";
import { CompositeBackend } from "../backends/composite/composite.ts";
import type { IgnoreFiles } from "../backends/ignore-files.ts";
import { FilesystemBackend } from "../backends/filesystem/filesystem.ts";
import type { PolicyRules } from "../backends/policy-rules.ts";
import { PolicyBackend } from "../backends/policy.ts";
import { snapshotFiles } from "../backends/runtime.ts";
import { StoreBackend } from "../backends/stores/langgraph-store.ts";
import { PostgresBackend } from "../backends/stores/postgres.ts";
import { S3Backend } from "../backends/stores/s3.ts";
import { StateBackend } from "../backends/stores/state.ts";
import { packageRoot } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { byValue } from "../core/by-identity.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { NewestOf } from "../core/newest-of.ts";
import { type Principal, LOCAL } from "../runs/run.ts";
import type { Owner, PlacesConfig } from "./owned-places.ts";
import { readIgnoreFiles, ownedPath, rulesOf, workspaceOf, findRepository } from "./owned-places.ts";
import { MEMORIES_MOUNT, SKILLS_MOUNT, WORKSPACE_MOUNT, bucketOf } from "./settings.ts";
import folders from "../agent/layers/shared-folders.json" with { type: "json" };
import { type AgentFile, loadAgentFiles } from "../agent/build/agent-files.ts";
import type { Logger } from "../core/logger.ts";

export type FileTreeConfig = PlacesConfig &
  Pick<Config, "skills" | "globalSkills" | "homeFolder" | "files" | "respectGitignore" | "privatePaths">;

/** The folders that agents see besides the files of their thread: workspace, memories, skills, mounts. */
export class FileTree {
  readonly #config: FileTreeConfig;
  readonly #storeOf: ((principal: Principal) => BaseStore) | undefined;
  readonly #served: ServerMounts | undefined;
  readonly #folder: (rootDir: string) => Backend;
  readonly #rules: PolicyRules | undefined;

  /** Without `storeOf` it has no memories. */
  constructor(config: FileTreeConfig, storeOf?: (principal: Principal) => BaseStore, served?: ServerMounts) {
    this.#config = config;
    this.#served = served;
    this.#storeOf = storeOf;
    this.#rules = rulesOf(config);
    const { privatePaths: hidden = [] } = config;
    this.#folder = byValue((rootDir) => new FilesystemBackend({ rootDir, virtualMode: true, hidden }));
  }

  /** Returns the folders alone; `/` itself is empty and read-only. Those of a thread are there for that thread. */
  mounts(owner: Owner, ignored = readIgnoreFiles(this.#config, owner)): Backend {
    const nothing = new StateBackend({ files: snapshotFiles() });
    return new CompositeBackend(new PolicyBackend(nothing, { readOnly: true }), this.#routes(owner, ignored));
  }

  /** Mounts the files of the running thread everywhere else. Commands see the files of `executor`. */
  withThread(
    owner: Owner,
    mounted?: { executor: SandboxBackend; mount: string },
    ignored = readIgnoreFiles(this.#config, owner),
  ): Backend {
    const routes = this.#routes(owner, ignored);
    if (mounted === undefined) return new CompositeBackend(new StateBackend(), routes);
    const { executor, mount } = mounted;
    const rules = mount === WORKSPACE_MOUNT && ignored;
    const files = rules ? new PolicyBackend(executor, rules) : executor;
    return new CompositeBackend(new StateBackend(), { ...routes, [mount]: files }, { executor: mount });
  }

  /** Folders of skills, lowest priority first: home, bundled and configured ones, those of the workspace. */
  skillSources(owner: Owner): string[] {
    const mounted = skillFolders(this.#config, owner).map(([path]) => path);
    const workspace = workspaceOf(this.#config, owner);
    return [...mounted, ...(workspace === undefined ? [] : workspaceFolders("skills", workspace))];
  }

  #routes(owner: Owner, ignored: IgnoreFiles | null): Record<string, Backend> {
    const routes: Record<string, Backend> = { ...this.#served?.of(owner) };
    const { respectGitignore, privatePaths: hidden = [], files } = this.#config;
    const rootDir = workspaceOf(this.#config, owner);
    if (rootDir !== undefined) {
      const { maxFileSizeMb } = files;
      const options = { rootDir, virtualMode: true, respectGitignore, hidden, maxFileSizeMb };
      let workspace: Backend = new FilesystemBackend(options);
      // The setting `files` hides or protects some of them.
      for (const rules of [this.#rules ?? [], ignored ?? []].flat())
        workspace = new PolicyBackend(workspace, rules);
      routes[WORKSPACE_MOUNT] = workspace;
    }
    const store = this.#storeOf?.(owner.principal);
    const namespace = memoryNamespace(owner.principal);
    if (store !== undefined) routes[MEMORIES_MOUNT] = new StoreBackend({ store, namespace });
    const skills = skillFolders(this.#config, owner);
    for (const [path, folder] of [...skills, ...linkedSkills(this.#config, skills)])
      routes[path] = new PolicyBackend(this.#folder(folder), { readOnly: true });
    return routes;
  }
}

/** Namespace of a principal's memories in the store. Namespaces take a limited alphabet, without periods. */
export function memoryNamespace(principal: Principal): string[] {
  const isPlain = /^[A-Za-z0-9_@+-]+$/.test(principal);
  const owner = isPlain ? principal : `sha256:${createHash("sha256").update(principal).digest("hex")}`;
  return ["memories", owner];
}

type SkillsConfig = Pick<
  Config,
  "skills" | "globalSkills" | "homeFolder" | "workspace" | "workspaceFolder" | "privatePaths"
>;

/**
 * Mount points with their folders, lowest priority first: those of the owner's home folder, the skills of the package,
 * the configured folders by name, and those above the workspace.
 */
export function skillFolders(
  config: SkillsConfig,
  owner: Owner,
  bundled: string = join(packageRoot(), "skills"),
): [string, string][] {
  const isBundled = existsSync(bundled);
  const taken = new Set(isBundled ? readdirSync(bundled) : []);
  const mountAt = (wanted: string, folder: string): [string, string] => {
    let name = wanted;
    for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
    taken.add(name);
    return [`${SKILLS_MOUNT}/${name}`, folder];
  };
  const { skills, globalSkills } = config;
  const given = [globalSkills ?? [], skills].flat();
  const configured = given.map((folder) => mountAt(basename(folder), folder));
  const known = new Set(given.map(realPath));
  const shared = sharedRoots("skills", config, owner).flatMap(({ root, label, folders: paths }) =>
    paths.flatMap((path): [string, string][] => {
      const folder = realPath(join(root, path));
      // Installers make the folders of several programs one by links.
      if (known.has(folder)) return [];
      known.add(folder);
      const words = path.split(/[/.]/).filter((word) => !/^(?:skills?)?$/.test(word));
      return [mountAt([label, ...words].join("-").replace("~-", "~"), folder)];
    }),
  );
  const own: [string, string][] = isBundled ? [[SKILLS_MOUNT, bundled]] : [];
  const above = shared.filter(([at]) => !at.startsWith(HOME_SKILLS));
  return [...shared.filter((one) => !above.includes(one)), ...own, ...configured, ...above];
}

const HOME_SKILLS = `${SKILLS_MOUNT}/~`;

/**
 * Mount points of skills that are links to folders elsewhere, as installers of skills make them. Leaves out the links of
 * a folder in a workspace, because its agent may have made them, and all that do not lead to a skill.
 */
export function linkedSkills(config: SkillsConfig, folders: ReturnType<typeof skillFolders>) {
  const { workspace, privatePaths = [], skills, globalSkills } = config;
  const own = workspace === undefined ? undefined : realPath(workspace);
  return folders
    .flatMap(([at, folder]) => {
      const root = realPath(folder);
      const isTrusted =
        at.startsWith(HOME_SKILLS) || at === SKILLS_MOUNT || [globalSkills, ...skills].includes(folder);
      if (!isTrusted || (own !== undefined && isInside(own, root)) || !existsSync(root)) return [];
      return readdirSync(root, { withFileTypes: true })
        .filter((entry) => entry.isSymbolicLink())
        .map(({ name }): [string, string] => [`${at}/${name}`, realPath(join(root, name))])
        .filter(
          ([, target]) =>
            !isInside(root, target) &&
            !privatePaths.some((place) => isInside(realPath(place), target)) &&
            existsSync(join(target, "SKILL.md")),
        );
    })
    .slice(0, MOST_LINKED);
}

/** Linked skills that are mounted: each takes a little of every command's time. */
export const MOST_LINKED = 200;

/** The configured folders on other servers. Nothing is connected before it is used. */
export class ServerMounts {
  readonly #mounts: Config["mounts"];
  readonly #env: Environment;
  /** The connections of those that are left out end when they are idle. */
  readonly #opened = new NewestOf<S3Backend | PostgresBackend>(200);

  constructor(mounts: Config["mounts"], env: Environment) {
    this.#mounts = mounts;
    this.#env = env;
  }

  get paths(): string[] {
    return Object.keys(this.#mounts);
  }

  /** The folders of an owner, by path, without those that need a thread where there is none. */
  of(owner: Owner): Record<string, Backend> {
    const folders: Record<string, Backend> = {};
    for (const [path, { s3, postgres }] of Object.entries(this.#mounts)) {
      const template = (s3 ?? postgres)?.prefix;
      const prefix = template === undefined ? "" : ownedPath(template, owner);
      if (prefix === undefined) continue;
      const key = JSON.stringify([path, prefix]);
      const folder = this.#opened.get(key) ?? this.#open({ s3, postgres }, prefix);
      this.#opened.keep(key, folder);
      folders[path] = folder;
    }
    return folders;
  }

  #open({ s3, postgres = {} }: Config["mounts"][string], prefix: string): S3Backend | PostgresBackend {
    const at = prefix === "" ? {} : { prefix };
    if (s3 !== undefined) return new S3Backend({ ...bucketOf(s3, this.#env), ...at });
    const { connectionStringVariable: variable, ...options } = postgres;
    return new PostgresBackend({ ...options, ...at, connectionString: variable && this.#env[variable] });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((folder) => folder.close()));
  }
}

export type SharedConfig = Pick<Config, "homeFolder" | "workspace" | "workspaceFolder" | "privatePaths">;

type SharedKind = keyof Pick<typeof folders, "skills" | "agents" | "commands">;

/**
 * Returns folders of this machine, and in `folders` those below it that exist, lowest priority first. `label` names
 * it in paths that the agent sees. They are the home folder, `~`, only for the person at this machine, then the folders from the root of the repository down to the
 * one above the workspace. The workspace itself is not among them. Folders whose links lead to other places than
 * their root are left out.
 */
export function sharedRoots(
  kind: SharedKind,
  { homeFolder, workspace, workspaceFolder }: SharedConfig,
  { principal }: Owner,
) {
  const { home, project } = folders[kind];
  const existing = (root: string, names: readonly string[], isAllowed: (place: string) => boolean) =>
    names.filter((name) => existsSync(join(root, name)) && isAllowed(realPath(join(root, name))));
  const roots = [];
  if (homeFolder !== undefined && principal === LOCAL)
    roots.push({
      root: homeFolder,
      label: "~",
      folders: existing(homeFolder, home, (place) => !isInside(place, homeFolder)),
    });
  // If people have folders of their own, the folders above them belong to others.
  const repository = findRepository({ workspace, workspaceFolder });
  const isWide = repository && homeFolder !== undefined && isInside(repository, homeFolder);
  const way = repository && !isWide ? relative(repository, realPath(workspace ?? "")) : "";
  for (const [level] of way === "" ? [] : way.split(sep).entries()) {
    const names = way.split(sep).slice(0, level);
    const root = join(repository ?? "", ...names);
    roots.push({
      root,
      label: ["repository", ...names].join("-"),
      folders: existing(root, project, (place) => isInside(repository ?? root, place)),
    });
  }
  return roots.filter((one) => one.folders.length > 0);
}

/** Backends over the shared folders of a kind, with the folders to read there, lowest priority first. */
export const sharedBackends = (kind: SharedKind, config: SharedConfig, owner: Owner) =>
  sharedRoots(kind, config, owner).map(({ root, folders: names }): [Backend, string[]] => {
    const { privatePaths: hidden = [] } = config;
    const backend = new FilesystemBackend({ rootDir: root, virtualMode: true, hidden });
    return [backend, names.map((name) => `/${name}`)];
  });

/** The subagents of all agent files, `own` in the workspace; of two with one name that of the workspace counts, then the nearest. */
export async function readAgentFiles(
  config: SharedConfig,
  owner: Owner,
  own: ReadonlyArray<readonly [Backend, readonly string[]]>,
  log: Logger,
): Promise<AgentFile[]> {
  const agents = new Map<string, AgentFile>();
  for (const [backend, names] of [...sharedBackends("agents", config, owner), ...own])
    for (const file of await loadAgentFiles(backend, names, log)) agents.set(file.name, file);
  return [...agents.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Folders of the workspace for files of a kind, lowest priority first. `within`: only those that exist there. */
export const workspaceFolders = (kind: SharedKind, within?: string, mount = WORKSPACE_MOUNT): string[] =>
  folders[kind].project
    .filter((folder) => within === undefined || existsSync(join(within, folder)))
    .map((folder) => `${mount}/${folder}`);
