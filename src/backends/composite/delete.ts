import type { CallOptions, DeleteResult, FileData } from "../backend.ts";
import { deletionUnavailable, partlyDeleted, refusedToDelete } from "../errors.ts";
import { type MountTree, restore, type Target } from "./mounts.ts";
import { addPrefix, withoutSlash } from "../paths.ts";

/**
 * Deletes a path and what mounts hold below it. The root and mount points are refused; when a backend that
 * is concerned cannot delete, nothing is touched; a later failure tells what was removed before it.
 */
export async function deleteTree(
  tree: MountTree,
  path: string,
  options: CallOptions | undefined,
): Promise<DeleteResult> {
  const owner = tree.targetOf(path);
  if (owner.inner === "/") return refusedToDelete(path);
  const below = tree.below(path);
  for (const mount of [owner.mount, ...below]) {
    if ((await tree.backend(mount)).delete === undefined) return deletionUnavailable(path);
  }
  const own = await deleteAt(tree, owner, options);
  if (own.error !== undefined && !(own.code === "not_found" && below.length > 0)) return own;
  const removed = own.error === undefined ? [path] : [];
  const parts = [own];
  for (const mount of below) {
    const backend = await tree.backend(mount);
    const listed = restore({ mount, inner: "/" }, await backend.ls("/", options));
    if (listed.error !== undefined) return partlyDeleted(path, removed, listed.error);
    for (const entry of listed.files ?? []) {
      const result = await deleteAt(tree, { mount, inner: withoutSlash(entry.path) }, options);
      if (result.error !== undefined) return partlyDeleted(path, removed, result.error);
      removed.push(addPrefix(mount.prefix, withoutSlash(entry.path)));
      parts.push(result);
    }
  }
  if (removed.length === 0) return own;
  const filesUpdate = Object.assign({}, ...parts.map((part) => part.filesUpdate ?? {})) as Record<
    string,
    null
  >;
  const recorded = Object.assign({}, ...parts.map((part) => part.recorded ?? {})) as Record<string, FileData>;
  const isInState = parts.some((part) => part.filesUpdate);
  return {
    path,
    filesUpdate: isInState ? filesUpdate : null,
    ...(Object.keys(recorded).length > 0 ? { recorded } : {}),
  };
}

async function deleteAt(
  tree: MountTree,
  target: Target,
  options: CallOptions | undefined,
): Promise<DeleteResult> {
  const backend = await tree.backend(target.mount);
  const result = await backend.delete?.(target.inner, options);
  return restore(target, result ?? deletionUnavailable(target.inner));
}
