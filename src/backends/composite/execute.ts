import { ConfigurationError } from "../../core/errors.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendErrorCode,
  ExecuteOptions,
  SandboxBackend,
} from "../backend.ts";
import { commandsRunIn } from "../errors.ts";
import type { Mount } from "./mounts.ts";
import { isAtOrBelow, stripPrefix, validatePath, withSlash } from "../paths.ts";

export interface CompositeOptions {
  /**
   * The route whose backend runs commands, such as `/workspace/`; it must be a ready backend. Default: the
   * default backend, when it is one that runs commands.
   */
  executor?: string;
}

/** The one backend of a tree that runs commands, and where it is mounted. */
export interface Executor {
  prefix: string;
  backend: SandboxBackend;
}

export function executorOf(mounts: readonly Mount[], { executor }: CompositeOptions): Executor | undefined {
  if (executor === undefined) {
    const root = mounts.find(({ prefix }) => prefix === "/");
    return root === undefined || !runsCommands(root.source)
      ? undefined
      : { prefix: "/", backend: root.source };
  }
  const valid = validatePath(executor);
  const mount = mounts.find(({ prefix }) => valid.ok && prefix === valid.path);
  if (mount === undefined || !runsCommands(mount.source)) {
    throw new ConfigurationError(
      "INVALID_EXECUTOR",
      `The executor '${executor}' must be a route with a ready backend that runs commands`,
    );
  }
  return { prefix: mount.prefix, backend: mount.source };
}

const runsCommands = (source: Mount["source"]): source is SandboxBackend =>
  typeof source === "object" && "execute" in source && typeof source.execute === "function";

/** What a tree says about the commands it runs. */
export function executorCapabilities(executor: Executor | undefined): Partial<BackendCapabilities> {
  const { executeOptions, isolation } = executor?.backend.capabilities ?? {};
  return {
    ...(executeOptions === undefined ? {} : { executeOptions }),
    ...(isolation === undefined ? {} : { isolation }),
  };
}

/** What runs commands, as a tree offers it: working directories are paths of the tree. */
export function executionOf(
  tree: Pick<Backend, "ls">,
  executor: Executor,
): Pick<SandboxBackend, "id" | "execute" | "jobs" | "commands"> {
  const { backend } = executor;
  const { jobs, commands } = backend;
  return {
    id: backend.id,
    ...(commands === undefined ? {} : { commands: { ...commands, folder: executor.prefix } }),
    execute: async (command, options = {}) => {
      const inner = await innerOptions(tree, executor, options);
      if ("error" in inner) return { output: `Error: ${inner.error}`, exitCode: 1, truncated: false };
      return backend.execute(command, inner);
    },
    ...(jobs === undefined
      ? {}
      : {
          jobs: {
            start: async (command, options = {}) => {
              const inner = await innerOptions(tree, executor, options);
              return "error" in inner ? inner : jobs.start(command, inner);
            },
            list: () => jobs.list(),
            read: (id) => jobs.read(id),
            stop: (id) => jobs.stop(id),
          },
        }),
  };
}

/** The options with the working directory as the executor knows it; it must be one of the executor's. */
async function innerOptions(
  tree: Pick<Backend, "ls">,
  { prefix }: Executor,
  { cwd, ...rest }: ExecuteOptions,
): Promise<ExecuteOptions | { error: string; code: BackendErrorCode }> {
  if (cwd === undefined) return rest;
  const valid = validatePath(cwd);
  if (!valid.ok) return valid;
  if (!isAtOrBelow(valid.path, prefix)) {
    return commandsRunIn(withSlash(prefix), valid.path);
  }
  const { error, code = "io" } = await tree.ls(valid.path, rest.signal ? { signal: rest.signal } : {});
  return error === undefined ? { ...rest, cwd: stripPrefix(prefix, valid.path) } : { error, code };
}
