import { ConfigurationError } from "../core/errors.ts";
import type {
  Backend,
  BackendCapabilities,
  ExecuteOptions,
  ExecuteResponse,
  SandboxBackend,
} from "./backend.ts";
import type { Mount } from "./mounts.ts";
import { isAtOrBelow, stripPrefix, validatePath, withSlash } from "./paths.ts";

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

/** Runs a command; a working directory is a path of the tree and must be one of the executor's. */
export async function executeIn(
  tree: Pick<Backend, "ls">,
  { prefix, backend }: Executor,
  command: string,
  options: ExecuteOptions = {},
): Promise<ExecuteResponse> {
  const { cwd, ...rest } = options;
  if (cwd === undefined) return backend.execute(command, rest);
  const valid = validatePath(cwd);
  if (!valid.ok) return refused(valid.error);
  if (!isAtOrBelow(valid.path, prefix)) {
    return refused(`Commands run in ${withSlash(prefix)} and below only, not in '${valid.path}'`);
  }
  const listed = await tree.ls(valid.path, options.signal === undefined ? {} : { signal: options.signal });
  if (listed.error !== undefined) return refused(listed.error);
  return backend.execute(command, { ...rest, cwd: stripPrefix(prefix, valid.path) });
}

const refused = (reason: string): ExecuteResponse => ({
  output: `Error: ${reason}`,
  exitCode: 1,
  truncated: false,
});
