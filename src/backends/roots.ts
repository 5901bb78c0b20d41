import type { Backend, FileRoot } from "./backend.ts";
import { isAtOrBelow } from "./paths.ts";

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
