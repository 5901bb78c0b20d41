/** The folders that an agent sees, over the places that the configuration names. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { Backend } from "../backends/backend.ts";
import type { SandboxBackend } from "../backends/executor.ts";
import { CompositeBackend } from "../backends/composite/composite.ts";
import { FilesystemBackend } from "../backends/filesystem/filesystem.ts";
import { PolicyBackend, PolicyRules, SENSITIVE_GLOBS } from "../backends/policy.ts";
import { snapshotFiles } from "../backends/runtime.ts";
import { StoreBackend } from "../backends/stores/langgraph-store.ts";
import { PostgresBackend } from "../backends/stores/postgres.ts";
import { S3Backend } from "../backends/stores/s3.ts";
import { StateBackend } from "../backends/stores/state.ts";
import { packageRoot } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import type { MountsConfig } from "../config/sections.ts";
import type { Principal } from "../runs/run.ts";
import { MEMORIES_MOUNT, SKILLS_MOUNT, WORKSPACE_MOUNT } from "./settings.ts";

export type FileTreeConfig = Pick<
  Config,
  "workspace" | "skills" | "globalSkills" | "files" | "respectGitignore" | "privatePaths"
>;

/** The folders every run of a principal shares: workspace, memories, skills. */
export class FileTree {
  readonly #config: FileTreeConfig;
  readonly #store: BaseStore;
  readonly #served: Readonly<Record<string, Backend>>;
  readonly #folders = new Map<string, Backend>();
  readonly #rules: PolicyRules | undefined;

  /** `served`: folders on other servers, by path. */
  constructor(config: FileTreeConfig, store: BaseStore, served: Readonly<Record<string, Backend>> = {}) {
    this.#config = config;
    this.#served = served;
    this.#store = store;
    const { hide, readOnly } = config.files;
    const denyGlobs = hide.flatMap((glob) => (glob === "sensitive" ? SENSITIVE_GLOBS : [glob]));
    const hasRules = hide.length + readOnly.length > 0;
    this.#rules = hasRules ? new PolicyRules({ denyGlobs, denyPrefixes: readOnly }) : undefined;
  }

  /** Returns the tree without a thread, where `/` itself is empty and read-only. */
  mounts(principal: Principal): Backend {
    const nothing = new StateBackend({ files: snapshotFiles() });
    return new CompositeBackend(new PolicyBackend(nothing, { readOnly: true }), this.#routes(principal));
  }

  /** Mounts the files of the running thread everywhere else. Commands see the files of `executor`. */
  withThread(principal: Principal, mounted?: { executor: SandboxBackend; mount: string }): Backend {
    const routes = this.#routes(principal);
    if (mounted === undefined) return new CompositeBackend(new StateBackend(), routes);
    const { executor, mount } = mounted;
    return new CompositeBackend(new StateBackend(), { ...routes, [mount]: executor }, { executor: mount });
  }

  /** Where skills are, lowest priority first: bundled ones, the configured folders, those of the workspace. */
  skillSources(): string[] {
    const mounted = skillFolders(this.#config).map(([path]) => path);
    const isThere = (folder: string): boolean =>
      this.#config.workspace !== undefined && existsSync(join(this.#config.workspace, folder));
    return [...mounted, ...WORKSPACE_SKILLS.filter(isThere).map((folder) => WORKSPACE_MOUNT + folder)];
  }

  #routes(principal: Principal): Record<string, Backend> {
    const { workspace: rootDir, respectGitignore, privatePaths: hidden = [] } = this.#config;
    const { maxFileSizeMb } = this.#config.files;
    return {
      ...this.#served,
      ...(rootDir === undefined
        ? {}
        : {
            [WORKSPACE_MOUNT]: this.#guarded(
              new FilesystemBackend({ rootDir, virtualMode: true, respectGitignore, hidden, maxFileSizeMb }),
            ),
          }),
      [MEMORIES_MOUNT]: new StoreBackend({ store: this.#store, namespace: memoryNamespace(principal) }),
      ...Object.fromEntries(
        skillFolders(this.#config).map(([path, folder]) => [
          path,
          new PolicyBackend(this.#folder(folder), { readOnly: true }),
        ]),
      ),
    };
  }

  /** Hides or protects the files that the setting `files` names. */
  #guarded(workspace: Backend): Backend {
    return this.#rules === undefined ? workspace : new PolicyBackend(workspace, this.#rules);
  }

  #folder(rootDir: string): Backend {
    const known = this.#folders.get(rootDir);
    if (known !== undefined) return known;
    const { privatePaths: hidden = [] } = this.#config;
    const backend = new FilesystemBackend({ rootDir, virtualMode: true, hidden });
    this.#folders.set(rootDir, backend);
    return backend;
  }
}

/** Where a principal's memories are in the store. Namespaces take a limited alphabet, without periods. */
export function memoryNamespace(principal: Principal): string[] {
  const isPlain = /^[A-Za-z0-9_@+-]+$/.test(principal);
  const owner = isPlain ? principal : `sha256:${createHash("sha256").update(principal).digest("hex")}`;
  return ["memories", owner];
}

/** Folders of the workspace that may hold skills, lowest priority first. */
const WORKSPACE_SKILLS: readonly string[] = ["/skills", "/.claude/skills", "/.deepagent/skills"];

/** Mount points with their folders: the skills of the package, then the configured folders by name. */
export function skillFolders(
  { skills, globalSkills }: Pick<Config, "skills" | "globalSkills">,
  bundled: string = join(packageRoot(), "skills"),
): [string, string][] {
  const isBundled = existsSync(bundled);
  const taken = new Set(isBundled ? readdirSync(bundled) : []);
  const configured = [...(globalSkills === undefined ? [] : [globalSkills]), ...skills];
  const folders = configured.map((folder): [string, string] => {
    const name = freeName(basename(folder), taken);
    taken.add(name);
    return [`${SKILLS_MOUNT}/${name}`, folder];
  });
  return isBundled ? [[SKILLS_MOUNT, bundled], ...folders] : folders;
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? name : `${name}-${count}`;
    if (!taken.has(candidate)) return candidate;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The configured folders on other servers, by path. Nothing is connected before it is used. */
export interface ServerMounts {
  routes: Readonly<Record<string, Backend>>;
  close(): Promise<void>;
}

export function openServerMounts(mounts: MountsConfig, env: Environment): ServerMounts {
  const opened = Object.entries(mounts).map(([path, mount]) => ({ path, backend: openMount(mount, env) }));
  return {
    routes: Object.fromEntries(opened.map(({ path, backend }) => [path, backend])),
    close: async () => {
      await Promise.all(opened.map(({ backend }) => backend.close()));
    },
  };
}

function openMount({ s3, postgres }: MountsConfig[string], env: Environment): S3Backend | PostgresBackend {
  if (s3 === undefined) {
    const { connectionStringVariable: variable, ...options } = postgres ?? {};
    return new PostgresBackend({ ...options, connectionString: variable && env[variable] });
  }
  const { accessKeyIdVariable: id, secretAccessKeyVariable: secret, ...options } = s3;
  const [accessKeyId, secretAccessKey] = [id && env[id], secret && env[secret]];
  const isGiven = accessKeyId !== undefined && secretAccessKey !== undefined;
  return new S3Backend({ ...options, ...(isGiven ? { credentials: { accessKeyId, secretAccessKey } } : {}) });
}
