import type { BackendRuntime, FilesUpdate, ThreadFiles } from "./backend.ts";
import { addPrefix, isAtOrBelow, stripPrefix } from "./paths.ts";

/** The runtime as a backend mounted at `prefix` sees it: thread files below the prefix, without it. */
export const scopeRuntime = (runtime: BackendRuntime, prefix: string): BackendRuntime =>
  prefix === "/" ? runtime : { ...runtime, files: scopeFiles(runtime.files, prefix) };

const scopeFiles = (files: ThreadFiles, prefix: string): ThreadFiles => ({
  get: (path) => files.get(addPrefix(prefix, path)),
  entries: function* () {
    for (const [path, data] of files.entries()) {
      if (path !== prefix && isAtOrBelow(path, prefix)) yield [stripPrefix(prefix, path), data];
    }
  },
  apply: (update) => files.apply(prefixKeys(prefix, update)),
});

/** The same changes, their paths below `prefix`. */
export const prefixKeys = <Value extends FilesUpdate[string]>(
  prefix: string,
  update: Record<string, Value>,
): Record<string, Value> =>
  Object.fromEntries(Object.entries(update).map(([path, data]) => [addPrefix(prefix, path), data]));
