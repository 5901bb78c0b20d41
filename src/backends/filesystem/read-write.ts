/** Reads, writes and edits files inside the jail. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { promisify } from "node:util";
import type * as port from "../backend.ts";
import { type Change, type Edit, fileLocks } from "../checked-backend.ts";
import { type BackendFailure, errors } from "../errors.ts";
import { mayBeIso2022, readFileText } from "../encoding.ts";
import { classifyBytes, editContent, encodingFacts, readContent, toFileData } from "../file-data.ts";
import { isTextType, mimeTypeOf, plainBytes } from "../mime.ts";
import { MAX_BINARY_SIZE, type PageRequest, encodingOfFile, readBytes, readFilePage } from "../pages.ts";
import { AccessError, type DirectoryHandle, flushed, fileIdentity } from "./handles.ts";
import { type FilesystemPath, type JailEntry, type WalkOptions, statEntry } from "./jail.ts";
import { inProcessLock } from "./process-lock.ts";
import { codeOf } from "../../core/errors.ts";
import { NewestOf } from "../../core/newest-of.ts";

const TEMPORARY_PREFIX = ".deepagent-";

/** True if a name belongs to an unfinished write, which is never shown. */
export const isTemporaryName = (name: string): boolean =>
  name.startsWith(TEMPORARY_PREFIX) && /^\.deepagent-[0-9a-f]{24}\.tmp$/.test(name);

const temporaryName = (mark = ""): string =>
  `${TEMPORARY_PREFIX}${(mark + randomBytes(12).toString("hex")).slice(0, 24)}.tmp`;

/** A version that changes whenever a file is replaced or written to. */
export const statVersion = (stats: fs.BigIntStats): string =>
  `${stats.ino.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ctimeNs.toString(36)}-${stats.size.toString(36)}`;

/** Options of a write for callers that carry out plans. */
export interface PlannedWrite {
  /** Twelve hexadecimal digits, with which the name of the unfinished file begins. Default: random ones. */
  mark?: string;
  /** Default: as the file was that is replaced, or as new files are. */
  executable?: boolean;
}

interface NewContent extends PlannedWrite {
  bytes: Uint8Array;
  /** Default `create`: fails with `EEXIST` if the name is taken, however close the race. */
  mode?: "create" | "overwrite";
  /** The file that is replaced. Its mode and owner are kept. */
  replaces?: fs.BigIntStats | undefined;
  /** Called right before the content is put in place. False cancels the write. */
  mayProceed?(): boolean;
}

/** True if the mode of a file denies writing to everyone. */
export const isReadOnly = ({ mode }: fs.BigIntStats): boolean => (mode & 0o222n) === 0n;

/** The part of a result that marks a file as changed under all its names. */
const allNames = (old: fs.BigIntStats | undefined): Pick<port.WriteResult, "otherNames"> =>
  old !== undefined && old.nlink > 1n ? { otherNames: [] } : {};

/** Identifies an entry, whatever path leads to it, in every process of this machine. */
const entryKey = (directory: DirectoryHandle, name: string): string => `file ${directory.identity()} ${name}`;

/**
 * Puts a file into a directory in one step: a reader sees the old content or the new, also after a power cut. Only a
 * file with several names, or one that is mounted, is written in its place. Once this has resolved, everyone sees the
 * new content. Returns the version of the new file, or undefined if `mayProceed` was false. From that call to the
 * version no other process of this user replaces the file.
 */
async function putFile(directory: DirectoryHandle, name: string, content: NewContent) {
  const temporary = temporaryName(content.mark);
  await writeTemporary(directory, temporary, content);
  try {
    const stats = await inProcessLock(entryKey(directory, name), () => {
      if (content.mayProceed?.() === false) return undefined;
      if (content.mode !== "overwrite") linkExclusively(directory, temporary, name);
      else if (!replaceEntry(directory, temporary, name, content)) {
        // Its room is free for the same bytes now.
        removeIfThere(directory, temporary);
        writeInPlace(directory, name, content);
      }
      // Removing the second name changes the status of the file and with it the version.
      removeIfThere(directory, temporary);
      return fs.lstatSync(directory.at(name), { bigint: true });
    });
    if (stats === undefined) return undefined;
    await directory.flush();
    await removeLeftovers(directory, stats.mtimeMs);
    return statVersion(stats);
  } finally {
    removeIfThere(directory, temporary);
  }
}

/** Age of a temporary file whose process was killed, and time between two looks for such files in a directory. */
const LEFT_MS = 600_000;
/** Directories that were looked through last, and when. */
const lookedThrough = new NewestOf<number>(1000);

/** Removes temporary files of killed processes from a directory. `now`: when it was last written to, by its own clock. */
async function removeLeftovers(directory: DirectoryHandle, now: bigint): Promise<void> {
  const [key, time] = [directory.identity(), performance.now()];
  if (time - (lookedThrough.get(key) ?? -Infinity) < LEFT_MS) return;
  lookedThrough.keep(key, time);
  try {
    for (const { name } of await directory.entries()) {
      const stats = isTemporaryName(name) ? statEntry(directory, name) : undefined;
      if (stats?.isFile() === true && now - stats.mtimeMs > LEFT_MS) removeIfThere(directory, name);
    }
  } catch (thrown) {
    // The file is written, and leftovers are hidden everywhere.
    if (codeOf(thrown) === undefined) throw thrown;
  }
}

async function writeTemporary(directory: DirectoryHandle, name: string, content: NewContent) {
  const { bytes, replaces, executable } = content;
  const flags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL;
  const descriptor = directory.openFile(name, flags, 0o666);
  try {
    await promisify(fs.writeFile)(descriptor, bytes);
    if (replaces !== undefined) keepAttributes(descriptor, replaces);
    if (executable !== undefined) setExecutable(descriptor, executable);
    await flushed(descriptor);
  } catch (thrown) {
    removeIfThere(directory, name);
    throw thrown;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Puts the new file in the place of the old one. Returns false for an old one that has other names or is mounted. */
function replaceEntry(directory: DirectoryHandle, temporary: string, name: string, { replaces }: NewContent) {
  if (replaces !== undefined && replaces.nlink > 1n) return false;
  try {
    fs.renameSync(directory.at(temporary), directory.at(name));
    return true;
  } catch (thrown) {
    const code = codeOf(thrown);
    if (replaces === undefined || (code !== "EBUSY" && code !== "EXDEV")) throw thrown;
    return false;
  }
}

function writeInPlace(directory: DirectoryHandle, name: string, content: NewContent): void {
  const { bytes, replaces, executable } = content;
  const descriptor = directory.openFile(name, fs.constants.O_WRONLY);
  try {
    const stats = fs.fstatSync(descriptor, { bigint: true });
    if (replaces === undefined || fileIdentity(stats) !== fileIdentity(replaces))
      throw new AccessError("EBUSY");
    fs.writeFileSync(descriptor, bytes);
    fs.ftruncateSync(descriptor, bytes.byteLength);
    if (executable !== undefined) setExecutable(descriptor, executable);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

function keepAttributes(descriptor: number, { uid, gid, mode }: fs.BigIntStats): void {
  try {
    fs.fchownSync(descriptor, Number(uid), Number(gid));
  } catch (thrown) {
    // Only a privileged process may change the owner. Otherwise the file becomes ours.
    if (codeOf(thrown) !== "EPERM") throw thrown;
  }
  // Drops the set-user-ID and set-group-ID bits, because the content is new.
  fs.fchmodSync(descriptor, Number(mode) & 0o777);
}

/** Lets whoever may read a file run it, as Git does, or nobody. */
function setExecutable(descriptor: number, executable: boolean): void {
  const { mode } = fs.fstatSync(descriptor);
  fs.fchmodSync(descriptor, executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111);
}

function linkExclusively(directory: DirectoryHandle, temporary: string, name: string): void {
  try {
    fs.linkSync(directory.at(temporary), directory.at(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP" && code !== "ENOSYS") throw thrown;
    // The file system has no hard links. Taking the name first keeps the write exclusive.
    fs.closeSync(
      directory.openFile(name, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o666),
    );
    fs.renameSync(directory.at(temporary), directory.at(name));
  }
}

const removeIfThere = (directory: DirectoryHandle, name: string): void =>
  fs.rmSync(directory.at(name), { force: true });

/** Largest file that is loaded whole for a raw read or a download. */
const MAX_LOAD_SIZE = 256 * 1024 * 1024;

interface OpenFile {
  descriptor: number;
  stats: fs.BigIntStats;
}

/** Calls `use` with the regular file of a name, which is closed afterwards. */
async function withOpenFile<Result>(
  directory: DirectoryHandle,
  name: string,
  { path, hidden }: FilesystemPath,
  use: (file: OpenFile) => Promise<Result>,
): Promise<Result | BackendFailure> {
  const descriptor = directory.openFile(name, fs.constants.O_RDONLY);
  try {
    const stats = fs.fstatSync(descriptor, { bigint: true });
    if ((await hidden?.has(stats)) === true) return errors.permissionDenied(path);
    return whyNotFile(stats, path) ?? (await use({ descriptor, stats }));
  } finally {
    fs.closeSync(descriptor);
  }
}

function whyNotFile(stats: fs.BigIntStats, path: string): BackendFailure | undefined {
  if (stats.isDirectory()) return errors.isDirectory(path);
  return stats.isFile() ? undefined : errors.notRegularFile(path);
}

/** Reads a page of a text file, or a whole binary file. Follows links inside the root. */
export function readPath(
  at: FilesystemPath,
  request: PageRequest,
  options: port.CallOptions,
): Promise<port.ReadResult> {
  const { path } = at;
  return openPath(at, options, async ({ descriptor, stats }): Promise<port.ReadResult> => {
    const version = statVersion(stats);
    const mimeType = mimeTypeOf(path);
    const encoding = isTextType(mimeType) ? await encodingOfFile(descriptor) : undefined;
    if (encoding !== undefined) {
      const page = await readFilePage(path, descriptor, request, options.signal);
      if (page.error !== undefined && page.code !== "encoding") return page;
      const text = typeof page.content === "string" ? page.content : "\0";
      if (!text.includes("\0") && !mayBeIso2022(text))
        return { ...page, mimeType, version, ...encodingFacts({ encoding }) };
    }
    const bytes = await readBytes(descriptor, Number(stats.size), MAX_BINARY_SIZE);
    if (bytes.length <= MAX_BINARY_SIZE)
      return readContent(path, classifyBytes(path, bytes), request, version);
    // Shows a long file by the encoding of its first lines.
    const lines = bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
    const first = encoding === "utf-8" ? readFileText(lines) : undefined;
    if (first === undefined) return errors.binaryTooLarge(Number(stats.size));
    const page = await readFilePage(path, descriptor, request, options.signal, first.encoding);
    return page.error === undefined ? { ...page, mimeType, version, ...encodingFacts(first) } : page;
  });
}

export const readWholePath = (at: FilesystemPath, options: port.CallOptions): Promise<port.ReadRawResult> =>
  openPath(at, options, async ({ descriptor, stats }): Promise<port.ReadRawResult> => {
    const bytes = await readBytes(descriptor, Number(stats.size), MAX_LOAD_SIZE);
    if (bytes.length > MAX_LOAD_SIZE)
      return errors.tooLargeToLoad(at.path, Number(stats.size), MAX_LOAD_SIZE);
    const times = { createdAt: stats.birthtime.toISOString(), now: stats.mtime.toISOString() };
    return { data: toFileData(at.path, plainBytes(bytes), times), version: statVersion(stats) };
  });

function openPath<Result>(
  at: FilesystemPath,
  options: port.CallOptions,
  use: (file: OpenFile) => Promise<Result>,
): Promise<Result | BackendFailure> {
  options.signal?.throwIfAborted();
  const { jail, segments, links } = at;
  return jail.atEntry(segments, { links }, ({ directory, name }) => withOpenFile(directory, name, at, use));
}

/** Creates a file and missing parent directories, or with mode `overwrite` replaces one. */
export function putPath(
  at: FilesystemPath,
  bytes: Uint8Array,
  options: port.WriteOptions & PlannedWrite,
): Promise<port.WriteResult> {
  const { path } = at;
  return exclusively(at, { create: true, lastLink: "itself" }, async ({ directory, name }) => {
    const old = statEntry(directory, name);
    const refused = whyNotWritable(old, path, options);
    if (refused !== undefined) return refused;
    if (old !== undefined && (await at.hidden?.has(old)) === true) return errors.permissionDenied(path);
    options.signal?.throwIfAborted();
    try {
      const version = await putFile(directory, name, {
        ...options,
        bytes,
        replaces: old,
        mayProceed: () =>
          options.expectedVersion === undefined || isUnchanged(statEntry(directory, name), old),
      });
      if (version === undefined) return errors.changedSinceRead(path);
      return { path, filesUpdate: null, version, ...allNames(old) };
    } catch (thrown) {
      if (codeOf(thrown) !== "EEXIST") throw thrown;
      return whyNotWritable(statEntry(directory, name), path, options) ?? errors.alreadyExists(path);
    }
  });
}

export type PathEdit = Edit & { maxFileSize: number };

/**
 * Replaces text in a file. Follows a link inside the root and changes its target. An edit that is bound to a version
 * fails if that is gone; any other edit is made on the newest content.
 */
export const editPath = (at: FilesystemPath, edit: PathEdit): Promise<port.EditResult> =>
  exclusively(at, {}, async ({ directory, name }): Promise<port.EditResult> => {
    const editOnce = async (): Promise<port.EditResult> => {
      const { path } = at;
      const { maxFileSize, signal, expectedVersion } = edit;
      const loaded = await withOpenFile(directory, name, at, async ({ descriptor, stats }) => ({
        stats,
        bytes: await readBytes(descriptor, Number(stats.size), maxFileSize),
      }));
      if ("error" in loaded) return loaded;
      const { stats, bytes } = loaded;
      if (bytes.length > maxFileSize)
        return errors.tooLargeToEdit(path, Math.max(Number(stats.size), bytes.length), maxFileSize);
      if (expectedVersion !== undefined && expectedVersion !== statVersion(stats))
        return errors.changedSinceRead(path);
      if (isReadOnly(stats) && edit.evenReadOnly !== true) return errors.readOnlyFile(path);
      const edited = editContent(path, classifyBytes(path, bytes), edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      signal?.throwIfAborted();
      const version = await putFile(directory, name, {
        bytes: edited.bytes,
        mode: "overwrite",
        replaces: stats,
        mayProceed: () => isUnchanged(statEntry(directory, name), stats),
      });
      if (version === undefined) return errors.changedSinceRead(path);
      return { path, filesUpdate: null, version, occurrences: edited.occurrences, ...allNames(stats) };
    };
    for (let attempt = 1; ; attempt += 1) {
      const result = await editOnce();
      const isFinal = result.code !== "conflict" || edit.expectedVersion !== undefined;
      if (isFinal || attempt === 5) return result;
    }
  });

/** Makes one change of an entry at a time in this process. Holds nothing open while it waits. */
async function exclusively<Result>(
  { jail, segments, path, links }: FilesystemPath,
  options: WalkOptions,
  run: (located: JailEntry) => Promise<Result>,
): Promise<Result | BackendFailure> {
  if (segments.length === 0) return errors.isDirectory(path);
  const walk = { ...options, links };
  const key = await jail.atEntry(segments, walk, ({ directory, name }) => entryKey(directory, name));
  return fileLocks.run(key, () => jail.atEntry(segments, walk, run));
}

function whyNotWritable(
  old: fs.BigIntStats | undefined,
  path: string,
  { mode, expectedVersion, evenReadOnly }: port.WriteOptions,
): BackendFailure | undefined {
  if (old?.isSymbolicLink() === true) return errors.writeToSymlink(path);
  if (old?.isDirectory() === true) return errors.isDirectory(path);
  if (old !== undefined && mode !== "overwrite") return errors.alreadyExists(path);
  const isChanged = expectedVersion !== undefined && expectedVersion !== (old && statVersion(old));
  if (isChanged) return errors.changedSinceRead(path);
  if (old === undefined) return undefined;
  const isRefused = isReadOnly(old) && evenReadOnly !== true;
  return whyNotFile(old, path) ?? (isRefused ? errors.readOnlyFile(path) : undefined);
}

/** The failure that a change of an entry has for certain. Any error but that of a missing directory is one, too. */
export async function entryRefusal({ jail, segments, path, links }: FilesystemPath, change: Change) {
  if (segments.length === 0) return errors.isDirectory(path);
  try {
    return await jail.atEntry(segments, { lastLink: "itself", links }, ({ directory, name }) => {
      const stats = statEntry(directory, name);
      if (change === "write") return whyNotWritable(stats, path, { mode: "overwrite", evenReadOnly: true });
      if (stats?.isDirectory() === true && jail.hidden.areBelow(stats)) throw new AccessError("EACCES");
      return undefined;
    });
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

const isUnchanged = (now: fs.BigIntStats | undefined, then: fs.BigIntStats | undefined): boolean =>
  (now && statVersion(now)) === (then && statVersion(then));

/** Removes a file or a link of a version. Another one that took its place in the meantime is left there, or put back. */
export const deleteVersion = (
  { jail, segments, path, links }: FilesystemPath,
  version: string,
  mark: string,
): Promise<port.DeleteResult> =>
  jail.atEntry(segments, { lastLink: "itself", links }, async ({ directory, name }) => {
    const stats = statEntry(directory, name);
    if (stats === undefined || statVersion(stats) !== version) return errors.changedSinceRead(path);
    const aside = temporaryName(mark);
    fs.renameSync(directory.at(name), directory.at(aside));
    const moved = statEntry(directory, aside);
    const isUnchanged =
      moved?.ino === stats.ino && moved.mtimeNs === stats.mtimeNs && moved.size === stats.size;
    if (!isUnchanged) linkExclusively(directory, aside, name);
    removeIfThere(directory, aside);
    await directory.flush();
    return isUnchanged ? { path, filesUpdate: null } : errors.changedSinceRead(path);
  });

/** Removes the unfinished files with this mark, so that no process can put them into place any more. */
export const removeUnfinished = ({ jail, segments, links }: FilesystemPath, mark: string): Promise<void> =>
  jail.atEntry(segments, { lastLink: "itself", links }, async ({ directory }) => {
    for (const { name } of await directory.entries())
      if (isTemporaryName(name) && name.startsWith(TEMPORARY_PREFIX + mark)) removeIfThere(directory, name);
  });

/** Removes a file, a link (not its target), or a directory with its contents. Refuses a directory with hidden entries. */
export function deleteEntry(at: FilesystemPath, { signal }: port.CallOptions): Promise<port.DeleteResult> {
  const { jail, segments, path, links } = at;
  return jail.atEntry(segments, { lastLink: "itself", links }, async ({ directory, name }) => {
    const stats = statEntry(directory, name);
    if (stats === undefined) return errors.fileNotFound(path);
    if (stats.isDirectory() && jail.hidden.areBelow(stats)) throw new AccessError("EACCES");
    if (stats.isDirectory()) await removeTree(directory, name, signal);
    else fs.unlinkSync(directory.at(name));
    await directory.flush();
    return { path, filesUpdate: null };
  });
}

async function removeTree(parent: DirectoryHandle, name: string, signal: AbortSignal | undefined) {
  const directory = parent.openDirectory(name);
  try {
    for (const entry of await directory.entries()) {
      signal?.throwIfAborted();
      if (entry.isDirectory()) await removeTree(directory, entry.name, signal);
      else fs.unlinkSync(directory.at(entry.name));
    }
  } finally {
    directory.close();
  }
  fs.rmdirSync(parent.at(name));
}
