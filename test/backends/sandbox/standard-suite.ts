import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend, EditResult, GlobResult, GrepResult, LsResult } from "../../../src/backends/backend.ts";
import type { SandboxBackend } from "../../../src/backends/executor.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { compileGlob } from "../../../src/backends/glob.ts";
import { relativeTo, withoutSlash } from "../../../src/backends/paths.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import {
  createSandbox,
  type CreateSandboxOptions,
  type OpenSandbox,
} from "../../../src/backends/sandbox/create-sandbox.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";

type Provider = "local" | "bubblewrap" | "docker";

/** What the suite of deepagents takes; see `scripts/sandbox-suite.mjs`. */
type RunSuite = (config: {
  name: string;
  runner: {
    describe: typeof describe;
    it: typeof it;
    expect: typeof expect;
    beforeAll: unknown;
    afterAll: unknown;
  };
  sequential: boolean;
  createSandbox(options?: { initialFiles?: Record<string, string> }): Promise<SuiteSandbox>;
  closeSandbox(sandbox: SuiteSandbox): Promise<void>;
  followLinks(name: string): string;
}) => void;

const MOUNT = "/workspace";

/** The suite's sandbox: files are where commands see them, and it tells whether it runs. */
class SuiteSandbox {
  isRunning = true;
  readonly #files: Backend;
  readonly #sandbox: OpenSandbox;

  constructor(files: Backend, sandbox: OpenSandbox) {
    this.#files = files;
    this.#sandbox = sandbox;
  }

  get id(): string {
    return this.#sandbox.id;
  }

  execute = (command: string) => this.#sandbox.execute(command);
  read: Backend["read"] = (...args) => this.#files.read(...args);
  readRaw: Backend["readRaw"] = (path) => this.#files.readRaw(path);
  grep: Backend["grep"] = (...args) => this.#files.grep(...args);
  // Where the suite has other conventions than the port: directories of that name are found too and paths
  // are relative, a missing directory is an empty one, writes replace, an edit that changes nothing
  // succeeds, and the text about several matches has another word.
  ls: Backend["ls"] = async (path) => {
    const result: LsResult = await this.#files.ls(path);
    return result.code === "not_found" ? { files: [] } : result;
  };
  glob: Backend["glob"] = async (pattern, path = "/") => {
    const result: GlobResult = await this.#files.glob(pattern, path);
    const compiled = compileGlob(pattern);
    if (result.files === undefined || !compiled.ok) return result;
    const { files: listed = [] }: LsResult = await this.ls(path);
    const directories = listed.filter(
      ({ path: found, is_dir: isDirectory }) =>
        isDirectory === true && compiled.glob.matches(withoutSlash(relativeTo(path, found))),
    );
    const files = [...directories, ...result.files].map((file) => ({
      ...file,
      path: relativeTo(path, file.path),
    }));
    return { ...result, files };
  };
  write: Backend["write"] = (path, content) => this.#files.write(path, content, { mode: "overwrite" });
  edit: Backend["edit"] = async (path, oldString, newString, replaceAll) => {
    if (oldString === newString) {
      const { matches = [] }: GrepResult = await this.#files.grep(oldString, path);
      return { path, occurrences: matches.length };
    }
    const result: EditResult = await this.#files.edit(path, oldString, newString, replaceAll);
    return result.code === "ambiguous" ? { ...result, error: `multiple: ${result.error}` } : result;
  };
  uploadFiles = (files: Array<[string, Uint8Array]>) => this.#files.uploadFiles?.(files);
  downloadFiles = (paths: string[]) => this.#files.downloadFiles?.(paths);

  async close(): Promise<void> {
    this.isRunning = false;
    await this.#sandbox.close();
  }
}

/** Registers the suite for one provider, at the paths that file tools and commands share. */
export function registerSuite(run: RunSuite, provider: Provider): void {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "deepagent-suite-")));
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const at = provider === "local" ? folder : MOUNT;
  run({
    name: provider,
    runner: { describe, it, expect, beforeAll, afterAll },
    sequential: true,
    followLinks: (name) => `${at}/${name}`,
    closeSandbox: (sandbox) => sandbox.close(),
    createSandbox: async ({ initialFiles = {} } = {}) => {
      const sandbox = await createSandbox(optionsOf(provider, folder));
      const made = new SuiteSandbox(await atOnePath(provider, sandbox), sandbox);
      const encoder = new TextEncoder();
      const files = Object.entries(initialFiles);
      await made.uploadFiles(files.map(([path, text]) => [path, encoder.encode(text)]));
      return made;
    },
  });
}

function optionsOf(provider: Provider, rootDir: string): CreateSandboxOptions {
  if (provider === "local") return { provider, rootDir };
  if (provider === "bubblewrap") return { provider, rootDir };
  const [program = "docker", ...programArguments] = (process.env["DEEPAGENT_TEST_DOCKER"] ?? "docker").split(
    " ",
  );
  const image = process.env["DEEPAGENT_TEST_IMAGE"] ?? "debian:bookworm-slim";
  const limits = process.env["DEEPAGENT_TEST_DOCKER_LIMITS"]?.split(" ");
  return { provider, program, programArguments, image, ...(limits === undefined ? {} : { limits }) };
}

/** As a server mounts it: the workspace where commands have it. */
async function atOnePath(provider: Provider, sandbox: SandboxBackend): Promise<Backend> {
  if (provider === "local") return sandbox;
  const tree = new CompositeBackend(new StateBackend(), { [`${MOUNT}/`]: sandbox });
  return resolveBackend(tree, { files: snapshotFiles() });
}
