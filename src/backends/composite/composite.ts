import { defined } from "../../core/unknown.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import type * as port from "../backend.ts";
import type { Located, Operations } from "../checked-backend.ts";
import { COMPLETE, CheckedBackend, PARALLEL_TRANSFERS, toDownload, uploadTo } from "../checked-backend.ts";
import { type BackendFailure, errors } from "../errors.ts";
import type { ExecuteOptions, SandboxBackend } from "../executor.ts";
import { addPrefix, isAtOrBelow, stripPrefix, validatePath, withSlash, withoutSlash } from "../paths.ts";
import { bindRuntime, lifetimeAt, listRoots } from "../runtime.ts";
import { sortByPath } from "../search.ts";
import type { Target, WithPaths } from "./mounts.ts";
import { MountTree, globTree, grepTree, listTree, ownerOptions, readMounts, restore } from "./mounts.ts";
import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

async function treeRefusal(tree: MountTree, path: string): Promise<BackendFailure | undefined> {
  const owner = tree.targetOf(path);
  if (owner.inner === "/") return errors.refusedToDelete(path);
  for (const mount of [owner.mount, ...tree.below(path)]) {
    if ((await tree.backend(mount)).delete === undefined) return errors.deletionUnavailable(path);
  }
  return undefined;
}

async function deleteAt(
  tree: MountTree,
  target: Target,
  options: port.CallOptions,
): Promise<port.DeleteResult> {
  const backend = await tree.backend(target.mount);
  const result = await backend.delete?.(target.inner, options);
  return restore(target, result ?? errors.deletionUnavailable(target.inner));
}

export interface CompositeOptions {
  /**
   * The route whose backend runs commands, such as `/workspace/`; it must be a ready backend. Default: the
   * default backend, when it is one that runs commands.
   */
  executor?: string;
}

/** The one backend of a tree that runs commands, and where it is mounted. */
interface Executor {
  prefix: string;
  backend: SandboxBackend;
}

const runsCommands = (source: port.BackendSource | undefined): source is SandboxBackend =>
  typeof source === "object" && "execute" in source && typeof source.execute === "function";

/** Translates the working directory into a path of the executor. Fails for a path outside the executor's mount. */
async function innerOptions(
  tree: Pick<port.Backend, "ls">,
  { prefix }: Executor,
  { cwd, ...rest }: ExecuteOptions,
): Promise<ExecuteOptions | BackendFailure> {
  if (cwd === undefined) return rest;
  const valid = validatePath(cwd);
  if (!valid.ok) return valid;
  if (!isAtOrBelow(valid.path, prefix)) return errors.outsideCommandFolder(withSlash(prefix), valid.path);
  const listed = await tree.ls(valid.path, rest.signal ? { signal: rest.signal } : {});
  const { files: [first] = [], error, code = "io" } = listed;
  if (first?.path === valid.path) return errors.notDirectory(valid.path);
  return error === undefined ? { ...rest, cwd: stripPrefix(prefix, valid.path) } : { error, code };
}

interface TreePath extends Located, Target {
  tree: MountTree;
}

function locate(tree: MountTree, given: string): TreePath | BackendFailure {
  const valid = validatePath(given);
  return valid.ok ? { path: valid.path, tree, ...tree.targetOf(valid.path) } : valid;
}

/** Asks the owner of a path, and puts the prefix of its mount back into the result. */
const askOwner = async <Options extends port.CallOptions, Result extends WithPaths>(
  at: TreePath,
  options: Options,
  ask: (owner: port.Backend, path: string, options: Options) => port.MaybePromise<Result>,
): Promise<Result> =>
  restore(at, await ask(await at.tree.backend(at.mount), at.inner, ownerOptions(at, options)));

const COMPOSITE_OPERATIONS: Operations<TreePath> = {
  parallel: PARALLEL_TRANSFERS,
  ls: ({ tree, path }, options) => listTree(tree, path, options),
  read: (at, { offset, limit }, options) =>
    askOwner(at, options, (owner, path, own) => owner.read(path, offset, limit, own)),
  readRaw: (at, options) => askOwner(at, options, (owner, path, own) => owner.readRaw(path, own)),
  grep: ({ tree }, search) => grepTree(tree, search),
  glob: ({ tree, path }, pattern, options) => globTree(tree, pattern, path, options),
  write: (at, content, options) =>
    askOwner(at, options, (owner, path, own) => owner.write(path, content, own)),
  edit: (at, { oldString, newString, replaceAll, ...options }) =>
    askOwner(at, options, (owner, path, own) => owner.edit(path, oldString, newString, replaceAll, own)),
  // Deletes a path and the contents of mounts below it. Refuses the root and mount points. Deletes nothing if one of
  // the backends cannot delete. A later failure names the entries that were already removed.
  delete: async ({ tree, path }, options) => {
    const refused = await treeRefusal(tree, path);
    if (refused !== undefined) return refused;
    const owner = tree.targetOf(path);
    const below = tree.below(path);
    const own = await deleteAt(tree, owner, ownerOptions(owner, options));
    if (own.error !== undefined && !(own.code === "not_found" && below.length > 0)) return own;
    const removed = own.error === undefined ? [path] : [];
    const { signal } = options;
    const parts = [own];
    for (const mount of below) {
      const backend = await tree.backend(mount);
      const listed = restore({ mount, inner: "/" }, await backend.ls("/", { signal }));
      if (listed.error !== undefined) return errors.partlyDeleted(path, removed, listed.error);
      for (const entry of listed.files ?? []) {
        const result = await deleteAt(tree, { mount, inner: withoutSlash(entry.path) }, { signal });
        if (result.error !== undefined) return errors.partlyDeleted(path, removed, result.error);
        removed.push(addPrefix(mount.prefix, withoutSlash(entry.path)));
        parts.push(result);
      }
    }
    if (removed.length === 0) return own;
    // The merged parts are records of these types.
    const filesUpdate = Object.assign({}, ...parts.map((part) => part.filesUpdate)) as Record<string, null>;
    const recorded = Object.assign({}, ...parts.map((part) => part.recorded)) as Record<
      string,
      port.FileData
    >;
    return {
      path,
      filesUpdate: parts.some((part) => part.filesUpdate) ? filesUpdate : null,
      ...(Object.keys(recorded).length > 0 ? { recorded } : {}),
    };
  },
  refusal: async (at, change, options) => {
    const own = change === "delete" ? await treeRefusal(at.tree, at.path) : undefined;
    const failure = await askOwner<port.CallOptions, port.Failure>(
      at,
      options,
      async (owner, path, given) => own ?? (await owner.refusal?.(change, path, given)) ?? {},
    );
    return failure.error === undefined ? undefined : failure;
  },
  upload: (at, bytes, options) =>
    askOwner(at, options, (owner, path, own) => uploadTo(owner, path, bytes, own)),
  download: async ({ tree, mount, inner }, options) => {
    const owner = await tree.backend(mount);
    const own = ownerOptions({ mount }, options);
    const [answer] = (await owner.downloadFiles?.([inner], own)) ?? [];
    return answer ?? toDownload(inner, await owner.readRaw(inner, own));
  },
};

/** A tree of mounts, tied to the runtime of one call or to none. */
class TreeBackend extends CheckedBackend {
  readonly capabilities: Partial<port.BackendCapabilities>;
  /** Absent unless the tree has an executor. */
  declare readonly id?: string;
  declare readonly execute?: SandboxBackend["execute"];
  declare readonly jobs?: SandboxBackend["jobs"];
  declare readonly commands?: SandboxBackend["commands"];
  readonly #tree: MountTree;
  readonly #executor: Executor | undefined;

  constructor(tree: MountTree, executor: Executor | undefined) {
    super(COMPOSITE_OPERATIONS, (path) => locate(tree, path));
    this.#tree = tree;
    this.#executor = executor;
    const { executeOptions, isolation, latency } = executor?.backend.capabilities ?? {};
    const ofExecutor = defined({ executeOptions, isolation, latency });
    this.capabilities = { ...COMPLETE, paths: "virtual", ...ofExecutor };
    if (executor === undefined) return;
    const { backend } = executor;
    const { id, jobs, commands } = backend;
    // Working directories of commands are paths of the tree.
    const members: Pick<SandboxBackend, "id" | "execute" | "jobs" | "commands"> = {
      id,
      ...(commands === undefined ? {} : { commands: { ...commands, folder: executor.prefix } }),
      execute: async (command, options = {}) => {
        const inner = await innerOptions(this, executor, options);
        if ("error" in inner) return { output: `Error: ${inner.error}`, exitCode: 1, truncated: false };
        return backend.execute(command, inner);
      },
      ...(jobs === undefined
        ? {}
        : {
            jobs: {
              start: async (command, options = {}) => {
                const inner = await innerOptions(this, executor, options);
                return "error" in inner ? inner : jobs.start(command, inner);
              },
              list: () => jobs.list(),
              read: (job) => jobs.read(job),
              stop: (job) => jobs.stop(job),
            },
          }),
    };
    Object.assign(this, members);
  }

  [bindRuntime](runtime: port.BackendRuntime): port.Backend {
    return new TreeBackend(this.#tree.bind(runtime), this.#executor);
  }

  async lifetimeOf(path: string): Promise<port.BackendCapabilities["lifetime"]> {
    const at = locate(this.#tree, path);
    if ("error" in at) return "persistent";
    const below = this.#tree.below(at.path).map((mount) => ({ mount, inner: "/" }));
    const lifetimes = await Promise.all(
      [at, ...below].map(async ({ mount, inner }) => lifetimeAt(await this.#tree.backend(mount), inner)),
    );
    return lifetimes.includes("persistent") ? "persistent" : "thread";
  }

  async roots(): Promise<port.FileRoot[]> {
    const parts = this.#tree.mounts.map(async (mount) => {
      const roots = await listRoots(await this.#tree.backend(mount));
      return roots.map((root) => ({ ...root, path: addPrefix(mount.prefix, root.path) }));
    });
    return sortByPath((await Promise.all(parts)).flat());
  }

  async followLinks(path: string, options?: port.ResolveOptions): Promise<string | undefined> {
    const at = locate(this.#tree, path);
    if ("error" in at) return undefined;
    const backend = await this.#tree.backend(at.mount);
    if (backend.followLinks === undefined) return at.path;
    const led = await backend.followLinks(at.inner, options);
    return led === undefined ? undefined : addPrefix(at.mount.prefix, led);
  }
}

/**
 * Joins several backends to one tree of files. A path belongs to the longest route that is its prefix on whole
 * segments, and otherwise to the default backend. Owners see paths without the prefix; results and error texts show
 * paths of the tree. Listings and searches include the routes below a directory.
 */
export class CompositeBackend extends TreeBackend {
  /** Routes are absolute paths such as `/memories/`; a missing trailing slash makes no difference. */
  constructor(
    defaultBackend: port.BackendSource,
    routes: Readonly<Record<string, port.BackendSource>> = {},
    given: CompositeOptions = {},
  ) {
    const options = readOptions("CompositeBackend", given, { executor: "a text" });
    const mounts = readMounts(defaultBackend, routes);
    const named = validatePath(options.executor ?? "/");
    const mount = mounts.find(({ prefix }) => named.ok && prefix === named.path);
    const { prefix, source } = mount ?? { prefix: "/", source: undefined };
    const executor = runsCommands(source) ? { prefix, backend: source } : undefined;
    if (options.executor !== undefined && executor === undefined)
      throw new ConfigurationError("INVALID_EXECUTOR", fill(texts.executorRoute, options.executor));
    super(new MountTree(mounts), executor);
  }
}
