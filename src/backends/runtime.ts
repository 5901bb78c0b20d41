import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { type OptionTable, readOptions } from "../core/options.ts";
import type { Backend, BackendRuntime, FileData, FilesUpdate, ThreadFiles } from "./backend.ts";
import { addPrefix, isAtOrBelow, stripPrefix } from "./paths.ts";

/**
 * The files of a checkpointed state as one step sees them: `record` stays as it is, changes go to an
 * overlay that all calls of the step share.
 */
export function snapshotFiles(record: Readonly<Record<string, FileData>> = {}): ThreadFiles {
  const overlay = new Map<string, FileData | null>();
  const stored = (path: string): FileData | undefined =>
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
    apply: (update: FilesUpdate) => {
      for (const [path, data] of Object.entries(update)) overlay.set(path, data);
    },
  };
}

/** Key of the method by which a backend that depends on the running call is tied to it. */
export const bindRuntime: unique symbol = Symbol("bindRuntime");

/** A backend that is (or contains) something per run, such as the files of a thread. */
export interface BindableBackend extends Backend {
  /** A backend that works on this call's runtime. Cheap: nothing is opened or read. */
  [bindRuntime](runtime: BackendRuntime): Backend;
}

export const isBindable = (backend: Backend): backend is BindableBackend => bindRuntime in backend;

/** What deepagents gives to factories: the state of the thread in the place of its files. */
export interface StateAndStore extends Omit<BackendRuntime, "files"> {
  state: unknown;
}

/** Tells the forms of a first constructor argument apart: only a runtime has thread files or a state. */
export function splitArguments<Options extends object>(
  owner: string,
  table: OptionTable<Options>,
  first: BackendRuntime | StateAndStore | Options | undefined,
  second: Options | undefined,
): { runtime: BackendRuntime | undefined; options: Options } {
  const options = (given: Options | undefined): Options => readOptions(owner, given, table);
  if (first && "files" in first) return { runtime: first, options: options(second) };
  if (first && "state" in first) {
    const { state, config, context, store } = first;
    const runtime = runtimeOf({ ...config, context, ...(store ? { store } : {}) }, filesOf(first), state);
    return { runtime: { ...first, ...runtime }, options: options(second) };
  }
  return { runtime: undefined, options: options(second ?? first) };
}

function filesOf({ state }: StateAndStore): ThreadFiles {
  const files: unknown =
    typeof state === "object" && state !== null ? Reflect.get(state, "files") : undefined;
  return snapshotFiles((files ?? {}) as Record<string, FileData>); // the channel that deepagents keeps them in
}

/** The parts of a task's configuration that backends are told of. */
interface TaskConfig {
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly context?: unknown;
  readonly store?: BaseStore;
}

/** What a backend is told about the call of a task. */
export function runtimeOf(
  { configurable = {}, metadata = {}, context, store }: TaskConfig,
  files: ThreadFiles,
  state: unknown,
): BackendRuntime {
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

/** LangGraph keeps a task's reader of channels, the place for its writes, and its input under these keys. */
const READ_KEY = "__pregel_read";
const SEND_KEY = "__pregel_send";
const SCRATCHPAD_KEY = "__pregel_scratchpad";
/** What an agent's own tool calls work on. */
const RUNTIME_KEY = "__deepagent_backend_runtime";

type Configurable = Readonly<Record<string, unknown>>;
type Read = (channel: string, fresh: boolean) => Record<string, FileData | null> | undefined;
type Send = (writes: Array<[channel: string, value: FilesUpdate]>) => void;

/** What goes into `configurable` for backends inside a tool to see what its call sees. */
export const withRuntime = (runtime: BackendRuntime, configurable: Configurable = {}): Configurable => ({
  ...configurable,
  [RUNTIME_KEY]: { runtime, of: configurable[READ_KEY] },
});

/**
 * What a backend made without a runtime works on: the LangGraph task that calls it, in the graph of an agent or
 * in any other with a channel `files`. Changes are written to that channel. `undefined` outside of a task.
 */
export function ambientRuntime(): BackendRuntime | undefined {
  const config = runningConfig();
  const configurable: Configurable = config?.configurable ?? {};
  const read = configurable[READ_KEY] as Read | undefined; // LangGraph's keys and shapes, here and below
  const send = configurable[SEND_KEY] as Send | undefined;
  if (!config || !read || !send) return undefined;
  const own = configurable[RUNTIME_KEY] as { runtime: BackendRuntime; of: unknown } | undefined; // set by `withRuntime`
  // A graph inside the call has channels of its own.
  if (own?.of === read) return { ...own.runtime, files: storing(own.runtime.files, send) };
  const { currentTaskInput } = (configurable[SCRATCHPAD_KEY] ?? {}) as { currentTaskInput?: unknown };
  return runtimeOf(config, storing(channelFiles(read), send), currentTaskInput);
}

/** Where LangChain keeps the running configuration, for all copies of it; loading it would cost more than that. */
const STORAGE = Symbol.for("ls:tracing_async_local_storage");
const CONFIG_KEY = Symbol.for("lc:child_config");

interface ConfigStorage {
  getStore(): { extra?: { readonly [CONFIG_KEY]?: Parameters<typeof runtimeOf>[0] } } | undefined;
}

function runningConfig() {
  const storage = Reflect.get(globalThis, STORAGE) as ConfigStorage | undefined; // LangChain's shape
  return storage?.getStore()?.extra?.[CONFIG_KEY];
}

/** The same files, with changes put into the state as well. */
const storing = (files: ThreadFiles, send: Send): ThreadFiles => ({
  get: (path) => files.get(path),
  entries: () => files.entries(),
  apply: (update) => {
    files.apply(update);
    send([["files", update]]);
  },
});

/** The files of the state, with what the task has changed. */
function channelFiles(read: Read): ThreadFiles {
  const current = (): Record<string, FileData | null> => read("files", true) ?? {};
  return {
    get: (path) => {
      const files = current();
      return Object.hasOwn(files, path) ? (files[path] ?? undefined) : undefined;
    },
    entries: function* () {
      for (const [path, data] of Object.entries(current())) if (data) yield [path, data];
    },
    apply: () => undefined,
  };
}

/** The runtime as a backend mounted at `prefix` sees it: thread files below the prefix, without it. */
export const scopeRuntime = (runtime: BackendRuntime, prefix: string): BackendRuntime =>
  prefix === "/" ? runtime : { ...runtime, files: scopeFiles(runtime.files, prefix) };

const scopeFiles = (files: ThreadFiles, prefix: string): ThreadFiles => ({
  get: (path) => files.get(addPrefix(prefix, path)),
  entries: function* () {
    for (const [path, data] of files.entries()) {
      if (path !== prefix && isAtOrBelow(path, prefix)) yield [stripPrefix(prefix, path), data];
    }
  },
  apply: (update) => files.apply(prefixKeys(prefix, update)),
});

/** The same changes, their paths below `prefix`. */
export const prefixKeys = <Value extends FilesUpdate[string]>(
  prefix: string,
  update: Record<string, Value>,
): Record<string, Value> =>
  Object.fromEntries(Object.entries(update).map(([path, data]) => [addPrefix(prefix, path), data]));
