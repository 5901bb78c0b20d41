import type { Backend, BackendCapabilities, FileRoot } from "./backend.ts";
import { isAtOrBelow } from "./paths.ts";

/**
 * How long what is written at `path`, or below it, stays: with the state of the thread, which goes back to
 * its last checkpoint after a crash, or in the world outside. A backend that does not tell is outside.
 */
export async function lifetimeAt(backend: Backend, path: string): Promise<BackendCapabilities["lifetime"]> {
  return (await backend.lifetimeOf?.(path)) ?? backend.capabilities?.lifetime ?? "persistent";
}

/** Where the parts of a backend's tree begin. */
export async function rootsOf(backend: Backend): Promise<readonly FileRoot[]> {
  if (backend.roots !== undefined) return backend.roots();
  if ("execute" in backend) return [{ path: "/", holds: "sandbox" }];
  return [{ path: "/", holds: backend.capabilities?.lifetime === "thread" ? "thread" : "kept" }];
}

/** The part of a tree that a path is in: of parts inside each other the innermost. */
export const rootAt = (roots: readonly FileRoot[], path: string): FileRoot | undefined =>
  roots
    .filter((root) => isAtOrBelow(path, root.path))
    .reduce<FileRoot | undefined>(
      (inner, root) => (root.path.length > (inner?.path.length ?? 0) ? root : inner),
      undefined,
    );
