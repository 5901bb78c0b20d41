/** The failure of a change that is known before it is made is that of the change itself. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Backend, FileData } from "../../src/backends/backend.ts";
import type { Change } from "../../src/backends/checked-backend.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { FileStoreBackend } from "../../src/backends/file-store.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../src/backends/policy.ts";
import { filesIn } from "../support/files-in.ts";

/** Files in memory; with `hasBelow`, a path is not a file and a folder at once. */
function storeWith(path: string, isTree: boolean): Backend {
  const files = new Map<string, FileData>();
  const isBelow = (top: string) => [...files.keys()].some((key) => key.startsWith(`${top}/`));
  const backend = new FileStoreBackend({
    id: filesIn(),
    lifetime: "persistent",
    writes: "last-writer-wins",
    get: (at) => {
      const data = files.get(at);
      return data && { data, version: "1" };
    },
    put: (at, data) => files.set(at, data) !== undefined,
    remove: (at) => void files.delete(at),
    list: () => [...files.keys()].map((at) => ({ path: at })),
    ...(isTree && { hasBelow: isBelow }),
  });
  files.set(path, { content: "a", mimeType: "text/plain", created_at: "", modified_at: "" });
  return backend;
}

function disk(hidden: readonly string[] = []) {
  const rootDir = filesIn();
  mkdirSync(join(rootDir, "dir/keys"), { recursive: true });
  for (const name of ["a", "dir/keys/key"]) writeFileSync(join(rootDir, name), "a");
  symlinkSync("a", join(rootDir, "link"));
  return new FilesystemBackend({ rootDir, virtualMode: true, hidden: hidden.map((at) => join(rootDir, at)) });
}

const tree = () =>
  new CompositeBackend(disk(), { "/dir/more": new PolicyBackend(disk(), { readOnly: true }) });

test.each<[string, () => Backend, Change, string, string | undefined]>([
  ["a store", () => storeWith("/a", true), "write", "/a/b/c", "not_directory"],
  ["a store", () => storeWith("/a/b", true), "write", "/a", "is_directory"],
  ["a store", () => storeWith("/a", true), "write", "/b/c", undefined],
  ["a store of keys", () => storeWith("/a", false), "write", "/a/b", undefined],
  ["a folder", disk, "write", "/a/b/c", "not_directory"],
  ["a folder", disk, "write", "/b/c/d", undefined],
  ["a folder", disk, "write", "/link", "symlink"],
  ["a folder", disk, "edit", "/a/b", "not_directory"],
  ["a folder", disk, "delete", "/dir", undefined],
  ["a folder with hidden files", () => disk(["dir/keys"]), "delete", "/dir", "permission_denied"],
  ["rules", () => new PolicyBackend(disk(), { readOnly: true }), "edit", "/a", "permission_denied"],
  [
    "rules",
    () => new PolicyBackend(disk(), { denyGlobs: ["**/key"] }),
    "delete",
    "/dir",
    "permission_denied",
  ],
  ["rules", () => new PolicyBackend(disk(), { denyGlobs: ["**/key"] }), "write", "/a/b", "not_directory"],
  ["rules", () => new PolicyBackend(disk(), { denyGlobs: ["**/no"] }), "delete", "/dir", undefined],
  ["a tree", tree, "delete", "/dir/more", "permission_denied"],
  ["a tree", tree, "write", "/dir/more/x", "permission_denied"],
  ["a tree", tree, "write", "/a/b", "not_directory"],
  ["a tree", tree, "write", "/b", undefined],
])("%s: %# %s", async (_what, make, change, path, code) => {
  const backend = make();
  const known = await backend.refusal?.(change, path);
  expect(known?.code).toBe(code);
  const made = {
    write: () => backend.write(path, "b"),
    edit: () => backend.edit(path, "a", "b"),
    delete: () => backend.delete?.(path),
  };
  const { error, code: found } = (await made[change]()) ?? {};
  expect({ error, code: found }).toEqual({ error: known?.error, code });
});
