import { type OptionTable, readOptions } from "../core/options.ts";
import type { Backend, BackendRuntime } from "./backend.ts";

/** Key of the method by which a backend that depends on the running call is tied to it. */
export const bindRuntime: unique symbol = Symbol("bindRuntime");

/** A backend that is (or contains) something per run, such as the files of a thread. */
export interface BindableBackend extends Backend {
  /** A backend that works on this call's runtime. Cheap: nothing is opened or read. */
  [bindRuntime](runtime: BackendRuntime): Backend;
}

export const isBindable = (backend: Backend): backend is BindableBackend => bindRuntime in backend;

/** Tells the two forms of a first constructor argument apart: only a runtime has thread files. */
export function splitArguments<Options extends object>(
  owner: string,
  table: OptionTable<Options>,
  first: BackendRuntime | Options | undefined,
  second: Options | undefined,
): { runtime: BackendRuntime | undefined; options: Options } {
  if (first && "files" in first) return { runtime: first, options: readOptions(owner, second, table) };
  return { runtime: undefined, options: readOptions(owner, second ?? first, table) };
}
