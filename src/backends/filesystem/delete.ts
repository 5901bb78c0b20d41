import { rmdirSync, unlinkSync } from "node:fs";
import type { CallOptions, DeleteResult } from "../backend.ts";
import { AccessError, type DirectoryHandle } from "./directory-handles.ts";
import { fileNotFound } from "../errors.ts";
import { statEntry } from "./file-writer.ts";
import type { FilesystemPath } from "./paths.ts";
import type { Jail } from "./jail.ts";

/** Removes a file, a link (never what it leads to) or a directory with everything below it, if nothing there is hidden. */
export function deleteEntry(
  jail: Jail,
  { segments, shownAs }: FilesystemPath,
  options: CallOptions | undefined,
): Promise<DeleteResult> {
  return jail.atEntry(
    segments,
    { lastLink: "itself" },
    async ({ directory, name }): Promise<DeleteResult> => {
      const stats = statEntry(directory, name);
      if (stats === undefined) return fileNotFound(shownAs);
      if (stats.isDirectory() && jail.hidden.areBelow(stats)) throw new AccessError("EACCES");
      if (stats.isDirectory()) await removeTree(directory, name, options?.signal);
      else unlinkSync(directory.at(name));
      await directory.flush();
      return { path: shownAs, filesUpdate: null };
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
