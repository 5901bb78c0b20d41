import { type OptionTable, readOptions } from "../../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  Failure,
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
import { deleteTree } from "./delete.ts";
import {
  type CompositeOptions,
  type Executor,
  executionOf,
  executorCapabilities,
  executorOf,
} from "./execute.ts";
import { globTree, grepTree, listTree } from "./search.ts";
import { downloadTree, uploadTree } from "./transfer.ts";
import type { BackendFailure } from "../errors.ts";
import { lifetimeAt } from "../lifetime.ts";
import { MountTree, readMounts, restore, type Target } from "./mounts.ts";
import { sortByPath } from "../flat-files.ts";
import { addPrefix, validatePath } from "../paths.ts";
import { rootsOf } from "../roots.ts";
import { bindRuntime } from "../runtime.ts";

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
