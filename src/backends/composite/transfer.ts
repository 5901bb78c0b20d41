import type { CallOptions, FileDownloadResponse, FileUploadResponse } from "../backend.ts";
import { operationError } from "../errors.ts";
import { bytesOf } from "../file-data.ts";
import { type Mount, type MountTree, type Target } from "./mounts.ts";
import { validatePath } from "../paths.ts";
import { prefixKeys } from "../scoped-files.ts";

/** Uploads each file to its owner; answers come in the order of the files. */
export async function uploadTree(
  tree: MountTree,
  files: ReadonlyArray<[string, Uint8Array]>,
  options: CallOptions | undefined,
): Promise<FileUploadResponse[]> {
  return perOwner(
    tree,
    files,
    ([path]) => path,
    async (mount, group): Promise<FileUploadResponse[]> => {
      const backend = await tree.backend(mount);
      if (backend.uploadFiles === undefined) {
        return group.map(({ path }) => ({ path, error: "permission_denied" }));
      }
      const inner = group.map(({ item, target }): [string, Uint8Array] => [target.inner, item[1]]);
      const answers = await backend.uploadFiles(inner, options);
      return answers.map((answer, index) => ({
        ...answer,
        path: group[index]?.path ?? answer.path,
        ...(answer.filesUpdate ? { filesUpdate: prefixKeys(mount.prefix, answer.filesUpdate) } : {}),
      }));
    },
  );
}

/** Downloads each file from its owner; answers come in the order of the paths. */
export async function downloadTree(
  tree: MountTree,
  paths: readonly string[],
  options: CallOptions | undefined,
): Promise<FileDownloadResponse[]> {
  return perOwner(
    tree,
    paths,
    (path) => path,
    async (mount, group) => {
      const backend = await tree.backend(mount);
      if (backend.downloadFiles !== undefined) {
        const answers = await backend.downloadFiles(
          group.map(({ target }) => target.inner),
          options,
        );
        return answers.map((answer, index) => ({ ...answer, path: group[index]?.path ?? answer.path }));
      }
      return Promise.all(
        group.map(async ({ path, target }): Promise<FileDownloadResponse> => {
          const { data, code } = await backend.readRaw(target.inner, options);
          return data === undefined
            ? { path, content: null, error: operationError(code) ?? "file_not_found" }
            : { path, content: bytesOf(data), error: null };
        }),
      );
    },
  );
}

interface Member<Item> {
  item: Item;
  path: string;
  target: Target;
}

async function perOwner<Item, Answer extends FileUploadResponse | FileDownloadResponse>(
  tree: MountTree,
  items: readonly Item[],
  pathOf: (item: Item) => string,
  transfer: (mount: Mount, group: Member<Item>[]) => Promise<Answer[]>,
): Promise<Answer[]> {
  const answers = Array.from<Answer>({ length: items.length });
  const groups = new Map<Mount, (Member<Item> & { index: number })[]>();
  for (const [index, item] of items.entries()) {
    const path = pathOf(item);
    const valid = validatePath(path);
    // The mount at `/` answers for a path that is none: it refuses it as it refuses any other.
    const target = valid.ok ? tree.targetOf(valid.path) : { ...tree.targetOf("/"), inner: path };
    const group = groups.get(target.mount) ?? [];
    group.push({ item, path, target, index });
    groups.set(target.mount, group);
  }
  await Promise.all(
    [...groups].map(async ([mount, group]) => {
      const given = await transfer(mount, group);
      for (const [at, { index }] of group.entries()) {
        const answer = given[at];
        if (answer !== undefined) answers[index] = answer;
      }
    }),
  );
  return answers;
}
