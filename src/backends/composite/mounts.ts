import { ConfigurationError } from "../../core/errors.ts";
import type * as port from "../backend.ts";
import { CODES_WITHOUT_PATH } from "../errors.ts";
import { type Glob, compileGlob, patternFrom } from "../glob.ts";
import {
  addPrefix,
  isAtOrBelow,
  relativeTo,
  stripPrefix,
  validatePath,
  withSlash,
  withoutSlash,
} from "../paths.ts";
import { ambientRuntime, checkBackend, obtainBackend, prefixKeys, scopeRuntime } from "../runtime.ts";
import { type Search, sortByPath } from "../search.ts";
import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/** A backend in the tree. Its prefix has no trailing slash; the default backend has the prefix `/`. */
export interface Mount {
  prefix: string;
  source: port.BackendSource;
}

/** A path as the backend that owns it knows it. */
export interface Target {
  mount: Mount;
  inner: string;
}

/** Reads the routes of a tree, longest prefix first, so that the first match owns a path. */
export function readMounts(
  root: port.BackendSource,
  routes: Readonly<Record<string, port.BackendSource>>,
): Mount[] {
  checkBackend("The first argument of CompositeBackend (its routes are the second)", root);
  for (const [route, source] of Object.entries(routes)) checkBackend(`The route '${route}'`, source);
  const mounts = Object.entries(routes).map(([route, source]): Mount => {
    const valid = validatePath(route);
    if (!valid.ok || !route.startsWith("/") || valid.path === "/") {
      throw new ConfigurationError("INVALID_ROUTE", fill(texts.unusableRoute, route));
    }
    return { prefix: valid.path, source };
  });
  const twice = mounts.find(
    ({ prefix }, index) => mounts.findIndex((other) => other.prefix === prefix) !== index,
  );
  if (twice !== undefined)
    throw new ConfigurationError("INVALID_ROUTE", `The route '${twice.prefix}/' is given twice`);
  mounts.sort((left, right) => right.prefix.length - left.prefix.length);
  return [...mounts, { prefix: "/", source: root }];
}

/** A tree of mounts, tied to the runtime of one call or to none. Backends are made when first asked for. */
export class MountTree {
  readonly mounts: readonly Mount[];
  readonly #runtime: port.BackendRuntime | undefined;
  readonly #made = new Map<Mount, Promise<port.Backend>>();

  constructor(mounts: readonly Mount[], runtime?: port.BackendRuntime) {
    this.mounts = mounts;
    this.#runtime = runtime;
  }

  bind(runtime: port.BackendRuntime): MountTree {
    return new MountTree(this.mounts, runtime);
  }

  /** Finds the owner of a normalized path: the mount with the longest prefix on whole segments. */
  targetOf(path: string): Target {
    const mount = this.mounts.find(({ prefix }) => isAtOrBelow(path, prefix));
    // Cannot happen: every normalized path lies below `/`, the prefix of the default backend.
    if (mount === undefined) throw new Error(`no backend owns the path '${path}'`);
    return { mount, inner: stripPrefix(mount.prefix, path) };
  }

  below(directory: string): Mount[] {
    return this.mounts.filter(({ prefix }) => prefix !== directory && isAtOrBelow(prefix, directory));
  }

  backend(mount: Mount): Promise<port.Backend> {
    const ambient = this.#runtime === undefined ? ambientRuntime() : undefined;
    if (ambient !== undefined) return obtainBackend(mount.source, scopeRuntime(ambient, mount.prefix));
    const known = this.#made.get(mount);
    if (known !== undefined) return known;
    const runtime = this.#runtime && scopeRuntime(this.#runtime, mount.prefix);
    const made = obtainBackend(mount.source, runtime);
    this.#made.set(mount, made);
    return made;
  }
}

export interface WithPaths extends port.Failure {
  path?: string;
  otherNames?: readonly string[];
  recorded?: Record<string, port.FileData>;
  filesUpdate?: Record<string, never> | Record<string, unknown> | null;
}

/** Puts the prefix of a mount back into the path, the changes and the error text of a result. */
export function restore<Result extends WithPaths>(target: Target, result: Result): Result {
  const { prefix } = target.mount;
  if (prefix === "/") return result;
  const restored = { ...result };
  if (result.path !== undefined) restored.path = addPrefix(prefix, result.path);
  if (result.otherNames !== undefined)
    restored.otherNames = result.otherNames.map((path) => addPrefix(prefix, path));
  if (result.filesUpdate !== undefined && result.filesUpdate !== null) {
    // The keys change, the kind of values does not.
    restored.filesUpdate = prefixKeys(prefix, result.filesUpdate as Record<string, null>);
  }
  if (result.recorded !== undefined) restored.recorded = prefixKeys(prefix, result.recorded);
  if (result.error !== undefined) restored.error = restoreText(target, result.error, result.code);
  return restored;
}

/** Replaces the first mention of the inner path in an error text by the path of the tree. */
function restoreText({ mount, inner }: Target, text: string, code: port.Failure["code"]): string {
  if (code !== undefined && CODES_WITHOUT_PATH.has(code)) return text;
  for (let at = text.indexOf(inner); at !== -1; at = text.indexOf(inner, at + 1)) {
    const before = text[at - 1];
    const after = text[at + inner.length];
    if (isBoundary(before) && isBoundary(after))
      return text.slice(0, at) + addPrefix(mount.prefix, inner) + text.slice(at + inner.length);
  }
  return text;
}

const isBoundary = (character: string | undefined): boolean =>
  character === undefined || /[\s'"`:;,.()[\]]/.test(character);

/** The options of a call as the owner of its path knows them. */
export function ownerOptions<Options extends port.CallOptions>(
  { mount }: Pick<Target, "mount">,
  options: Options,
): Options {
  const { realPath, hides } = options;
  if (mount.prefix === "/" || (realPath ?? hides) === undefined) return options;
  return {
    ...options,
    realPath: realPath && stripPrefix(mount.prefix, realPath),
    hides: hides && ((path) => hides(addPrefix(mount.prefix, path))),
  };
}

function restoreEntry({ mount: { prefix } }: Target, entry: port.FileInfo): port.FileInfo {
  const { path, real_path: real } = entry;
  const restored = { ...entry, path: addPrefix(prefix, path) };
  return real === undefined ? restored : { ...restored, real_path: addPrefix(prefix, real) };
}

/** The listing of the owner of `directory`, with an entry for each mount at or on the way below it. */
export async function listTree(
  tree: MountTree,
  directory: string,
  options: port.CallOptions,
): Promise<port.LsResult> {
  const target = tree.targetOf(directory);
  const backend = await tree.backend(target.mount);
  const owner = restore<port.LsResult>(target, await backend.ls(target.inner, ownerOptions(target, options)));
  const below = tree.below(directory);
  const hasOnlyMounts = owner.code === "not_found" && below.length > 0;
  if (owner.error !== undefined && !hasOnlyMounts) return owner;
  const entries = new Map<string, port.FileInfo>();
  for (const file of owner.files ?? []) {
    const entry = restoreEntry(target, file);
    // A mount hides the entries that the owner has at or below its prefix.
    if (tree.targetOf(withoutSlash(entry.path)).mount === target.mount) entries.set(entry.path, entry);
  }
  for (const { prefix } of below) {
    const [name = ""] = relativeTo(directory, prefix).split("/");
    const path = withSlash(withSlash(directory) + name);
    entries.set(path, { ...entries.get(path), path, is_dir: true });
    entries.delete(withoutSlash(path));
  }
  const { error: _error, code: _code, ...rest } = owner;
  return { ...rest, files: sortByPath([...entries.values()]) };
}

export async function globTree(
  tree: MountTree,
  given: string,
  directory: string,
  options: port.CallOptions,
): Promise<port.GlobResult> {
  const pattern = patternFrom(given, directory);
  const compiled = compileGlob(pattern);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const parts = await askMounts<port.GlobResult>(tree, directory, async (target) => {
    const { mount, inner, isOwner } = target;
    const innerPattern = isOwner ? pattern : patternBelow(compiled.glob, directory, mount);
    if (innerPattern === undefined) return { files: [] };
    return (await tree.backend(mount)).glob(innerPattern, inner, searchOptions(target, options));
  });
  const files = parts.answers.flatMap(({ target, result }) =>
    (result.files ?? [])
      .map((file) => restoreEntry(target, file))
      .filter(({ path }) => tree.targetOf(withoutSlash(path)).mount === target.mount)
      .filter(({ path }) => compiled.glob.matches(relativeTo(directory, path))),
  );
  return parts.failure ?? { ...mergeResults(parts), files: sortByPath(files) };
}

/** Searches all mounts. Each returns its first matches in path order, so the first matches of all are exact. */
export async function grepTree(tree: MountTree, search: Search): Promise<port.GrepResult> {
  const { pattern, path: directory, maxCount, options } = search;
  const glob = typeof search.glob === "string" ? patternFrom(search.glob, directory) : undefined;
  const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
  if (!filter.ok) return { error: filter.error, code: filter.code };
  const parts = await askMounts<port.GrepResult>(tree, directory, async (target) => {
    const { mount, inner, isOwner } = target;
    const innerGlob = isOwner || glob === undefined ? glob : patternBelow(filter.glob, directory, mount);
    if (innerGlob === undefined && glob !== undefined) return { matches: [] };
    return (await tree.backend(mount)).grep(
      pattern,
      inner,
      innerGlob,
      maxCount,
      searchOptions(target, options),
    );
  });
  const matches = parts.answers.flatMap(({ target, result }) =>
    (result.matches ?? [])
      .map((match): port.GrepMatch => ({ ...match, path: addPrefix(target.mount.prefix, match.path) }))
      .filter(({ path }) => tree.targetOf(path).mount === target.mount),
  );
  // The sort is stable, so the lines of one file stay in order.
  const ordered = sortByPath(matches);
  const merged = mergeResults(parts);
  return (
    parts.failure ?? {
      ...merged,
      matches: ordered.slice(0, maxCount),
      truncated: merged.truncated || ordered.length > maxCount,
    }
  );
}

/** The path of a search is that of the owner alone: mounts below it are searched from their roots. */
const searchOptions = <Options extends port.CallOptions>(
  target: Target & { isOwner: boolean },
  options: Options,
): Options => ownerOptions(target, target.isOwner ? options : { ...options, realPath: undefined });

/** The pattern for a mount below the searched directory; undefined if nothing in the mount can match. */
function patternBelow(glob: Glob, directory: string, mount: Mount): string | undefined {
  const below = glob.below(relativeTo(directory, mount.prefix));
  // The rest of a long pattern can exceed the limits of patterns. The mount then returns all files.
  return below === undefined || compileGlob(below, { nameAtAnyDepth: true }).ok ? below : "**";
}

/**
 * Asks the owner of a directory and all mounts below it at once. A failure of one does not hide the others; `failure`
 * is set if every mount failed, or for a reason that holds for all.
 */
async function askMounts<Result extends port.Failure>(
  tree: MountTree,
  directory: string,
  ask: (target: Target & { isOwner: boolean }) => Promise<Result>,
) {
  const owner = tree.targetOf(directory);
  const targets = [
    { ...owner, isOwner: true },
    ...tree.below(directory).map((mount) => ({ mount, inner: "/", isOwner: false })),
  ];
  const all = await Promise.all(
    targets.map(async (target) => ({ target, result: restore(target, await ask(target)) })),
  );
  const answers = all.filter(({ result }) => result.error === undefined);
  const failures = all.filter(({ result }) => result.error !== undefined);
  const worst = failures.find(({ result }) => result.code === "invalid_pattern" || result.code === "aborted");
  const failure = worst ?? (answers.length === 0 ? failures[0] : undefined);
  const notes = failures
    .filter(({ target, result }) => !(target.isOwner && result.code === "not_found"))
    .map(({ target, result }) => `${withSlash(target.mount.prefix)}: ${result.error ?? ""}`);
  return { answers, notes, failure: failure?.result };
}

function mergeResults(parts: { answers: { result: port.GlobResult | port.GrepResult }[]; notes: string[] }) {
  const results = parts.answers.map(({ result }) => result);
  const notes = [...results.flatMap((result) => result.notes ?? []), ...parts.notes];
  return {
    truncated: results.some((result) => result.truncated === true),
    skipped: results.reduce((sum, result) => sum + (result.skipped ?? 0), 0),
    ...(notes.length === 0 ? {} : { notes }),
  };
}
