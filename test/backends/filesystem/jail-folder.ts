import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { FilesystemBackend, type FilesystemOptions } from "../../../src/backends/filesystem/filesystem.ts";

/** Of the current test: a folder with the backend's root and a neighbour that has a secret. */
export let base: string;
export let root: string;
export let outside: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "deepagent-fs-")));
  root = join(base, "root");
  outside = join(base, "outside");
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.txt"), "SECRET\n");
});

afterEach(() => {
  rmSync(base, { recursive: true });
});

export const make = (options: FilesystemOptions = {}): FilesystemBackend =>
  new FilesystemBackend({ rootDir: root, virtualMode: true, ...options });
