import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import type { Backend } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend, type FilesystemOptions } from "../../../src/backends/filesystem/filesystem.ts";
import { OverlayBackend } from "../../../src/backends/overlay.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { createStore } from "../../../src/storage/sqlite/memories/store.ts";
import { postgres } from "../postgres/subject.ts";
import { s3, s3LastWriterWins } from "../s3/subjects.ts";
import type { TestedBackend } from "../../../testing/backend-contract.ts";
import type { Subject } from "./contract.ts";

const runtime = () => ({ files: snapshotFiles() });

const state: Subject = {
  name: "StateBackend",
  keepsFilesInState: true,
  make: () => ({ backend: new StateBackend({ files: snapshotFiles() }) }),
};

const storeSkips = {
  skip: [
    {
      reason: "keys are flat: a single-file operation touches one item and sees no directories",
      cases: [
        "read: a missing file and a directory are told apart",
        "readRaw: a missing file and a directory are told apart",
        "edit: a missing file and a directory are told apart",
        "write: a directory is not replaced",
        "write: a file is not a directory",
      ],
    },
  ],
} satisfies Pick<Subject, "skip">;

const store: Subject = {
  name: "StoreBackend",
  keepsFilesInState: false,
  make: () => ({ backend: new StoreBackend({ store: new InMemoryStore() }) }),
  ...storeSkips,
};

const sqliteStore: Subject = {
  name: "StoreBackend, in SQLite",
  keepsFilesInState: false,
  make: () => {
    const database = openDatabase(":memory:");
    return {
      backend: new StoreBackend({ store: createStore(database) }),
      dispose: () => void database.close(),
    };
  },
  ...storeSkips,
};

const filesystem = (name: string, options: FilesystemOptions): Subject => ({
  name: `FilesystemBackend, ${name}`,
  keepsFilesInState: false,
  make: (): TestedBackend => {
    const rootDir = mkdtempSync(join(tmpdir(), "deepagent-contract-"));
    return {
      backend: new FilesystemBackend({ rootDir, ...options }),
      ...(options.virtualMode === true ? {} : { prefix: rootDir }),
      dispose: () => rmSync(rootDir, { recursive: true }),
    };
  },
  skip: [
    {
      reason: "an edit puts a new file in place, and file systems keep no time of creation across that",
      cases: ["readRaw: keeps the time of creation when a file is edited"],
    },
  ],
});

const virtual = filesystem("virtual paths", { virtualMode: true });

const overlay: Subject = {
  ...virtual,
  name: `OverlayBackend over ${virtual.name}`,
  keepsFilesInState: true,
  make: async () => {
    const made = await virtual.make();
    return { ...made, backend: await resolveBackend(new OverlayBackend(made.backend), runtime()) };
  },
  skip: [],
};

/** The subject as the wrapper's inner backend. */
const wrapped = (
  inner: Subject,
  name: string,
  wrap: (backend: Backend) => Promise<Backend> | Backend,
  mount = "",
): Subject => ({
  ...inner,
  name: `${name} ${inner.name}`,
  make: async () => {
    const made = await inner.make();
    return { ...made, backend: await wrap(made.backend), prefix: mount + (made.prefix ?? "") };
  },
});

const mounted = (inner: Subject, prefix: string): Subject =>
  wrapped(
    inner,
    `CompositeBackend, at ${prefix}:`,
    (backend) =>
      resolveBackend(
        new CompositeBackend(new StateBackend(), { [prefix]: backend, "/other/": new StateBackend() }),
        runtime(),
      ),
    prefix.replace(/\/$/, ""),
  );

const asDefault = (inner: Subject): Subject =>
  wrapped(inner, "CompositeBackend, by default:", (backend) =>
    resolveBackend(new CompositeBackend(backend, {}), runtime()),
  );

const mountedState: Subject = {
  name: "CompositeBackend, at /scratch/: StateBackend of the same thread",
  keepsFilesInState: true,
  make: async () => ({
    backend: await resolveBackend(
      new CompositeBackend(new StateBackend(), { "/scratch/": StateBackend }),
      runtime(),
    ),
    prefix: "/scratch",
  }),
};

const guarded = (inner: Subject): Subject =>
  wrapped(
    inner,
    "PolicyBackend over",
    (backend) => new PolicyBackend(backend, { denyPrefixes: ["/protected/"], denyGlobs: ["/protected.txt"] }),
  );

/** Every backend and every arrangement the contract is run on. */
export const SUBJECTS: readonly Subject[] = [
  state,
  store,
  sqliteStore,
  virtual,
  filesystem("real paths", {}),
  filesystem("virtual paths, without ripgrep", { virtualMode: true, ripgrep: false }),
  filesystem("virtual paths, without descriptor paths", { virtualMode: true, descriptorPaths: false }),
  overlay,
  mountedState,
  mounted(overlay, "/deep/er/mnt"),
  mounted(store, "/mnt/"),
  mounted(mounted(virtual, "/inner/"), "/outer/"),
  asDefault(virtual),
  guarded(state),
  mounted(guarded(virtual), "/mnt/"),
];

/** Backends over a server that is started for them. */
export const SERVER_SUBJECTS: readonly Subject[] = [postgres, s3LastWriterWins, s3];
