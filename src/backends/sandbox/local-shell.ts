import { mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { type OptionTable, pickOptions, readOptions } from "../../core/options.ts";
import { realPath } from "../../core/real-path.ts";
import { type BackendFailure, directoryNotFound, notDirectory } from "../errors.ts";
import { FILESYSTEM_OPTIONS, type FilesystemOptions } from "../filesystem/filesystem.ts";
import { validatePath } from "../paths.ts";
import { type EnvironmentOptions, commandEnvironment } from "./environment.ts";
import { SHELL, SHELL_LIMITS, ShellBackend, type ShellLimits } from "./shell-backend.ts";

export interface LocalShellOptions extends FilesystemOptions, EnvironmentOptions, ShellLimits {}

const OPTIONS: OptionTable<LocalShellOptions> = {
  ...FILESYSTEM_OPTIONS,
  ...SHELL_LIMITS,
  env: "a plain object",
  inheritEnv: "true or false",
  secretNames: "a list of non-empty texts",
};

/**
 * A directory, and the shell of this machine in it. **No isolation**: `rootDir` confines the file tools only, and
 * commands reach everything that this user can. Close it when it is no longer needed, which ends processes that
 * commands left behind.
 */
export class LocalShellBackend extends ShellBackend {
  /** As that of `FilesystemBackend`; the first command makes a missing directory too. */
  constructor(given: LocalShellOptions = {}) {
    const options = readOptions("LocalShellBackend", given, OPTIONS);
    const rootDir = realPath(options.rootDir ?? ".");
    const env = commandEnvironment(options);
    super(pickOptions<FilesystemOptions>(options, FILESYSTEM_OPTIONS), {
      ...options,
      name: "local",
      isolation: "none",
      facts: { network: true },
      launch: (command, { cwd, env: added }) => {
        const isVirtual = options.virtualMode === true;
        const directory = workingDirectory(rootDir, cwd ?? (isVirtual ? "/" : rootDir), isVirtual);
        if (typeof directory !== "string") return directory;
        return { file: SHELL, args: ["-c", command], cwd: directory, env: { ...env, ...added } };
      },
    });
  }
}

/** The directory in which a command starts, as a path of this machine. */
function workingDirectory(rootDir: string, cwd: string, isVirtual: boolean): string | BackendFailure {
  const valid = validatePath(cwd, { form: isVirtual ? "virtual" : "real" });
  if (!valid.ok) return { error: valid.error, code: valid.code };
  const directory = isVirtual ? join(rootDir, valid.path) : resolve(rootDir, valid.path);
  try {
    mkdirSync(rootDir, { recursive: true });
    return statSync(directory).isDirectory() ? directory : notDirectory(valid.path);
  } catch {
    return directoryNotFound(valid.path);
  }
}
