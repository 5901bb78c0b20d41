import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach } from "vitest";
import { FilesystemBackend, type FilesystemOptions } from "../../../src/backends/filesystem/filesystem.ts";
import { filesIn } from "../../support/files-in.ts";

/** Of the current test: a folder with the backend's root and a neighbour that has a secret. */
export let base: string;
export let root: string;
export let outside: string;

beforeEach(() => {
  base = filesIn({ "outside/secret.txt": "SECRET\n" });
  root = join(base, "root");
  outside = join(base, "outside");
  mkdirSync(root);
});

export const make = (options: FilesystemOptions = {}): FilesystemBackend =>
  new FilesystemBackend({ rootDir: root, virtualMode: true, ...options });
