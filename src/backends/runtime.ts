/** The facts of a run for its backend, and the ways to make a backend from each accepted form. */
import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { ConfigurationError } from "../core/errors.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { memberOf } from "../core/unknown.ts";
import type * as port from "./backend.ts";
import { type BackendV1, adaptBackend } from "./foreign/adapt.ts";
import { addPrefix, isAtOrBelow, stripPrefix } from "./paths.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

/**
 * The files of a checkpointed state as one step sees them. `record` is not changed; all calls of the step share
 * the changes.
 */
export function snapshotFiles(record: Readonly<Record<string, port.FileData>> = {}): port.ThreadFiles {
  const overlay = new Map<string, port.FileData | null>();
  const stored = (path: string): port.FileData | undefined =>
    Object.hasOwn(record, path) ? record[path] : undefined;
  return {
    get: (path) => {
      const changed = overlay.get(path);
      return changed === undefined ? stored(path) : (changed ?? undefined);
    },
    entries: function* () {
      for (const [path, data] of Object.entries(record)) {
        if (!overlay.has(path)) yield [path, data];
      }
      for (const [path, data] of overlay) {
        if (data !== null) yield [path, data];
      }
    },
    apply: (update: port.FilesUpdate) => {
      for (const [path, data] of Object.entries(update)) overlay.set(path, data);
    },
  };
}

/** Key of the method that ties a backend to the running call. */
export const bindRuntime: unique symbol = Symbol("bindRuntime");

/**
 * True for a backend that depends on the run, such as one with the files of a thread. The method makes a backend that
 * works on this call's runtime. Cheap: nothing is opened or read.
 */
const isBindable = (
  backend: port.Backend,
): backend is port.Backend & { [bindRuntime](runtime: port.BackendRuntime): port.Backend } =>
  bindRuntime in backend;

/** The argument of factories in deepagents: it has the state of the thread in place of its files. */
export interface StateAndStore extends Omit<port.BackendRuntime, "files"> {
  state: unknown;
}

/** Distinguishes the forms of a first constructor argument: only a runtime has thread files or a state. */
export function splitArguments<Options extends object>(
  owner: string,
  table: OptionTable<Options>,
  first: port.BackendRuntime | StateAndStore | Options | undefined,
  second: Options | undefined,
): { runtime: port.BackendRuntime | undefined; options: Options } {
  const options = (given: Options | undefined): Options => readOptions(owner, given, table);
  if (first && "files" in first) return { runtime: first, options: options(second) };
  if (first && "state" in first) {
    const { state, config, context, store } = first;
    // The channel in which deepagents keeps files.
    const files = snapshotFiles((memberOf(state, "files") ?? {}) as Record<string, port.FileData>);
    const runtime = taskRuntime({ ...config, context, ...(store ? { store } : {}) }, files, state);
    return { runtime: { ...first, ...runtime }, options: options(second) };
  }
  return { runtime: undefined, options: options(second ?? first) };
}

/** Makes the runtime of a call from the configuration of its task. */
export function taskRuntime(
  task: NonNullable<port.BackendRuntime["config"]> & {
    readonly context?: unknown;
    readonly store?: BaseStore;
  },
  files: port.ThreadFiles,
  state: unknown,
): port.BackendRuntime {
  const { configurable = {}, metadata = {}, context, store } = task;
  const { thread_id: threadId } = configurable;
  const assistantId = metadata["assistant_id"] ?? configurable["assistant_id"];
  return {
    files,
    context,
    state,
    config: { configurable, metadata },
    ...(store ? { store } : {}),
    ...(typeof threadId === "string" ? { threadId } : {}),
    ...(typeof assistantId === "string" && assistantId !== "" ? { assistantId } : {}),
  };
}

/** Key of LangGraph for a task's reader of channels. */
const READ_KEY = "__pregel_read";
/** Our key for the runtime of an agent's own tool calls. */
const RUNTIME_KEY = "__deepagent_backend_runtime";

type Configurable = Readonly<Record<string, unknown>>;
type WriteChannels = (writes: Array<[channel: string, value: port.FilesUpdate]>) => void;

/** Adds the runtime of a call to `configurable`, so that backends inside a tool see the same files. */
export const withRuntime = (runtime: port.BackendRuntime, configurable: Configurable = {}): Configurable => ({
  ...configurable,
  [RUNTIME_KEY]: { runtime, of: configurable[READ_KEY] },
});

/**
 * The runtime of a backend that was made without one: the LangGraph task that calls it, in the graph of an agent or
 * any other graph with a channel `files`. Changes are written to that channel. Returns undefined outside of a task.
 */
export function ambientRuntime(): port.BackendRuntime | undefined {
  // The global in which all copies of LangChain keep the running configuration. Saves loading LangChain.
  const key = Symbol.for("ls:tracing_async_local_storage");
  const storage = Reflect.get(globalThis, key) as
    | { getStore(): { extra?: { readonly [CONFIG_KEY]?: Parameters<typeof taskRuntime>[0] } } | undefined }
    | undefined; // LangChain's shape
  const config = storage?.getStore()?.extra?.[CONFIG_KEY];
  const configurable: Configurable = config?.configurable ?? {};
  // LangGraph's keys and shapes, here and below.
  const read = configurable[READ_KEY] as
    | ((channel: string, fresh: boolean) => Record<string, port.FileData | null> | undefined)
    | undefined;
  const send = configurable["__pregel_send"] as WriteChannels | undefined;
  if (!config || !read || !send) return undefined;
  const own = configurable[RUNTIME_KEY] as { runtime: port.BackendRuntime; of: unknown } | undefined; // set by `withRuntime`
  // A graph inside the call has its own channels, so the runtime of the call does not fit it.
  if (own?.of === read) return { ...own.runtime, files: storing(own.runtime.files, send) };
  const { currentTaskInput } = (configurable["__pregel_scratchpad"] ?? {}) as { currentTaskInput?: unknown };
  // The files of the state with the changes of the task.
  const current = (): Record<string, port.FileData | null> => read("files", true) ?? {};
  const files: port.ThreadFiles = {
    get: (path) => {
      const present = current();
      return Object.hasOwn(present, path) ? (present[path] ?? undefined) : undefined;
    },
    entries: function* () {
      for (const [path, data] of Object.entries(current())) if (data) yield [path, data];
    },
    apply: () => undefined,
  };
  return taskRuntime(config, storing(files, send), currentTaskInput);
}

const CONFIG_KEY = Symbol.for("lc:child_config");

/** Wraps files so that changes also go to the state. */
const storing = (files: port.ThreadFiles, send: WriteChannels): port.ThreadFiles => ({
  get: (path) => files.get(path),
  entries: () => files.entries(),
  apply: (update) => {
    files.apply(update);
    send([["files", update]]);
  },
});

/** The runtime of a backend that is mounted at `prefix`: the thread files below the prefix, without the prefix. */
export function scopeRuntime(runtime: port.BackendRuntime, prefix: string): port.BackendRuntime {
  if (prefix === "/") return runtime;
  const { files } = runtime;
  const scoped: port.ThreadFiles = {
    get: (path) => files.get(addPrefix(prefix, path)),
    entries: function* () {
      for (const [path, data] of files.entries()) {
        if (path !== prefix && isAtOrBelow(path, prefix)) yield [stripPrefix(prefix, path), data];
      }
    },
    apply: (update) => files.apply(prefixKeys(prefix, update)),
  };
  return { ...runtime, files: scoped };
}

/** Puts `prefix` in front of all changed paths. */
export const prefixKeys = <Value extends port.FilesUpdate[string]>(
  prefix: string,
  update: Record<string, Value>,
): Record<string, Value> =>
  Object.fromEntries(Object.entries(update).map(([path, data]) => [addPrefix(prefix, path), data]));

/**
 * Makes the backend of one call: calls a factory, makes an instance of a class, or ties a backend that depends on
 * the run (also inside a composite) to `runtime`. Adapts all others. Cheap; opens and reads nothing.
 */
export async function resolveBackend(
  source: port.BackendSource,
  runtime: port.BackendRuntime,
): Promise<port.Backend> {
  const made =
    typeof source !== "function" ? source : isClass(source) ? new source(runtime) : await source(runtime);
  if (made !== source) checkBackend("The value that the function for a backend returned", made);
  return isBindable(made) ? made[bindRuntime](runtime) : adaptBackend(made, runtime.log);
}

/** @throws ConfigurationError `INVALID_BACKEND` for a value that is not a backend and does not make one. */
export function checkBackend(owner: string, source: unknown): void {
  if (typeof source === "function") return;
  if (typeof source !== "object" || source === null || !("read" in source))
    throw new ConfigurationError("INVALID_BACKEND", fill(texts.notABackend, owner));
  // The methods that no backend may lack, and those of the first version of deepagents' protocol.
  const present: readonly (keyof port.Backend)[] = ["ls", "read", "readRaw", "grep", "glob", "write", "edit"];
  const first: readonly (keyof BackendV1)[] = ["lsInfo", "read", "grepRaw", "globInfo", "write", "edit"];
  const methods: readonly string[] = "lsInfo" in source ? first : present;
  const missing = methods.filter((name) => typeof Reflect.get(source, name) !== "function");
  if (missing.length === 0) return;
  const named = missing.map((name) => `\`${name}\``).join(", ");
  throw new ConfigurationError(
    "INVALID_BACKEND",
    fill(texts.missingMethods, owner, named, methods.join(", ")),
  );
}

/** Like `resolveBackend`. Without a runtime, only a ready backend can be used. */
export async function obtainBackend(source: port.BackendSource, runtime: port.BackendRuntime | undefined) {
  if (runtime !== undefined) return resolveBackend(source, runtime);
  if (typeof source !== "function") return isBindable(source) ? source : adaptBackend(source);
  throw new ConfigurationError("BACKEND_RUNTIME", texts.needsRuntime);
}

/** A class has methods on its prototype; a factory function has none. */
const isClass = (source: Exclude<port.BackendSource, port.Backend>): source is port.BackendClass =>
  "prototype" in source && typeof source.prototype === "object" && "read" in (source.prototype ?? {});

/**
 * Lifetime of files at `path` and below: with the state of the thread, which returns to its last checkpoint after a
 * crash, or outside of it. A backend that does not declare it counts as persistent.
 */
export const lifetimeAt = async (
  backend: port.Backend,
  path: string,
): Promise<port.BackendCapabilities["lifetime"]> =>
  (await backend.lifetimeOf?.(path)) ?? backend.capabilities?.lifetime ?? "persistent";

/** The roots of a backend, with a default for those that have no such method. */
export async function listRoots(backend: port.Backend): Promise<readonly port.FileRoot[]> {
  if (backend.roots !== undefined) return backend.roots();
  if ("execute" in backend) return [{ path: "/", holds: "sandbox" }];
  return [{ path: "/", holds: backend.capabilities?.lifetime === "thread" ? "thread" : "kept" }];
}

/** The innermost root that contains a path. */
export const rootAt = (roots: readonly port.FileRoot[], path: string): port.FileRoot | undefined =>
  roots
    .filter((root) => isAtOrBelow(path, root.path))
    .sort((left, right) => right.path.length - left.path.length)[0];
