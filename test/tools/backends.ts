import type { Backend } from "../../src/backends/backend.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { stateBackend } from "./harness.ts";
import { filesIn } from "../support/files-in.ts";

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

export async function filesystemBackend(files?: Files): Promise<Backend> {
  return new FilesystemBackend({ rootDir: filesIn(files), virtualMode: true });
}
