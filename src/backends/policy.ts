/** A backend with rules about its paths, which hold for the names of files and for the places that links lead to. */
import { type OptionTable, readOptions } from "../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  FileInfo,
  FileRoot,
  MaybePromise,
  ResolveOptions,
  WriteOptions,
} from "./backend.ts";
import {
  CheckedBackend,
  type Edit,
  type Located,
  type Method,
  type Operations,
  PARALLEL_TRANSFERS,
  type Search,
  uploadTo,
} from "./checked-backend.ts";
import * as errors from "./errors.ts";
import type { PageRequest } from "./pages.ts";
import {
  addPrefix,
  isAtOrBelow,
  joinPath,
  stripPrefix,
  validatePath,
  withSlash,
  withoutSlash,
} from "./paths.ts";
import { NamedPlaces, type PolicyOptions, PolicyRules } from "./policy-rules.ts";
import { bindRuntime, checkBackend, lifetimeAt, obtainBackend, rootsOf } from "./runtime.ts";
import { grepShown } from "./search.ts";

const OPTIONS: OptionTable<PolicyOptions> = {
  readOnly: "true or false",
  denyPrefixes: "a list of non-empty texts",
  denyGlobs: "a list of non-empty texts",
  allowPrefixes: "a list of non-empty texts",
};

/** The rules as they hold while some of the paths that they name are links. */
class RulesInPlace {
  readonly #rules: PolicyRules;
  readonly #named: NamedPlaces;

  constructor(rules: PolicyRules, named: NamedPlaces) {
    this.#rules = rules;
    this.#named = named;
  }

  get hides(): boolean {
    return this.#rules.hides;
  }

  isHidden(path: string): boolean {
    return this.#named.namesOf(path).some((name) => this.#rules.isHidden(name));
  }

  /** True for a path that is listed, because it or something below it is not hidden. */
  isListed(path: string): boolean {
    return this.#named
      .namesOf(path)
      .every((name) => !this.#rules.isHidden(name) || this.#rules.isOnTheWay(name));
  }

  isReadOnly(path: string): boolean {
    return this.#named.namesOf(path).some((name) => this.#rules.isReadOnly(name));
  }

  isAsked(path: string): boolean {
    return this.#named.namesOf(path).some((name) => this.#rules.isAsked(name));
  }

  hasReadOnlyBelow(path: string): boolean {
    const names = [...this.#named.namesOf(path), ...this.#named.below(path)];
    return names.some((name) => this.#rules.hasReadOnlyBelow(name));
  }
}

interface PolicyPath extends Located {
  /** The path as it was checked; undefined for an invalid one, which the inner backend refuses. */
  at: string | undefined;
  /** Place of the entry, which differs from `at` if links lead there. Absent if the inner backend has no links. */
  real?: string;
  /** True for the path of a link, which `delete` removes without its target. */
  isLink?: boolean;
  rules: RulesInPlace;
}

/**
 * The options of a call for the inner backend, which works at the place that was judged. A change leaves alone what has
 * a read-only name, too.
 */
function optionsAt<Options extends CallOptions>(
  { real, rules }: PolicyPath,
  options: Options,
  isChange = false,
): Options {
  if (real === undefined) return options;
  const { hides: outer } = options;
  if (isChange) {
    const protects = (path: string): boolean => rules.isHidden(path) || rules.isReadOnly(path);
    return { ...options, realPath: real, hides: (path) => protects(path) || outer?.(path) === true };
  }
  const hides = (path: string): boolean => rules.isHidden(path) || outer?.(path) === true;
  return { ...options, realPath: real, hides: rules.hides ? hides : outer };
}

/** Methods that work in a directory above visible files, too. */
const SEARCHES: ReadonlySet<Method> = new Set<Method>(["ls", "glob", "grep"]);
/** Methods that do not follow a link at the end of a path. */
const OF_ENTRIES: ReadonlySet<Method> = new Set<Method>(["write", "upload", "delete"]);

const REFUSALS: Partial<Record<Method, (path: string) => errors.BackendFailure>> = {
  write: errors.writesNotAllowed,
  upload: errors.writesNotAllowed,
  edit: errors.editsNotAllowed,
  delete: errors.deletesNotAllowed,
};

/** The failures for a link whose target is hidden. A missing file has the same, but a file can be made there. */
const MISSING: Partial<Record<Method, (path: string) => errors.BackendFailure>> = {
  ls: errors.directoryNotFound,
  glob: errors.directoryNotFound,
  grep: errors.pathNotFound,
  write: errors.permissionDenied,
  upload: errors.permissionDenied,
};

const UNASKED =
  "files that need a person's approval to be read. Read them, or search in their folder, to ask for it";

class PolicyOperations implements Operations {
  readonly parallel = PARALLEL_TRANSFERS;
  readonly #rules: PolicyRules;
  readonly #byName: RulesInPlace;
  readonly #inner: () => Promise<Backend>;

  constructor(rules: PolicyRules, inner: () => Promise<Backend>) {
    this.#rules = rules;
    this.#byName = new RulesInPlace(rules, new NamedPlaces([]));
    this.#inner = inner;
  }

  locate(path: string): { ok: true } & PolicyPath {
    const valid = validatePath(path);
    return { ok: true, path, at: valid.ok ? valid.path : undefined, rules: this.#byName };
  }

  attempt<Result>(
    located: PolicyPath,
    { method, options }: { method: Method; options: CallOptions },
    run: (at: PolicyPath) => MaybePromise<Result>,
  ): MaybePromise<Result | errors.BackendFailure> {
    const { at } = located;
    if (at === undefined) return run(located);
    const refusal = REFUSALS[method];
    if (isHiddenFrom(method, at, located.rules)) return errors.sensitivePath();
    if (refusal !== undefined && located.rules.isReadOnly(at)) return refusal(at);
    const depends = refusal === undefined ? this.#rules.hides : this.#rules.distinguishes;
    return depends ? this.#inPlace({ ...located, at }, method, options, run) : run(located);
  }

  /** Judges the place that a path leads to, and runs the operation there. */
  async #inPlace<Result>(
    located: PolicyPath & { at: string },
    method: Method,
    options: CallOptions,
    run: (at: PolicyPath) => MaybePromise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const inner = await this.#inner();
    if (inner.followLinks === undefined) return run(located);
    const { path, at } = located;
    const target = await inner.followLinks(path);
    const itself = target === at ? at : ((await inner.followLinks(path, { lastLink: "itself" })) ?? at);
    // A path that leads out or in circles is left to the inner backend, which may follow no link on it.
    const real = options.realPath ?? (OF_ENTRIES.has(method) ? itself : (target ?? at));
    const rules = new RulesInPlace(this.#rules, await NamedPlaces.in(inner, this.#rules.named));
    const isHidden = [at, itself, target ?? at, real].some((place) => isHiddenFrom(method, place, rules));
    if (isHidden) return (MISSING[method] ?? errors.fileNotFound)(at);
    const refusal = REFUSALS[method];
    const isReadOnly = [at, itself, real].some((place) => rules.isReadOnly(place));
    if (refusal !== undefined && isReadOnly) return refusal(at);
    return run({ ...located, real, isLink: itself !== target, rules });
  }

  async ls(at: PolicyPath, options: CallOptions) {
    const result = await (await this.#inner()).ls(at.path, optionsAt(at, options));
    const files = result.files?.filter((entry) =>
      placesOf(entry, at).every((place) => at.rules.isListed(place)),
    );
    return files === undefined ? result : { ...result, files };
  }

  async read(at: PolicyPath, { offset, limit }: PageRequest, options: CallOptions) {
    return (await this.#inner()).read(at.path, offset, limit, optionsAt(at, options));
  }

  async readRaw(at: PolicyPath, options: CallOptions) {
    return (await this.#inner()).readRaw(at.path, optionsAt(at, options));
  }

  async glob(at: PolicyPath, pattern: string, options: CallOptions) {
    const result = await (await this.#inner()).glob(pattern, at.path, optionsAt(at, options));
    const files = result.files?.filter((file) => isVisible(file, at));
    return files === undefined ? result : { ...result, files };
  }

  async grep(at: PolicyPath, { pattern, glob, maxCount, options }: Search) {
    const inner = await this.#inner();
    const isAsked = (path: string): boolean =>
      placesOf({ path }, at).some((place) => at.rules.isAsked(place));
    // A search at a path that needs a question was asked about, with all that it finds.
    const wasAsked = isAsked(at.at ?? at.path) || isAsked(joinPath(at.at ?? at.path, "file"));
    let leftOut = false;
    const isShown = (path: string): boolean => {
      if (!isVisible({ path }, at)) return false;
      if (wasAsked || !isAsked(path)) return true;
      leftOut = true;
      return false;
    };
    const result = await grepShown(
      (cap) => inner.grep(pattern, at.path, glob, cap, optionsAt(at, options)),
      maxCount,
      isShown,
    );
    if (result.matches === undefined) return result;
    const truncated = result.truncated === true || result.matches.length > maxCount;
    const notes = leftOut ? { notes: [...(result.notes ?? []), UNASKED] } : {};
    return { ...result, ...notes, matches: result.matches.slice(0, maxCount), truncated };
  }

  async write(at: PolicyPath, content: string, options: WriteOptions) {
    return (await this.#inner()).write(at.path, content, optionsAt(at, options, true));
  }

  async upload(at: PolicyPath, bytes: Uint8Array, options: CallOptions) {
    return uploadTo(await this.#inner(), at.path, bytes, optionsAt(at, options, true));
  }

  async edit(at: PolicyPath, { oldString, newString, replaceAll, ...options }: Edit) {
    return (await this.#inner()).edit(
      at.path,
      oldString,
      newString,
      replaceAll,
      optionsAt(at, options, true),
    );
  }

  async delete(at: PolicyPath, options: CallOptions) {
    const { path, at: checked } = at;
    const inner = await this.#inner();
    if (inner.delete === undefined) return errors.deletionUnavailable(checked ?? path);
    // The inner backend refuses invalid paths, and the root. If the path is a link, it removes only the link.
    const isTree = checked !== undefined && checked !== "/" && at.isLink !== true;
    if (isTree && (await this.#protectsBelow(inner, { ...at, at: checked }, options))) {
      return errors.deletesNotAllowed(checked);
    }
    return inner.delete(path, optionsAt(at, options));
  }

  /** Looks for hidden and read-only paths in a directory. A link in it to such a path is only a link. */
  async #protectsBelow(
    inner: Backend,
    top: PolicyPath & { at: string },
    { signal }: CallOptions,
  ): Promise<boolean> {
    if ([top.at, top.real ?? top.at].some((place) => top.rules.hasReadOnlyBelow(place))) return true;
    const directories = this.#rules.hidesNames ? [top.at] : [];
    for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
      const { files = [] } = await inner.ls(directory, { signal });
      for (const { path, is_dir: isDirectory, real_path: target } of files) {
        if (!isVisible({ path }, top)) return true;
        const below = withoutSlash(path);
        if (isDirectory !== true || target !== undefined || below === directory) continue;
        const leadsOut = inner.followLinks !== undefined && (await inner.followLinks(below)) === undefined;
        if (!leadsOut) directories.push(below);
      }
    }
    return false;
  }
}

/** A directory on the way to visible files is there for searches. */
const isHiddenFrom = (method: Method, place: string, rules: RulesInPlace): boolean =>
  SEARCHES.has(method) ? !rules.isListed(place) : rules.isHidden(place);

/** The path of a result below `top`, its own place, and that which it leads to. */
function placesOf({ path, real_path: target }: FileInfo, { at, real = at }: PolicyPath): string[] {
  const places = [withoutSlash(path)];
  const isLinked = at !== undefined && real !== undefined && at !== real && isAtOrBelow(path, at);
  if (isLinked) places.push(addPrefix(real, stripPrefix(at, withoutSlash(path))));
  if (target !== undefined) places.push(target);
  return places;
}

const isVisible = (file: FileInfo, top: PolicyPath): boolean =>
  !placesOf(file, top).some((place) => top.rules.isHidden(place));

/**
 * Makes paths of a backend hidden or read-only. Paths are those of the inner backend. A rule holds for the path of a
 * call, and for the place that links on it lead to: a link to a hidden place does not exist, and one to a read-only
 * place changes nothing there. Removing such a link is a change of the folder that it is in. A rule for a path that is
 * a link itself also holds for the target. A file with a hidden name cannot be read by its other names. Runs no
 * commands.
 */
export class PolicyBackend extends CheckedBackend {
  readonly #source: BackendSource;
  readonly #rules: PolicyRules;
  readonly #inner: () => Promise<Backend>;

  constructor(inner: BackendSource, options: PolicyOptions | PolicyRules, runtime?: BackendRuntime) {
    checkBackend("The first argument of PolicyBackend", inner);
    const rules =
      options instanceof PolicyRules
        ? options
        : new PolicyRules(readOptions("PolicyBackend", options, OPTIONS));
    let bound: Promise<Backend> | undefined;
    const open = (): Promise<Backend> => (bound ??= obtainBackend(inner, runtime));
    super(new PolicyOperations(rules, open));
    this.#source = inner;
    this.#rules = rules;
    this.#inner = open;
  }

  get capabilities(): Partial<BackendCapabilities> | undefined {
    return typeof this.#source === "function" ? undefined : this.#source.capabilities;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return new PolicyBackend(this.#source, this.#rules, runtime);
  }

  async lifetimeOf(path: string): Promise<BackendCapabilities["lifetime"]> {
    return lifetimeAt(await this.#inner(), path);
  }

  async roots(): Promise<FileRoot[]> {
    const roots = await rootsOf(await this.#inner());
    return roots
      .filter(({ path }) => !this.#rules.isHidden(path))
      .map((root) =>
        this.#rules.isReadOnly(`${withSlash(root.path)}file`) ? { ...root, readOnly: true } : root,
      );
  }

  isReadOnly(path: string): boolean {
    const valid = validatePath(path);
    return valid.ok && this.#rules.isReadOnly(valid.path);
  }

  async followLinks(path: string, options?: ResolveOptions): Promise<string | undefined> {
    const inner = await this.#inner();
    return inner.followLinks === undefined ? path : inner.followLinks(path, options);
  }
}
