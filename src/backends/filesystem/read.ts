import { type BigIntStats, closeSync, constants, fstatSync } from "node:fs";
import type { CallOptions, ReadRawResult, ReadResult } from "../backend.ts";
import * as errors from "../errors.ts";
import { toFileData } from "../file-data.ts";
import { DEFAULT_BINARY_TYPE, isTextType, mimeTypeOf, plainBytes } from "../mime.ts";
import { MAX_BINARY_SIZE, type PageRequest, readBytes, readFilePage, startsBinary } from "../pages.ts";
import { statVersion } from "./file-writer.ts";
import type { DirectoryHandle } from "./handles.ts";
import type { FilesystemPath, Jail } from "./jail.ts";

/** Largest file that is loaded whole for a raw read or a download. */
const MAX_LOAD_SIZE = 256 * 1024 * 1024;

export interface OpenFile {
  descriptor: number;
  stats: BigIntStats;
}

/** Calls `use` with the regular file of a name, which is closed afterwards. */
export async function withOpenFile<Result>(
  directory: DirectoryHandle,
  name: string,
  path: string,
  use: (file: OpenFile) => Promise<Result>,
): Promise<Result | errors.BackendFailure> {
  const descriptor = directory.openFile(name, constants.O_RDONLY);
  try {
    const stats = fstatSync(descriptor, { bigint: true });
    return whyNotFile(stats, path) ?? (await use({ descriptor, stats }));
  } finally {
    closeSync(descriptor);
  }
}

export function whyNotFile(stats: BigIntStats, path: string): errors.BackendFailure | undefined {
  if (stats.isDirectory()) return errors.isDirectory(path);
  return stats.isFile() ? undefined : errors.notRegularFile(path);
}

/** Reads a page of a text file, or a whole binary file. Follows links inside the root. */
export function readPath(
  jail: Jail,
  at: FilesystemPath,
  request: PageRequest,
  options: CallOptions,
): Promise<ReadResult> {
  const { path } = at;
  return openPath(jail, at, options, async ({ descriptor, stats }): Promise<ReadResult> => {
    const version = statVersion(stats);
    const mimeType = mimeTypeOf(path);
    if (isTextType(mimeType) && !(await startsBinary(descriptor))) {
      const page = await readFilePage(path, descriptor, request, options.signal);
      if (page.error !== undefined) return page;
      const isText = typeof page.content === "string" && !page.content.includes("\0");
      if (isText) return { ...page, mimeType, version };
    }
    if (stats.size > MAX_BINARY_SIZE) return errors.binaryTooLarge(Number(stats.size));
    const bytes = await readBytes(descriptor, Number(stats.size), MAX_BINARY_SIZE);
    const type = isTextType(mimeType) ? DEFAULT_BINARY_TYPE : mimeType;
    return { content: plainBytes(bytes), mimeType: type, version };
  });
}

/** Reads a whole file. Follows links inside the root. */
export function readWholePath(jail: Jail, at: FilesystemPath, options: CallOptions): Promise<ReadRawResult> {
  return openPath(jail, at, options, async ({ descriptor, stats }): Promise<ReadRawResult> => {
    const bytes = await readBytes(descriptor, Number(stats.size), MAX_LOAD_SIZE);
    if (bytes.length > MAX_LOAD_SIZE) {
      return errors.tooLargeToLoad(at.path, Number(stats.size), MAX_LOAD_SIZE);
    }
    const times = { createdAt: stats.birthtime.toISOString(), now: stats.mtime.toISOString() };
    return { data: toFileData(at.path, plainBytes(bytes), times), version: statVersion(stats) };
  });
}

function openPath<Result>(
  jail: Jail,
  { segments, path }: FilesystemPath,
  options: CallOptions,
  use: (file: OpenFile) => Promise<Result>,
): Promise<Result | errors.BackendFailure> {
  options.signal?.throwIfAborted();
  return jail.atEntry(segments, {}, ({ directory, name }) => withOpenFile(directory, name, path, use));
}
