import { randomBytes } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  linkSync,
  lstatSync,
  renameSync,
  unlinkSync,
  write as writeWithCallback,
} from "node:fs";
import { promisify } from "node:util";
import { type DirectoryHandle, flushed } from "./directory-handles.ts";
import { codeOf } from "./jail.ts";
import { inProcessLock } from "./process-lock.ts";

const writeAt = promisify(writeWithCallback);

const TEMPORARY_PREFIX = ".deepagent-";
const TEMPORARY = /^\.deepagent-[0-9a-f]{24}\.tmp$/;

/** Whether a name is that of an unfinished write, which nobody is shown. */
export const isTemporaryName = (name: string): boolean =>
  name.startsWith(TEMPORARY_PREFIX) && TEMPORARY.test(name);

/** Changes whenever a file is replaced or written to. */
export const statVersion = (stats: BigIntStats): string =>
  `${stats.ino.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ctimeNs.toString(36)}-${stats.size.toString(36)}`;

/** The entry as it is, links not followed; undefined when there is none. */
export function statEntry(directory: DirectoryHandle, name: string): BigIntStats | undefined {
  try {
    return lstatSync(directory.at(name), { bigint: true });
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

export interface NewContent {
  bytes: Uint8Array;
  /** Default `create`: the name must be free, and the call fails with `EEXIST` otherwise, however close the race. */
  mode?: "create" | "overwrite";
  /** The file that is replaced, whose mode and owner stay. */
  replaces?: BigIntStats | undefined;
  /** Asked right before the content is put in place; false leaves everything as it is. */
  mayProceed?(): boolean;
}

/** The same for every path to an entry, in every process of this machine. */
export const entryKey = (directory: DirectoryHandle, name: string): string =>
  `file ${directory.identity()} ${name}`;

/**
 * Puts a file into a directory in one step: readers see nothing, the old content or the new, and so do those
 * after a power cut; once this has resolved, they see the new one. Gives the version of the new file, or
 * undefined when it was not to proceed. From `mayProceed` to the version no other process of this user
 * replaces the file.
 */
export async function putFile(
  directory: DirectoryHandle,
  name: string,
  content: NewContent,
): Promise<string | undefined> {
  const temporary = `${TEMPORARY_PREFIX}${randomBytes(12).toString("hex")}.tmp`;
  await writeTemporary(directory, temporary, content);
  try {
    const version = await inProcessLock(entryKey(directory, name), () => {
      if (content.mayProceed?.() === false) return undefined;
      if (content.mode === "overwrite") renameSync(directory.at(temporary), directory.at(name));
      else linkExclusively(directory, temporary, name);
      // A second name is removed first: that changes the status of the file, and so its version.
      removeIfThere(directory, temporary);
      return statVersion(lstatSync(directory.at(name), { bigint: true }));
    });
    if (version !== undefined) await directory.flush();
    return version;
  } finally {
    removeIfThere(directory, temporary);
  }
}

async function writeTemporary(
  directory: DirectoryHandle,
  name: string,
  { bytes, replaces }: NewContent,
): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const descriptor = directory.openFile(name, flags, 0o666);
  try {
    for (let at = 0; at < bytes.byteLength;) {
      at += (await writeAt(descriptor, bytes, at, bytes.byteLength - at, at)).bytesWritten;
    }
    if (replaces !== undefined) keepAttributes(descriptor, replaces);
    await flushed(descriptor);
  } catch (thrown) {
    removeIfThere(directory, name);
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

function keepAttributes(descriptor: number, { uid, gid, mode }: BigIntStats): void {
  try {
    fchownSync(descriptor, Number(uid), Number(gid));
  } catch (thrown) {
    // Only a privileged process may give a file away; without, the file becomes ours.
    if (codeOf(thrown) !== "EPERM") throw thrown;
  }
  // Not the bits that lend the owner's rights: the content is another one.
  fchmodSync(descriptor, Number(mode) & 0o777);
}

function linkExclusively(directory: DirectoryHandle, temporary: string, name: string): void {
  try {
    linkSync(directory.at(temporary), directory.at(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP" && code !== "ENOSYS") throw thrown;
    // A file system without hard links. Taking the name first keeps it exclusive.
    closeSync(directory.openFile(name, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666));
    renameSync(directory.at(temporary), directory.at(name));
  }
}

function removeIfThere(directory: DirectoryHandle, name: string): void {
  try {
    unlinkSync(directory.at(name));
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
  }
}
