/** A backend with rules about its paths, which hold for the names of files and for the places that links lead to. */
import { defined } from "../core/unknown.ts";
import { readOptions } from "../core/options.ts";
import tables from "./options.json" with { type: "json" };
import type * as port from "./backend.ts";
import type { Located, Method, Operations } from "./checked-backend.ts";
import { CheckedBackend, PARALLEL_TRANSFERS, missingEntry, uploadTo } from "./checked-backend.ts";
import type { SandboxBackend } from "./executor.ts";
import { type FailureAt, errors } from "./errors.ts";
import {
  addPrefix,
  isAtOrBelow,
  joinPath,
  stripPrefix,
  validatePath,
  withSlash,
  withoutSlash,
} from "./paths.ts";
import { type LeavingOut, NamedPlaces, type PolicyOptions, PolicyRules } from "./policy-rules.ts";
import { bindRuntime, checkBackend, lifetimeAt, obtainBackend, listRoots } from "./runtime.ts";
import { grepShown } from "./search.ts";
import texts from "./texts.json" with { type: "json" };

interface PolicyPath extends Located {
  /** The path as it was checked; undefined for an invalid one, which the inner backend refuses. */
  at: string | undefined;
  /** Place of the entry, which differs from `at` if links lead there. Absent if the inner backend has no links. */
  real?: string;
  /** True for the path of a link, which `delete` removes without its target. */
  isLink?: boolean;
  rules: PolicyRules;
  /** Paths that the rules name and that are links now. */
  named: NamedPlaces;
  inner: () => Promise<port.Backend>;
}

type Judge = Pick<PolicyPath, "rules" | "named">;

/** True if a rule is about a place, by any name that the rules have for it. */
const isRuled = (rule: "isHidden" | "isReadOnly" | "isAsked", { rules, named }: Judge, place: string) =>
  named.namesOf(place).some((name) => rules[rule](name));

/** True for a path that is listed, because it or something below it is not hidden. */
const isListed = ({ rules, named }: Judge, place: string): boolean =>
  named.namesOf(place).every((name) => !rules.isHidden(name) || rules.isOnTheWay(name));

const REFUSALS: Partial<Record<Method, FailureAt>> = {
  write: errors.writesNotAllowed,
  upload: errors.writesNotAllowed,
  edit: errors.editsNotAllowed,
  delete: errors.deletesNotAllowed,
};

const POLICY_OPERATIONS: Operations<PolicyPath> = {
  parallel: PARALLEL_TRANSFERS,
  attempt: async (located, { method, options }, run) => {
    const { path, at, rules } = located;
    if (at === undefined) return run();
    const refusal = REFUSALS[method];
    if (isHiddenFrom(method, located, at)) return errors.sensitivePath();
    if (refusal !== undefined && isRuled("isReadOnly", located, at)) return refusal(at);
    const depends = refusal === undefined ? rules.hides : rules.distinguishes;
    if (!depends) return run();
    // Judges the place that the path leads to, and runs the operation there.
    const inner = await located.inner();
    if (inner.followLinks === undefined) return run();
    const target = await inner.followLinks(path);
    const itself = target === at ? at : ((await inner.followLinks(path, { lastLink: "itself" })) ?? at);
    // These methods do not follow a link at the end of a path.
    const isOfEntry = method === "write" || method === "upload" || method === "delete";
    // A path that leads out or in circles is left to the inner backend, which may follow no link on it.
    const real = options.realPath ?? (isOfEntry ? itself : (target ?? at));
    const judge = { rules, named: await NamedPlaces.in(inner, rules.named) };
    const isHidden = [at, itself, target ?? at, real].some((place) => isHiddenFrom(method, judge, place));
    // A missing file fails alike, but a file can be made there.
    const hidden = method === "write" || method === "upload" ? errors.permissionDenied : missingEntry(method);
    if (isHidden) return hidden(at);
    const isReadOnly = [at, itself, real].some((place) => isRuled("isReadOnly", judge, place));
    if (refusal !== undefined && isReadOnly) return refusal(at);
    const there = { ...located, ...judge, real, isLink: itself !== target };
    // A change leaves alone a file that also has a read-only name.
    const isChange = refusal !== undefined;
    const { hides: outer } = options;
    const hides = (place: string): boolean =>
      isRuled("isHidden", judge, place) ||
      (isChange && isRuled("isReadOnly", judge, place)) ||
      outer?.(place) === true;
    return run(there, { ...options, realPath: real, hides: isChange || rules.hides ? hides : outer });
  },
  ls: async (at, options) => {
    const result = await (await at.inner()).ls(at.path, options);
    const files = result.files?.filter(
      (entry) => resultPlaces(entry, at).every((place) => isListed(at, place)) && !isLeftOut(entry, at, "ls"),
    );
    return files === undefined ? result : { ...result, files };
  },
  read: async (at, { offset, limit }, options) => (await at.inner()).read(at.path, offset, limit, options),
  readRaw: async (at, options) => (await at.inner()).readRaw(at.path, options),
  glob: async (at, pattern, options) => {
    const result = await (await at.inner()).glob(pattern, at.path, options);
    const files = result.files?.filter((file) => isVisible(file, at) && !isLeftOut(file, at, "glob"));
    return files === undefined ? result : { ...result, files };
  },
  grep: async (at, { pattern, glob, maxCount, options }) => {
    const inner = await at.inner();
    const isAsked = (path: string): boolean =>
      resultPlaces({ path }, at).some((place) => isRuled("isAsked", at, place));
    // A search at a path that needs a question was asked about, with all that it finds.
    const stands = at.rules.bindsCommands && isAsked(joinPath(at.at ?? at.path, "file"));
    const wasAsked = stands || isAsked(at.at ?? at.path);
    let leftOut = false;
    const result = await grepShown(
      (cap) => inner.grep(pattern, at.path, glob, cap, options),
      maxCount,
      (path) => {
        if (!isVisible({ path }, at) || isLeftOut({ path }, at, "grep")) return false;
        if (wasAsked || !isAsked(path)) return true;
        leftOut = true;
        return false;
      },
    );
    if (result.matches === undefined) return result;
    const truncated = result.truncated === true || result.matches.length > maxCount;
    const notes = leftOut ? { notes: [...(result.notes ?? []), texts.notAsked] } : {};
    return { ...result, ...notes, matches: result.matches.slice(0, maxCount), truncated };
  },
  write: async (at, content, options) => (await at.inner()).write(at.path, content, options),
  upload: async (at, bytes, options) => uploadTo(await at.inner(), at.path, bytes, options),
  edit: async (at, { oldString, newString, replaceAll, ...options }) =>
    (await at.inner()).edit(at.path, oldString, newString, replaceAll, options),
  delete: async (at, options) => {
    const { path, at: checked } = at;
    const inner = await at.inner();
    if (inner.delete === undefined) return errors.deletionUnavailable(checked ?? path);
    // The inner backend refuses invalid paths, and the root. If the path is a link, it removes only the link.
    return (await treeRefusal(inner, at, options)) ?? inner.delete(path, options);
  },
  refusal: async (at, change, options) => {
    const inner = await at.inner();
    const own = change === "delete" ? await treeRefusal(inner, at, options) : undefined;
    return own ?? inner.refusal?.(change, at.path, options);
  },
};

/** The failure of deleting a directory with hidden or read-only entries. A link in it to such a path is only a link. */
async function treeRefusal(inner: port.Backend, top: PolicyPath, { signal }: port.CallOptions) {
  const { at, real = at, isLink, rules, named } = top;
  if (at === undefined || real === undefined || at === "/" || isLink === true) return undefined;
  const refused = errors.deletesNotAllowed(at);
  const names = [at, real].flatMap((place) => [...named.namesOf(place), ...named.below(place)]);
  if (names.some((name) => rules.hasReadOnlyBelow(name))) return refused;
  const directories = rules.hidesNames ? [at] : [];
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const { files = [] } = await inner.ls(directory, { signal });
    for (const { path, is_dir: isDirectory, real_path: target } of files) {
      if (!isVisible({ path }, top)) return refused;
      const below = withoutSlash(path);
      if (isDirectory !== true || target !== undefined || below === directory) continue;
      const leadsOut = inner.followLinks !== undefined && (await inner.followLinks(below)) === undefined;
      if (!leadsOut) directories.push(below);
    }
  }
  return undefined;
}

/** A directory on the way to visible files is there for searches. */
const isHiddenFrom = (method: Method, judge: Judge, place: string): boolean =>
  method === "ls" || method === "glob" || method === "grep"
    ? !isListed(judge, place)
    : isRuled("isHidden", judge, place);

/** The path of a result below `top`, its own place, and that which it leads to. */
function resultPlaces({ path, real_path: target }: port.FileInfo, { at, real = at }: PolicyPath): string[] {
  const places = [withoutSlash(path)];
  const isLinked = at !== undefined && real !== undefined && at !== real && isAtOrBelow(path, at);
  if (isLinked) places.push(addPrefix(real, stripPrefix(at, withoutSlash(path))));
  if (target !== undefined) places.push(target);
  return places;
}

const isVisible = (file: port.FileInfo, top: PolicyPath): boolean =>
  !resultPlaces(file, top).some((place) => isRuled("isHidden", top, place));

/** True for a result that is left out, unless the search began in such a place. */
function isLeftOut(file: port.FileInfo, top: PolicyPath, from: LeavingOut): boolean {
  const { rules, at = "/" } = top;
  if (!resultPlaces(file, top).some((place) => rules.isLeftOut(place, from))) return false;
  return rules.isAsked(at) || !rules.isLeftOut(at, from);
}

/**
 * Makes paths of a backend hidden or read-only. Paths are those of the inner backend. A rule holds for the path of a
 * call, and for the place that links on it lead to: a link to a hidden place does not exist, and one to a read-only
 * place changes nothing there. Removing such a link is a change of the folder that it is in. A rule for a path that is
 * a link itself also holds for the target. A file with a hidden name cannot be read by its other names. Runs commands
 * only with rules that do not bind them.
 */
export class PolicyBackend extends CheckedBackend {
  declare readonly id?: string;
  declare readonly execute?: SandboxBackend["execute"];
  declare readonly jobs?: SandboxBackend["jobs"];
  declare readonly commands?: SandboxBackend["commands"];
  readonly #source: port.BackendSource;
  readonly #rules: PolicyRules;
  readonly #inner: () => Promise<port.Backend>;

  constructor(
    inner: port.BackendSource,
    options: PolicyOptions | PolicyRules,
    runtime?: port.BackendRuntime,
  ) {
    checkBackend("The first argument of PolicyBackend", inner);
    const rules =
      options instanceof PolicyRules
        ? options
        : new PolicyRules(readOptions("PolicyBackend", options, tables.PolicyBackend));
    let bound: Promise<port.Backend> | undefined;
    const open = (): Promise<port.Backend> => (bound ??= obtainBackend(inner, runtime));
    const named = new NamedPlaces([]);
    super(POLICY_OPERATIONS, (path) => {
      const valid = validatePath(path);
      return { path, at: valid.ok ? valid.path : undefined, rules, named, inner: open };
    });
    this.#source = inner;
    this.#rules = rules;
    this.#inner = open;
    if (rules.bindsCommands || typeof inner === "function" || !("execute" in inner)) return;
    const sandbox = inner as SandboxBackend; // one that runs commands is that
    const { id, jobs, commands } = sandbox;
    const execute: SandboxBackend["execute"] = (...args) => sandbox.execute(...args);
    Object.assign(this, { ...defined({ id, jobs, commands }), execute });
  }

  get capabilities(): Partial<port.BackendCapabilities> | undefined {
    return typeof this.#source === "function" ? undefined : this.#source.capabilities;
  }

  [bindRuntime](runtime: port.BackendRuntime): port.Backend {
    return new PolicyBackend(this.#source, this.#rules, runtime);
  }

  async lifetimeOf(path: string): Promise<port.BackendCapabilities["lifetime"]> {
    return lifetimeAt(await this.#inner(), path);
  }

  async roots(): Promise<port.FileRoot[]> {
    const roots = await listRoots(await this.#inner());
    return roots
      .filter(({ path }) => !this.#rules.isHidden(path))
      .map((root) =>
        this.#rules.isReadOnly(`${withSlash(root.path)}file`) ? { ...root, readOnly: true } : root,
      );
  }

  async followLinks(path: string, options?: port.ResolveOptions): Promise<string | undefined> {
    const inner = await this.#inner();
    return inner.followLinks === undefined ? path : inner.followLinks(path, options);
  }
}
