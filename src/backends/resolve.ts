import { ConfigurationError } from "../core/errors.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendClass,
  BackendRuntime,
  BackendSource,
  FileRoot,
} from "./backend.ts";
import { adaptBackend } from "./foreign/adapt.ts";
import { isAtOrBelow } from "./paths.ts";
import { bindRuntime, isBindable } from "./runtime.ts";

/**
 * Makes the backend of one call: calls a factory, makes an instance of a class, or ties a backend that depends on
 * the run (also inside a composite) to `runtime`. Adapts all others. Cheap; opens and reads nothing.
 */
export async function resolveBackend(source: BackendSource, runtime: BackendRuntime): Promise<Backend> {
  const made =
    typeof source !== "function" ? source : isClass(source) ? new source(runtime) : await source(runtime);
  return isBindable(made) ? made[bindRuntime](runtime) : adaptBackend(made, runtime.log);
}

/** @throws ConfigurationError `INVALID_BACKEND` for what is neither a backend nor makes one. */
export function checkBackend(owner: string, source: unknown): void {
  if (typeof source === "function") return;
  const isBackend = typeof source === "object" && source !== null && "read" in source && "write" in source;
  if (isBackend) return;
  throw new ConfigurationError(
    "INVALID_BACKEND",
    `${owner} is no backend; give one, such as \`new StateBackend()\`, its class, or a function that makes one.`,
  );
}

/** As `resolveBackend`. Without a runtime, only a ready backend can be used. */
export async function obtainBackend(
  source: BackendSource,
  runtime: BackendRuntime | undefined,
): Promise<Backend> {
  if (runtime !== undefined) return resolveBackend(source, runtime);
  if (typeof source !== "function") return isBindable(source) ? source : adaptBackend(source);
  throw new ConfigurationError(
    "BACKEND_RUNTIME",
    "This backend is made for each call: give it to an agent, which makes it",
  );
}

/** A class has methods on its prototype; a factory function has none. */
const isClass = (source: Exclude<BackendSource, Backend>): source is BackendClass =>
  "prototype" in source && typeof source.prototype === "object" && "read" in (source.prototype ?? {});

/**
 * How long files at `path` and below stay: with the state of the thread, which goes back to its last checkpoint
 * after a crash, or outside of it. A backend that does not say is taken for persistent.
 */
export async function lifetimeAt(backend: Backend, path: string): Promise<BackendCapabilities["lifetime"]> {
  return (await backend.lifetimeOf?.(path)) ?? backend.capabilities?.lifetime ?? "persistent";
}

/** The roots of a backend, with a default for those that have no such method. */
export async function rootsOf(backend: Backend): Promise<readonly FileRoot[]> {
  if (backend.roots !== undefined) return backend.roots();
  if ("execute" in backend) return [{ path: "/", holds: "sandbox" }];
  return [{ path: "/", holds: backend.capabilities?.lifetime === "thread" ? "thread" : "kept" }];
}

/** The innermost root that contains a path. */
export const rootAt = (roots: readonly FileRoot[], path: string): FileRoot | undefined =>
  roots
    .filter((root) => isAtOrBelow(path, root.path))
    .reduce<FileRoot | undefined>(
      (inner, root) => (root.path.length > (inner?.path.length ?? 0) ? root : inner),
      undefined,
    );
