import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { stateBackend } from "./harness.ts";

type Files = Readonly<Record<string, string | Uint8Array>>;

export interface BackendKind {
  name: string;
  /** A backend holding these files, by virtual path; it is gone when the test has finished. */
  open: (files?: Files) => Promise<Backend>;
}

/** The backends every format and error text is tested over. */
export const BACKENDS: readonly BackendKind[] = [
  { name: "StateBackend", open: async (files) => stateBackend(files) },
  { name: "FilesystemBackend", open: filesystemBackend },
];

export async function filesystemBackend(files: Files = {}): Promise<Backend> {
  const rootDir = await mkdtemp(join(tmpdir(), "deepagent-tools-"));
  onTestFinished(() => rm(rootDir, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(rootDir, dirname(path)), { recursive: true });
    await writeFile(join(rootDir, path), content);
  }
  return new FilesystemBackend({ rootDir, virtualMode: true });
}
