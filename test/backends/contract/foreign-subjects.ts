import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import * as deepagents from "deepagents";
import { adaptBackend } from "../../../src/backends/foreign/adapt.ts";
import type { Backend, FileData, FilesUpdate } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import type { TestedBackend } from "../../../testing/backend-contract.ts";
import type { Subject } from "./contract.ts";

/**
 * The published backends of deepagents, unchanged. (Its VFS provider, @langchain/node-vfs, installs a
 * dependency from a Git repository and so cannot be had everywhere.)
 */
type Skips = NonNullable<Subject["skip"]>;

const ownSearch: Skips = [
  {
    reason: "its own literal search leaves out hidden files, and tells binary files by their names",
    cases: ["grep: hidden files are searched, binary files are not"],
  },
  {
    reason: "its own literal search reads UTF-8 only, or passes the line end of UTF-16 on",
    cases: ["grep: finds lines in UTF-16"],
  },
];

const diskSkips: Skips = [
  ...ownSearch,
  {
    reason: "its own literal search gives no text for lines that are not UTF-8",
    cases: ["grep: text in an older encoding is searched"],
  },
  {
    reason: "file systems keep no time of creation",
    cases: ["readRaw: keeps the time of creation when a file is edited"],
  },
  {
    reason: "it refuses every path in which two dots stand together",
    cases: ["names: any name works in every method", "names: any name works for a directory"],
  },
  {
    reason: "it writes a file in place, where a reader can find a part of the text",
    cases: ["concurrency: a reader sees the old content or the new"],
  },
];

const flatSkips: Skips = [
  {
    reason: "keys are flat: nothing tells a file from a directory above another",
    cases: ["write: a file is not a directory"],
  },
  {
    reason: "it gives the length of a text in characters as its size",
    cases: ["ls: a file has its size in bytes and the time of its change"],
  },
  {
    reason: "it decodes what is uploaded under the name of a text, which loses bytes and a byte order mark",
    cases: [
      "read: text in an older encoding is read, and the encoding named",
      "read: UTF-16 with a byte order mark is text",
      "read: bytes after the mark of UTF-16 that are not text are binary",
      "write: stores a text in the encoding asked for",
      "edit: text in UTF-16 stays in it",
      "readRaw: gives the whole text with its type and times",
      "edit: a byte order mark stays",
      "edit: text in an older encoding stays in it, if that is certain",
      "grep: text in an older encoding is searched",
      "downloadFiles: gives the bytes that were put, in order",
    ],
  },
  {
    reason: "its glob takes a line end in a name for the end of the name",
    cases: ["names: any name works in every method"],
  },
];

function inFolder(make: (rootDir: string) => deepagents.BackendProtocolV2): TestedBackend {
  const rootDir = mkdtempSync(join(tmpdir(), "deepagent-foreign-"));
  return { backend: adaptBackend(make(rootDir)), dispose: () => rmSync(rootDir, { recursive: true }) };
}

const filesystem: Subject = {
  name: "FilesystemBackend of deepagents",
  keepsFilesInState: false,
  make: () => inFolder((rootDir) => new deepagents.FilesystemBackend({ rootDir, virtualMode: true })),
  skip: diskSkips,
};

const shell: Subject = {
  name: "LocalShellBackend of deepagents",
  keepsFilesInState: false,
  make: () => inFolder((rootDir) => new deepagents.LocalShellBackend({ rootDir, virtualMode: true })),
  skip: diskSkips,
};

const storeBackend = (): deepagents.StoreBackend =>
  new deepagents.StoreBackend({ store: new InMemoryStore(), namespace: ["files"] });

const store: Subject = {
  name: "StoreBackend of deepagents",
  keepsFilesInState: false,
  make: () => ({ backend: adaptBackend(storeBackend()) }),
  skip: [...ownSearch, ...flatSkips],
};

/** Its agent applies the changes that it returns to the state; so does this. */
class AppliedState extends deepagents.StateBackend {
  readonly #files: Record<string, FileData>;

  constructor(files: Record<string, FileData> = {}) {
    super({ state: { files } });
    this.#files = files;
  }

  override write = (...args: Parameters<deepagents.StateBackend["write"]>) =>
    this.#applied(super.write(...args));
  override edit = (...args: Parameters<deepagents.StateBackend["edit"]>) =>
    this.#applied(super.edit(...args));
  override delete = (...args: Parameters<deepagents.StateBackend["delete"]>) =>
    this.#applied(super.delete(...args));
  override uploadFiles = (...args: Parameters<deepagents.StateBackend["uploadFiles"]>) =>
    this.#applied(super.uploadFiles(...args));

  #applied<Result extends object>(result: Result): Result {
    const update =
      "filesUpdate" in result ? (result.filesUpdate as FilesUpdate | null | undefined) : undefined; // of every change
    for (const [path, data] of Object.entries(update ?? {})) {
      if (data === null) delete this.#files[path];
      else this.#files[path] = data;
    }
    return result;
  }
}

const state: Subject = {
  name: "StateBackend of deepagents",
  keepsFilesInState: true,
  make: () => ({ backend: adaptBackend(new AppliedState()) }),
  skip: [...ownSearch, ...flatSkips],
};

const composite: Subject = {
  name: "CompositeBackend of deepagents, at /disk/ its FilesystemBackend",
  keepsFilesInState: false,
  make: () => ({
    ...inFolder((rootDir) => {
      const disk = new deepagents.FilesystemBackend({ rootDir, virtualMode: true });
      return new deepagents.CompositeBackend(storeBackend(), { "/disk/": disk });
    }),
    prefix: "/disk",
  }),
  skip: [
    ...diskSkips,
    {
      reason: "nothing tells its mount point from another directory",
      cases: ["delete: refuses the root", "uploadFiles: one bad file does not stop the others"],
    },
  ],
};

const mounted = (inner: Subject): Subject => ({
  ...inner,
  name: `CompositeBackend, at /mnt/: ${inner.name}`,
  make: async () => {
    const made = await inner.make();
    const source = new CompositeBackend(new StateBackend(), { "/mnt/": made.backend });
    const backend: Backend = await resolveBackend(source, { files: snapshotFiles() });
    return { ...made, backend, prefix: `/mnt${made.prefix ?? ""}` };
  },
});

const PUBLISHED: readonly Subject[] = [filesystem, shell, store, state, composite];

export const FOREIGN_SUBJECTS: readonly Subject[] = [...PUBLISHED, mounted(filesystem)];
