import { ConfigurationError } from "../../core/errors.ts";
import type { Backend, BackendRuntime, BackendSource, Failure, FileData } from "../backend.ts";
import { CODES_WITHOUT_PATH } from "../errors.ts";
import { addPrefix, isAtOrBelow, stripPrefix, validatePath } from "../paths.ts";
import { checkBackend, obtainBackend } from "../resolve.ts";
import { ambientRuntime, prefixKeys, scopeRuntime } from "../runtime.ts";

/** One backend in the tree; `prefix` has no trailing slash, that of the default backend is `/`. */
export interface Mount {
  prefix: string;
  source: BackendSource;
}

/** A path as the backend that owns it knows it. */
export interface Target {
  mount: Mount;
  inner: string;
}

/** The prefixes of a tree, longest first, so that the first match owns a path. */
export function readMounts(root: BackendSource, routes: Readonly<Record<string, BackendSource>>): Mount[] {
  checkBackend("The first argument of CompositeBackend (its routes are the second)", root);
  for (const [route, source] of Object.entries(routes)) checkBackend(`The route '${route}'`, source);
  const mounts = Object.entries(routes).map(([route, source]): Mount => {
    const valid = validatePath(route);
    if (!valid.ok || !route.startsWith("/") || valid.path === "/") {
      throw new ConfigurationError(
        "INVALID_ROUTE",
        `The route '${route}' is not usable: give an absolute path other than '/', such as '/memories/'`,
      );
    }
    return { prefix: valid.path, source };
  });
  const twice = mounts.find(
    ({ prefix }, index) => mounts.findIndex((other) => other.prefix === prefix) !== index,
  );
  if (twice !== undefined) {
    throw new ConfigurationError("INVALID_ROUTE", `The route '${twice.prefix}/' is given twice`);
  }
  mounts.sort((left, right) => right.prefix.length - left.prefix.length);
  return [...mounts, { prefix: "/", source: root }];
}

/** A tree of mounts, tied to the runtime of one call or to none. Backends are made when first asked for. */
export class MountTree {
  readonly mounts: readonly Mount[];
  readonly #runtime: BackendRuntime | undefined;
  readonly #made = new Map<Mount, Promise<Backend>>();

  constructor(mounts: readonly Mount[], runtime?: BackendRuntime) {
    this.mounts = mounts;
    this.#runtime = runtime;
  }

  bind(runtime: BackendRuntime): MountTree {
    return new MountTree(this.mounts, runtime);
  }

  /** Who owns a normalized path: the longest prefix on whole segments. */
  targetOf(path: string): Target {
    const mount = this.mounts.find(({ prefix }) => isAtOrBelow(path, prefix));
    // The default backend's prefix is `/`, which every normalized path lies below.
    if (mount === undefined) throw new Error(`no backend owns the path '${path}'`);
    return { mount, inner: stripPrefix(mount.prefix, path) };
  }

  /** Mounts strictly below a directory, which therefore are part of its tree. */
  below(directory: string): Mount[] {
    return this.mounts.filter(({ prefix }) => prefix !== directory && isAtOrBelow(prefix, directory));
  }

  backend(mount: Mount): Promise<Backend> {
    const ambient = this.#runtime === undefined ? ambientRuntime() : undefined;
    if (ambient !== undefined) return obtainBackend(mount.source, scope(ambient, mount));
    const known = this.#made.get(mount);
    if (known !== undefined) return known;
    const made = obtainBackend(mount.source, scope(this.#runtime, mount));
    this.#made.set(mount, made);
    return made;
  }
}

const scope = (runtime: BackendRuntime | undefined, { prefix }: Mount): BackendRuntime | undefined =>
  runtime === undefined ? undefined : scopeRuntime(runtime, prefix);

interface WithPaths extends Failure {
  path?: string;
  recorded?: Record<string, FileData>;
  filesUpdate?: Record<string, never> | Record<string, unknown> | null;
}

/** A result of a mounted backend with the prefix back in its path, its changes and its error text. */
export function restore<Result extends WithPaths>(target: Target, result: Result): Result {
  const { prefix } = target.mount;
  if (prefix === "/") return result;
  const restored = { ...result };
  if (result.path !== undefined) restored.path = addPrefix(prefix, result.path);
  if (result.filesUpdate !== undefined && result.filesUpdate !== null) {
    // The keys change, the kind of values does not.
    restored.filesUpdate = prefixKeys(prefix, result.filesUpdate as Record<string, null>);
  }
  if (result.recorded !== undefined) restored.recorded = prefixKeys(prefix, result.recorded);
  if (result.error !== undefined) restored.error = restoreText(target, result.error, result.code);
  return restored;
}

/** The text of a failure, its first mention of the inner path replaced by the path that was asked for. */
function restoreText({ mount, inner }: Target, text: string, code: Failure["code"]): string {
  if (code !== undefined && CODES_WITHOUT_PATH.has(code)) return text;
  for (let at = text.indexOf(inner); at !== -1; at = text.indexOf(inner, at + 1)) {
    const before = text[at - 1];
    const after = text[at + inner.length];
    if (isBoundary(before) && isBoundary(after)) {
      return text.slice(0, at) + addPrefix(mount.prefix, inner) + text.slice(at + inner.length);
    }
  }
  return text;
}

const isBoundary = (character: string | undefined): boolean =>
  character === undefined || /[\s'"`:;,.()[\]]/.test(character);
