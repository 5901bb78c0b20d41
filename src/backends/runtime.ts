import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { type OptionTable, readOptions } from "../core/options.ts";
import type { Backend, BackendRuntime, FileData, ThreadFiles } from "./backend.ts";
import { snapshotFiles } from "./thread-files.ts";

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
