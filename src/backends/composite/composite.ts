import { ConfigurationError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendErrorCode,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  ExecuteOptions,
  Failure,
  FileData,
  FileDownloadResponse,
  FileRoot,
  FileUploadResponse,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
  ResolveOptions,
  SandboxBackend,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import { lifetimeAt, rootsOf } from "../capabilities.ts";
import {
  type BackendFailure,
  commandsRunIn,
  deletionUnavailable,
  operationError,
  partlyDeleted,
  refusedToDelete,
} from "../errors.ts";
import { bytesOf } from "../file-data.ts";
import { addPrefix, isAtOrBelow, stripPrefix, validatePath, withSlash, withoutSlash } from "../paths.ts";
import { bindRuntime, prefixKeys } from "../runtime.ts";
import { sortByPath } from "../search.ts";
import { type Mount, MountTree, type Target, readMounts, restore } from "./mounts.ts";
import { globTree, grepTree, listTree } from "./search.ts";

/**
 * Deletes a path and what mounts hold below it. The root and mount points are refused; when a backend that
 * is concerned cannot delete, nothing is touched; a later failure tells what was removed before it.
 */
export async function deleteTree(
  tree: MountTree,
  path: string,
  options: CallOptions | undefined,
): Promise<DeleteResult> {
  const owner = tree.targetOf(path);
  if (owner.inner === "/") return refusedToDelete(path);
  const below = tree.below(path);
  for (const mount of [owner.mount, ...below]) {
    if ((await tree.backend(mount)).delete === undefined) return deletionUnavailable(path);
  }
  const own = await deleteAt(tree, owner, options);
  if (own.error !== undefined && !(own.code === "not_found" && below.length > 0)) return own;
  const removed = own.error === undefined ? [path] : [];
  const parts = [own];
  for (const mount of below) {
    const backend = await tree.backend(mount);
    const listed = restore({ mount, inner: "/" }, await backend.ls("/", options));
    if (listed.error !== undefined) return partlyDeleted(path, removed, listed.error);
    for (const entry of listed.files ?? []) {
      const result = await deleteAt(tree, { mount, inner: withoutSlash(entry.path) }, options);
      if (result.error !== undefined) return partlyDeleted(path, removed, result.error);
      removed.push(addPrefix(mount.prefix, withoutSlash(entry.path)));
      parts.push(result);
    }
  }
  if (removed.length === 0) return own;
  const filesUpdate = Object.assign({}, ...parts.map((part) => part.filesUpdate ?? {})) as Record<
    string,
    null
  >;
  const recorded = Object.assign({}, ...parts.map((part) => part.recorded ?? {})) as Record<string, FileData>;
  const isInState = parts.some((part) => part.filesUpdate);
  return {
    path,
    filesUpdate: isInState ? filesUpdate : null,
    ...(Object.keys(recorded).length > 0 ? { recorded } : {}),
  };
}

async function deleteAt(
  tree: MountTree,
  target: Target,
  options: CallOptions | undefined,
): Promise<DeleteResult> {
  const backend = await tree.backend(target.mount);
  const result = await backend.delete?.(target.inner, options);
  return restore(target, result ?? deletionUnavailable(target.inner));
}

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

/** Uploads each file to its owner; answers come in the order of the files. */
export async function uploadTree(
  tree: MountTree,
  files: ReadonlyArray<[string, Uint8Array]>,
  options: CallOptions | undefined,
): Promise<FileUploadResponse[]> {
  return perOwner(
    tree,
    files,
    ([path]) => path,
    async (mount, group): Promise<FileUploadResponse[]> => {
      const backend = await tree.backend(mount);
      if (backend.uploadFiles === undefined) {
        return group.map(({ path }) => ({ path, error: "permission_denied" }));
      }
      const inner = group.map(({ item, target }): [string, Uint8Array] => [target.inner, item[1]]);
      const answers = await backend.uploadFiles(inner, options);
      return answers.map((answer, index) => ({
        ...answer,
        path: group[index]?.path ?? answer.path,
        ...(answer.filesUpdate ? { filesUpdate: prefixKeys(mount.prefix, answer.filesUpdate) } : {}),
      }));
    },
  );
}

/** Downloads each file from its owner; answers come in the order of the paths. */
export async function downloadTree(
  tree: MountTree,
  paths: readonly string[],
  options: CallOptions | undefined,
): Promise<FileDownloadResponse[]> {
  return perOwner(
    tree,
    paths,
    (path) => path,
    async (mount, group) => {
      const backend = await tree.backend(mount);
      if (backend.downloadFiles !== undefined) {
        const answers = await backend.downloadFiles(
          group.map(({ target }) => target.inner),
          options,
        );
        return answers.map((answer, index) => ({ ...answer, path: group[index]?.path ?? answer.path }));
      }
      return Promise.all(
        group.map(async ({ path, target }): Promise<FileDownloadResponse> => {
          const { data, code } = await backend.readRaw(target.inner, options);
          return data === undefined
            ? { path, content: null, error: operationError(code) ?? "file_not_found" }
            : { path, content: bytesOf(data), error: null };
        }),
      );
    },
  );
}

interface Member<Item> {
  item: Item;
  path: string;
  target: Target;
}

async function perOwner<Item, Answer extends FileUploadResponse | FileDownloadResponse>(
  tree: MountTree,
  items: readonly Item[],
  pathOf: (item: Item) => string,
  transfer: (mount: Mount, group: Member<Item>[]) => Promise<Answer[]>,
): Promise<Answer[]> {
  const answers = Array.from<Answer>({ length: items.length });
  const groups = new Map<Mount, (Member<Item> & { index: number })[]>();
  for (const [index, item] of items.entries()) {
    const path = pathOf(item);
    const valid = validatePath(path);
    // The mount at `/` answers for a path that is none: it refuses it as it refuses any other.
    const target = valid.ok ? tree.targetOf(valid.path) : { ...tree.targetOf("/"), inner: path };
    const group = groups.get(target.mount) ?? [];
    group.push({ item, path, target, index });
    groups.set(target.mount, group);
  }
  await Promise.all(
    [...groups].map(async ([mount, group]) => {
      const given = await transfer(mount, group);
      for (const [at, { index }] of group.entries()) {
        const answer = given[at];
        if (answer !== undefined) answers[index] = answer;
      }
    }),
  );
  return answers;
}

const OPTIONS: OptionTable<CompositeOptions> = { executor: "a text" };

/** The operations of a tree of mounts. */
class TreeBackend implements Backend {
  readonly capabilities: Partial<BackendCapabilities>;
  /** There when the tree has an executor, and absent otherwise. */
  declare readonly id?: string;
  declare readonly execute?: SandboxBackend["execute"];
  declare readonly jobs?: SandboxBackend["jobs"];
  declare readonly commands?: SandboxBackend["commands"];
  readonly #tree: MountTree;
  readonly #executor: Executor | undefined;

  constructor(tree: MountTree, executor: Executor | undefined) {
    this.#tree = tree;
    this.#executor = executor;
    this.capabilities = {
      writeMode: true,
      regexGrep: true,
      versions: true,
      abort: true,
      rawRead: true,
      paths: "virtual",
      ...executorCapabilities(executor),
    };
    if (executor !== undefined) Object.assign(this, executionOf(this, executor));
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return new TreeBackend(this.#tree.bind(runtime), this.#executor);
  }

  async lifetimeOf(path: string): Promise<BackendCapabilities["lifetime"]> {
    const valid = validatePath(path);
    if (!valid.ok) return "persistent";
    const { mount, inner } = this.#tree.targetOf(valid.path);
    const parts = [
      { mount, inner },
      ...this.#tree.below(valid.path).map((below) => ({ mount: below, inner: "/" })),
    ];
    const lifetimes = await Promise.all(
      parts.map(async (part) => lifetimeAt(await this.#tree.backend(part.mount), part.inner)),
    );
    return lifetimes.includes("persistent") ? "persistent" : "thread";
  }

  async roots(): Promise<FileRoot[]> {
    const parts = this.#tree.mounts.map(async (mount) => {
      const roots = await rootsOf(await this.#tree.backend(mount));
      return roots.map((root) => ({ ...root, path: addPrefix(mount.prefix, root.path) }));
    });
    return sortByPath((await Promise.all(parts)).flat());
  }

  async followLinks(path: string, options?: ResolveOptions): Promise<string | undefined> {
    const valid = validatePath(path);
    if (!valid.ok) return undefined;
    const { mount, inner } = this.#tree.targetOf(valid.path);
    const backend = await this.#tree.backend(mount);
    if (backend.followLinks === undefined) return valid.path;
    const led = await backend.followLinks(inner, options);
    return led === undefined ? undefined : addPrefix(mount.prefix, led);
  }

  ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, ({ path }) => listTree(this.#tree, path, options));
  }

  read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#owner(filePath, (backend, inner) => backend.read(inner, offset, limit, options));
  }

  readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#owner(filePath, (backend, inner) => backend.readRaw(inner, options));
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", ({ path }) =>
      grepTree(this.#tree, { pattern, path, glob, maxCount, options }),
    );
  }

  glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(path, ({ path }) => globTree(this.#tree, pattern, path, options));
  }

  write(filePath: string, content: string, options?: WriteOptions): Promise<WriteResult> {
    return this.#owner(filePath, (backend, inner) => backend.write(inner, content, options));
  }

  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
    options?: EditOptions,
  ): Promise<EditResult> {
    return this.#owner(filePath, (backend, inner) =>
      backend.edit(inner, oldString, newString, replaceAll, options),
    );
  }

  delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#at(filePath, ({ path }) => deleteTree(this.#tree, path, options));
  }

  uploadFiles(files: Array<[string, Uint8Array]>, options?: CallOptions): Promise<FileUploadResponse[]> {
    return uploadTree(this.#tree, files, options);
  }

  downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return downloadTree(this.#tree, paths, options);
  }

  async #at<Result>(
    path: string,
    run: (target: Target & { path: string }) => Promise<Result>,
  ): Promise<Result | BackendFailure> {
    const valid = validatePath(path);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    return run({ ...this.#tree.targetOf(valid.path), path: valid.path });
  }

  #owner<Result extends Failure & { path?: string }>(
    path: string,
    run: (backend: Backend, inner: string) => Result | Promise<Result>,
  ): Promise<Result | BackendFailure> {
    return this.#at(path, async (target) =>
      restore(target, await run(await this.#tree.backend(target.mount), target.inner)),
    );
  }
}

/**
 * One tree of files out of several backends: the longest route that is a prefix on whole segments owns a
 * path, the default backend the rest. Owners see paths without the prefix; every result and error text
 * shows the path as it was asked for. Listings and searches include the routes below a directory.
 */
export class CompositeBackend extends TreeBackend {
  /** Routes are absolute paths such as `/memories/`; a missing trailing slash makes no difference. */
  constructor(
    defaultBackend: BackendSource,
    routes: Readonly<Record<string, BackendSource>> = {},
    given: CompositeOptions = {},
  ) {
    const options = readOptions("CompositeBackend", given, OPTIONS);
    const mounts = readMounts(defaultBackend, routes);
    super(new MountTree(mounts), executorOf(mounts, options));
  }
}
