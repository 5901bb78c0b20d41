import { type BigIntStats, rmdirSync, unlinkSync } from "node:fs";
import type { CallOptions, DeleteResult, EditResult, WriteOptions, WriteResult } from "../backend.ts";
import { type Edit, fileLocks } from "../checked-backend.ts";
import * as errors from "../errors.ts";
import { classifyBytes, editContent } from "../file-data.ts";
import { readBytes } from "../pages.ts";
import { entryKey, putFile, statEntry, statVersion } from "./file-writer.ts";
import { AccessError, type DirectoryHandle } from "./handles.ts";
import { type FilesystemPath, type Jail, type JailEntry, type WalkOptions, codeOf } from "./jail.ts";
import { whyNotFile, withOpenFile } from "./read.ts";

/** Creates a file and missing parent directories, or with mode `overwrite` replaces one. */
export function putPath(
  jail: Jail,
  at: FilesystemPath,
  bytes: Uint8Array,
  options: WriteOptions,
): Promise<WriteResult> {
  const { path } = at;
  return exclusively(jail, at, { create: true, lastLink: "itself" }, async ({ directory, name }) => {
    const old = statEntry(directory, name);
    const refused = whyNotWritable(old, path, options);
    if (refused !== undefined) return refused;
    options.signal?.throwIfAborted();
    try {
      const version = await putFile(directory, name, {
        bytes,
        mode: options.mode ?? "create",
        replaces: old,
        mayProceed: () => options.expectedVersion === undefined || isSame(statEntry(directory, name), old),
      });
      if (version === undefined) return errors.changedSinceRead(path);
      return { path, filesUpdate: null, version };
    } catch (thrown) {
      if (codeOf(thrown) !== "EEXIST") throw thrown;
      return whyNotWritable(statEntry(directory, name), path, options) ?? errors.alreadyExists(path);
    }
  });
}

export interface PathEdit extends Edit {
  maxFileSize: number;
}

/** How often an edit is tried while other processes replace the file. */
const MAX_ATTEMPTS = 5;

/**
 * Replaces text in a file. Follows a link inside the root and changes its target. An edit that is bound to a version
 * fails if that is gone; any other edit is made on the newest content.
 */
export function editPath(jail: Jail, at: FilesystemPath, edit: PathEdit): Promise<EditResult> {
  return exclusively(jail, at, {}, async (located): Promise<EditResult> => {
    for (let attempt = 1; ; attempt += 1) {
      const result = await editOnce(located, at.path, edit);
      const isFinal = result.code !== "conflict" || edit.expectedVersion !== undefined;
      if (isFinal || attempt === MAX_ATTEMPTS) return result;
    }
  });
}

async function editOnce({ directory, name }: JailEntry, path: string, edit: PathEdit): Promise<EditResult> {
  const { maxFileSize, signal, expectedVersion } = edit;
  const loaded = await withOpenFile(directory, name, path, async ({ descriptor, stats }) => ({
    stats,
    bytes: await readBytes(descriptor, Number(stats.size), maxFileSize),
  }));
  if ("error" in loaded) return loaded;
  const { stats, bytes } = loaded;
  if (bytes.length > maxFileSize) {
    return errors.tooLargeToEdit(path, Math.max(Number(stats.size), bytes.length), maxFileSize);
  }
  if (expectedVersion !== undefined && expectedVersion !== statVersion(stats)) {
    return errors.changedSinceRead(path);
  }
  const edited = editContent(path, classifyBytes(path, bytes), edit);
  if (!edited.ok) return { error: edited.error, code: edited.code };
  signal?.throwIfAborted();
  const version = await putFile(directory, name, {
    bytes: edited.bytes,
    mode: "overwrite",
    replaces: stats,
    mayProceed: () => isSame(statEntry(directory, name), stats),
  });
  if (version === undefined) return errors.changedSinceRead(path);
  return { path, filesUpdate: null, version, occurrences: edited.occurrences };
}

/** Makes one change of an entry at a time in this process. Holds nothing open while it waits. */
async function exclusively<Result>(
  jail: Jail,
  { segments, path }: FilesystemPath,
  walk: WalkOptions,
  run: (located: JailEntry) => Promise<Result>,
): Promise<Result | errors.BackendFailure> {
  if (segments.length === 0) return errors.isDirectory(path);
  const key = await jail.atEntry(segments, walk, ({ directory, name }) => entryKey(directory, name));
  return fileLocks.run(key, () => jail.atEntry(segments, walk, run));
}

function whyNotWritable(
  old: BigIntStats | undefined,
  path: string,
  { mode, expectedVersion }: WriteOptions,
): errors.BackendFailure | undefined {
  if (old?.isSymbolicLink() === true) return errors.writeToSymlink(path);
  if (old?.isDirectory() === true) return errors.isDirectory(path);
  if (old !== undefined && mode !== "overwrite") return errors.alreadyExists(path);
  const version = old === undefined ? undefined : statVersion(old);
  if (expectedVersion !== undefined && expectedVersion !== version) return errors.changedSinceRead(path);
  return old === undefined ? undefined : whyNotFile(old, path);
}

const isSame = (now: BigIntStats | undefined, then: BigIntStats | undefined): boolean =>
  (now === undefined ? undefined : statVersion(now)) === (then === undefined ? undefined : statVersion(then));

/** Removes a file, a link (not its target), or a directory with its contents. Refuses a directory with hidden entries. */
export function deleteEntry(
  jail: Jail,
  { segments, path }: FilesystemPath,
  options: CallOptions,
): Promise<DeleteResult> {
  return jail.atEntry(
    segments,
    { lastLink: "itself" },
    async ({ directory, name }): Promise<DeleteResult> => {
      const stats = statEntry(directory, name);
      if (stats === undefined) return errors.fileNotFound(path);
      if (stats.isDirectory() && jail.hidden.areBelow(stats)) throw new AccessError("EACCES");
      if (stats.isDirectory()) await removeTree(directory, name, options.signal);
      else unlinkSync(directory.at(name));
      await directory.flush();
      return { path, filesUpdate: null };
    },
  );
}

async function removeTree(
  parent: DirectoryHandle,
  name: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const directory = parent.openDirectory(name);
  try {
    for (const entry of await directory.entries()) {
      signal?.throwIfAborted();
      if (entry.isDirectory()) await removeTree(directory, entry.name, signal);
      else unlinkSync(directory.at(entry.name));
    }
  } finally {
    directory.close();
  }
  rmdirSync(parent.at(name));
}
