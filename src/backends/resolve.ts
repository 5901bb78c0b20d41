import type { Backend, BackendClass, BackendRuntime, BackendSource } from "./backend.ts";
import { bindRuntime, isBindable } from "./runtime.ts";

/**
 * The backend to use for one call: calls a factory, makes an instance of a class, and ties backends that
 * depend on the run (also those mounted in a composite) to `runtime`. Cheap; opens and reads nothing.
 */
export async function resolveBackend(source: BackendSource, runtime: BackendRuntime): Promise<Backend> {
  const made =
    typeof source !== "function" ? source : isClass(source) ? new source(runtime) : await source(runtime);
  return isBindable(made) ? made[bindRuntime](runtime) : made;
}

/** A class has methods on its prototype; a factory function has none. */
const isClass = (
  source: Extract<BackendSource, (...args: never) => unknown> | BackendClass,
): source is BackendClass =>
  "prototype" in source && typeof source.prototype === "object" && "read" in (source.prototype ?? {});
