import type { FileData, FilesUpdate, ThreadFiles } from "./backend.ts";

/**
 * The files of a checkpointed state as one step sees them: `record` stays as it is, changes go to an
 * overlay that all calls of the step share.
 */
export function snapshotFiles(record: Readonly<Record<string, FileData>> = {}): ThreadFiles {
  const overlay = new Map<string, FileData | null>();
  const stored = (path: string): FileData | undefined =>
    Object.hasOwn(record, path) ? record[path] : undefined;
  return {
    get: (path) => {
      const changed = overlay.get(path);
      return changed === undefined ? stored(path) : (changed ?? undefined);
    },
    entries: function* () {
      for (const [path, data] of Object.entries(record)) {
        if (!overlay.has(path)) yield [path, data];
      }
      for (const [path, data] of overlay) {
        if (data !== null) yield [path, data];
      }
    },
    apply: (update: FilesUpdate) => {
      for (const [path, data] of Object.entries(update)) overlay.set(path, data);
    },
  };
}
