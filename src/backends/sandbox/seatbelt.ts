import { realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { runProgram } from "../../core/child-process.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { validatePath } from "../paths.ts";
import {
  SYSTEM_PATH,
  commandZone,
  readableTops,
  splitWords,
  unattended,
  withRealFolders,
} from "./environment.ts";
import { type BubblewrapOptions, visiblePath } from "./bubblewrap.ts";
import { commandNotes } from "./command-notes.ts";
import { type NoSandbox, PROBE_TIMEOUT_MS, isTimedOut, tooSlow } from "./probe.ts";
import { SHELL, SHELL_DIALECT, ShellBackend } from "./shell-backend.ts";
import { allPlaces, startingPlaces } from "./starting-places.ts";
import folders from "./system-folders.json" with { type: "json" };

/** Folders of `readOnly` are at their own paths. */
export type SeatbeltOptions = Omit<
  BubblewrapOptions,
  "mountPath" | "repository" | "memoryMb" | "maxProcesses" | "scratchMb" | "bwrap"
>;

const PROGRAM = "/usr/bin/sandbox-exec";

/**
 * The rules of macOS's sandbox for commands. They may start programs of the system, read `readable` and change
 * `writable`, both without `hidden`, and the second without `fixed`. Everything else is forbidden, such as the network.
 */
export function seatbeltProfile(
  writable: readonly string[],
  readable: readonly string[],
  hidden: readonly string[] = [],
  fixed: readonly string[] = [],
): string {
  const subpaths = (paths: readonly string[]): string =>
    paths.map((path) => `(subpath ${literal(path)})`).join(" ");
  // Folders that programs of the system need. Homes, mail and keychains are not among them.
  const system = splitWords(folders.macos);
  return [
    "(version 1)",
    "(deny default)",
    "(allow process-exec process-fork)",
    "(allow signal (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/"))',
    `(allow file-read* ${subpaths([...system, ...readable, ...readable.map(realPath), ...writable])})`,
    `(allow file-write* ${subpaths(writable)})`,
    "(deny file-write-setugid)",
    '(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))',
    "(deny network*)",
    ...hidden.map((path) => `(deny file-read* file-write* (subpath ${literal(path)}))`),
    ...fixed.map((path) => `(deny file-write* (regex #"${inAnyCase(path)}"))`),
    // A command that could rename a directory on the way would move the path out of the rule.
    ...[...new Set([...hidden, ...fixed].flatMap((path) => directoriesAbove(path)))].map(
      (path) => `(deny file-write* (literal ${literal(path)}))`,
    ),
  ].join("\n");
}

/**
 * An expression for a path and all below it. The file systems of macOS find a name in any case, and in several forms
 * of Unicode; a character without a simple expression fits everything.
 */
function inAnyCase(path: string): string {
  const pattern = path.replaceAll(/[^]/gu, (sign) => {
    if (/[A-Za-z]/.test(sign)) return `[${sign.toLowerCase()}${sign.toUpperCase()}]`;
    if (sign === ".") return "[.]";
    return /[\d/_-]/.test(sign) ? sign : ".*";
  });
  return `^${pattern}(/.*)?$`;
}

const directoriesAbove = (path: string): string[] =>
  dirname(path) === path ? [] : [dirname(path), ...directoriesAbove(dirname(path))];

const literal = (path: string): string => `"${path.replace(/["\\]/g, "\\$&")}"`;

/**
 * A folder, and a shell without network that may change that folder and read the programs of this machine. macOS only;
 * see `seatbeltProblem`. Commands see the real path of the folder, because macOS cannot show it at another one.
 */
export class SeatbeltBackend extends ShellBackend {
  /** Throws `ConfigurationError` if `rootDir` is not a directory. */
  constructor(options: SeatbeltOptions) {
    const { respectGitignore = false, hidden = [], readOnly = [], maxFileSizeMb = 10 } = options;
    const rootDir = realpathSync.native(resolve(options.rootDir));
    const readable = readOnly.map(({ folder }) => folder);
    const profile = (fixed: readonly string[]): string =>
      seatbeltProfile([rootDir], readable, hidden.map(realPath), fixed);
    const usual = profile([]);
    const { LANG = "en_US.UTF-8" } = process.env;
    const path = visiblePath(`${process.env["PATH"] ?? ""}:${SYSTEM_PATH}`, readOnly);
    const base = { PATH: path, HOME: rootDir, LANG, TERM: "dumb", TZ: commandZone() };
    const env = unattended(base, options.env ?? {}, true);
    const files = { rootDir: options.rootDir, virtualMode: true, respectGitignore, hidden, maxFileSizeMb };
    super(files, {
      ...options,
      name: "seatbelt",
      isolation: "process",
      facts: { shell: SHELL_DIALECT, network: false, ...readableTops(readOnly) },
      launch: (command, call) => {
        const valid = validatePath(call.cwd ?? "/");
        if (!valid.ok) return { error: valid.error, code: valid.code };
        const isGuarded = options.protectsStarters === true && call.approved !== true;
        // Rules hold for paths, so that they protect links and missing places, too.
        const fixed = isGuarded
          ? allPlaces(startingPlaces(rootDir)).flatMap((path) => {
              const target = realPath(path);
              return target !== path && isInside(rootDir, target) ? [path, target] : [path];
            })
          : [];
        const rules = isGuarded ? profile(fixed) : usual;
        const args = seatbeltArguments(rules, withRealFolders(command, readOnly), join(rootDir, valid.path));
        const facts = { command, isGuarded, signs: options.signs === true };
        return {
          file: PROGRAM,
          args,
          cwd: rootDir,
          env: { ...env, ...call.env },
          keepsPrograms: call.keepPrograms === true,
          explain: ({ output }) => commandNotes(output, facts),
        };
      },
    });
  }
}

export function seatbeltArguments(profile: string, command: string, directory: string): string[] {
  const start = 'ulimit -c 0; cd -- "$1" && exec "$2" -c "$3"';
  return ["-p", profile, "/bin/sh", "-c", start, "sh", directory, SHELL, command];
}

/** Why commands cannot be isolated here. Returns undefined after a successful trial. */
export async function seatbeltProblem(
  options: SeatbeltOptions,
  platform: NodeJS.Platform = process.platform,
): Promise<NoSandbox | undefined> {
  if (platform !== "darwin") return { reason: "Seatbelt exists on macOS only." };
  const profile = seatbeltProfile(
    [realpathSync.native(resolve(options.rootDir))],
    (options.readOnly ?? []).map(({ folder }) => folder),
  );
  const args = ["-p", profile, "/bin/sh", "-c", "exit 0"];
  try {
    await runProgram(PROGRAM, args, { timeout: PROBE_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    if (isTimedOut(error)) return tooSlow(PROGRAM, PROBE_TIMEOUT_MS);
    return { reason: "macOS did not start a command in its sandbox (sandbox-exec)." };
  }
}
