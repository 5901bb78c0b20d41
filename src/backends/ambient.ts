import type { BackendRuntime, FileData, FilesUpdate, ThreadFiles } from "./backend.ts";
import { runtimeOf } from "./runtime.ts";

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
