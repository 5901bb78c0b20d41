import type { Backend } from "../../src/backends/backend.ts";
import { stateBackend } from "./harness.ts";

export type Files = Readonly<Record<string, string | Uint8Array>>;

export interface BackendKind {
  name: string;
  /** A backend holding these files, by virtual path. */
  open: (files?: Files) => Promise<Backend>;
}

/** The backends every format and error text is tested over. */
export const BACKENDS: readonly BackendKind[] = [
  { name: "StateBackend", open: async (files = {}) => stateBackend(files) },
];
