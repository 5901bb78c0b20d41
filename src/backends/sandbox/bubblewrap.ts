import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { runProgram } from "../../core/child-process.ts";
import { errorMessage } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import { isInside, realPath } from "../../core/real-path.ts";
import { linkStatsAt, statsAt } from "../../core/stats.ts";
import { fill, oneLine } from "../../core/text.ts";
import { type BackendFailure, errors } from "../errors.ts";
import type { FilesystemOptions } from "../filesystem/filesystem.ts";
import { addPrefix, validatePath, withoutSlash } from "../paths.ts";
import {
  LOCAL_PROGRAMS,
  SYSTEM_FOLDERS,
  SYSTEM_PATH,
  type SandboxMount,
  commandZone,
  programPath,
  readableTops,
  splitWords,
  unattended,
} from "./environment.ts";
import { gitView } from "./git-view.ts";
import { type NoSandbox, PROBE_TIMEOUT_MS, isMissing, isTimedOut, tooSlow } from "./probe.ts";
import { commandNotes } from "./command-notes.ts";
import { MemoryWatch } from "./memory-watch.ts";
import { CommandCgroup, systemCallFilter } from "./process-limits.ts";
import { ProcessRunner } from "./process-runner.ts";
import { type NamespaceEntry, RunNamespace } from "./run-namespace.ts";
import { programFolders } from "./program-folders.ts";
import type { Launch, LaunchOptions, ShellLimits } from "./shell-backend.ts";
import { SHELL, SHELL_DIALECT, ShellBackend } from "./shell-backend.ts";
import { StarterGuards } from "./starter-guard.ts";
import texts from "../texts.json" with { type: "json" };
import folders from "./system-folders.json" with { type: "json" };

/** The view and the limits of a command in the sandbox. */
interface SandboxShape {
  /** The folder of the files, which commands may change. */
  writable: SandboxMount;
  /** The path at which commands see that folder; a link if that is not the mount itself. */
  shownAt: string;
  /** Folders of Git outside it, which commands may change. */
  repositories: readonly SandboxMount[];
  readOnly: readonly SandboxMount[];
  /** Paths of this machine that are empty in every mount. */
  hidden: readonly string[];
  /** Paths of this machine that cannot be changed in any mount. */
  fixed: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Processes and threads at one time. The kernel exempts root from this limit: see `ProcessCgroup`. */
  processes: number;
  /** Bytes of `/tmp`, and of `/dev/shm`. */
  scratch: number;
  /** True if this Bubblewrap limits scratch space and forbids nested user namespaces (0.8 and later). */
  hasSizeLimits: boolean;
}

/** The result of a trial besides the version. */
interface FoundSandbox extends Pick<SandboxShape, "hasSizeLimits"> {
  /** True if commands can share the namespaces of their run. */
  isShared: boolean;
}

/** The files of `/etc` that programs need. The others are left out because they name users, hosts and secrets. */
const SYSTEM_FILES = splitWords(folders.etc).map((name) => `/etc/${name}`);

/** Files of the kernel about this machine and the keys of its users. Containers do not see them either. */
const MACHINE_FACTS = splitWords(folders.machineFacts).map((name) => `/proc/${name}`);

/**
 * Makes the call for a command in its own file system, with only the programs of this machine and the folders of
 * `shape`. The command has no network and no capabilities, its system calls are filtered, and it sees only its own
 * processes. The command line reveals nothing about this machine, because commands can read it. `inputs` are on the
 * descriptors 3 and 4. `entry`: it shares the namespaces of its run; with `keepsPrograms`, an input shows if a process of the
 * sandbox lives. Otherwise its processes end with it.
 */
function bubblewrapCall(
  shape: SandboxShape,
  command: string,
  cwd: string,
  { entry, keepsPrograms = false }: { entry?: NamespaceEntry | undefined; keepsPrograms?: boolean } = {},
) {
  const { processes, writable, shownAt, repositories, readOnly, env } = shape;
  const own = entry === undefined ? "--unshare-all --hostname sandbox" : "--unshare-pid --unshare-cgroup-try";
  const local = linkStatsAt(LOCAL_PROGRAMS)?.isDirectory() === true ? [LOCAL_PROGRAMS] : [];
  const filter = systemCallFilter();
  const inside = [String(processes), cwd, SHELL, "-c", command];
  const settings = [
    splitWords(`--unshare-user ${own} --new-session --cap-drop ALL --clearenv`),
    keepsPrograms ? ["--sync-fd", filter === undefined ? "4" : "5"] : ["--die-with-parent"],
    shape.hasSizeLimits ? ["--disable-userns"] : [],
    // Not as root: programs expect more of root than it can do there.
    ["--uid", String(process.getuid?.() || 1000), "--gid", String(process.getgid?.() || 1000)],
    SYSTEM_FOLDERS.filter((path) => existsSync(path)).flatMap((path) =>
      lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path],
    ),
    local.flatMap((path) => ["--tmpfs", path]),
    SYSTEM_FILES.flatMap((path) => ["--ro-bind-try", path, path]),
    ["--proc", "/proc", "--dev", "/dev"],
    MACHINE_FACTS.flatMap((path) => cover(path, path)),
    ["/tmp", "/dev/shm"].flatMap((path) =>
      entry === undefined ? scratch(path, shape) : ["--bind", join(entry.folder, basename(path)), path],
    ),
    readOnly.flatMap(({ folder, at }) => ["--ro-bind-try", folder, at]),
    [writable, ...repositories].flatMap(({ folder, at }) => ["--bind", folder, at]),
    shownAt === writable.at ? [] : ["--symlink", writable.at, shownAt],
    masks(shape),
    // If the server runs as root, the settings of the kernel would be writable.
    ["/proc", "/dev", ...local, "/"].flatMap((path) => ["--remount-ro", path]),
    Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    ["--chdir", "/"],
    filter === undefined ? [] : ["--seccomp", "4"],
  ].flat();
  return {
    args: [...splitWords("--args 3 -- /bin/sh -c"), texts.startCommand, "sh", ...inside],
    inputs: [
      Buffer.from(settings.map((text) => `${text}\0`).join("")),
      ...(filter === undefined ? [] : [filter]),
      ...(keepsPrograms ? [new Uint8Array()] : []),
    ],
  };
}

/**
 * Covers hidden and fixed paths below any mount. Where commands may write, the directories on the way become mounts,
 * too: a mount cannot be renamed, so commands cannot move such a path away from its cover.
 */
function masks({ writable, repositories, readOnly, hidden, fixed }: SandboxShape): string[] {
  // A hidden path may lie in a fixed one, whose mount would show it again.
  const covers = [
    ...fixed.map((path) => ({ path, mount: (from: string, at: string) => ["--ro-bind-try", from, at] })),
    ...hidden.map((path) => ({ path, mount: cover })),
  ];
  const places = covers.map(({ path, mount }) => ({ path: realPath(path), mount }));
  const system = SYSTEM_FOLDERS.map((path) => ({ folder: path, at: path }));
  const changeable = [writable, ...repositories];
  return [...system, ...readOnly, ...changeable].flatMap((mounted) => {
    const folder = realPath(mounted.folder);
    const inside = places.filter(({ path }) => path !== folder && isInside(folder, path));
    const onTheWay = changeable.includes(mounted)
      ? new Set(inside.flatMap(({ path }) => directoriesBetween(folder, path)))
      : [];
    const at = (path: string): string => join(mounted.at, relative(folder, path));
    return [
      ...[...onTheWay].flatMap((path) => ["--bind-try", path, at(path)]),
      ...inside.flatMap(({ path, mount }) => mount(path, at(path))),
    ];
  });
}

function directoriesBetween(folder: string, path: string): string[] {
  const above = dirname(path);
  return above === folder ? [] : [...directoriesBetween(folder, above), above];
}

function cover(path: string, at: string): string[] {
  // Fails if the entry cannot be seen, because a hidden one would stay open.
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isDirectory() ? ["--tmpfs", at, "--remount-ro", at] : ["--ro-bind", "/dev/null", at];
}

const scratch = (
  path: string,
  { hasSizeLimits, scratch }: Pick<SandboxShape, "hasSizeLimits" | "scratch">,
) => [...(hasSizeLimits ? ["--size", String(scratch)] : []), "--tmpfs", path];

/** The folders of a search path that the sandbox can see. */
export function visiblePath(path: string, readOnly: readonly SandboxMount[]): string {
  const seen = [...SYSTEM_FOLDERS, ...readOnly.filter(({ folder, at }) => folder === at).map(({ at }) => at)];
  const isSeen = (entry: string): boolean =>
    seen.some((folder) => entry === folder || entry.startsWith(`${folder}/`));
  return [...new Set(path.split(":").filter((entry) => isSeen(entry)))].join(":");
}

export interface BubblewrapOptions
  extends ShellLimits, Pick<FilesystemOptions, "respectGitignore" | "maxFileSizeMb"> {
  /** The folder that commands may change. It must exist. */
  rootDir: string;
  /** Same as in `FilesystemBackend`. Commands find an empty folder or an unreadable file instead. */
  hidden?: readonly string[];
  /** The path at which commands see that folder, the same as in the agent's tree. Default `/workspace`. */
  mountPath?: string;
  /** More folders that commands may read. Missing folders are ignored. */
  readOnly?: readonly SandboxMount[];
  /**
   * Protects files that start programs outside the sandbox from commands that nobody approved: hooks and settings of
   * Git, and settings of editors and agents. Default false.
   */
  protectsStarters?: boolean;
  /**
   * Git works in a worktree and in a folder inside a repository, because commands also see the folder of Git, where
   * they cannot change hooks and settings. Default false.
   */
  repository?: boolean;
  /** Environment of commands besides search path, home, language and terminal. */
  env?: Readonly<Record<string, string>>;
  /** True if the person's Git signs commits. Commands cannot, which a note below their output explains. Default false. */
  signs?: boolean;
  /** MiB of memory that all commands together really use. Default 4096. */
  memoryMb?: number;
  /**
   * Processes and threads of one command. For a server that runs as root, of all commands together, because a control
   * group has to count them. Default 512.
   */
  maxProcesses?: number;
  /** MiB that fit into `/tmp`, which all commands share, as they share their home and network. Default 512. */
  scratchMb?: number;
  /** Name or path of the program. Default `bwrap`. */
  bwrap?: string;
}

const MIB = 1024 * 1024;

/**
 * A folder, and a shell that sees only that folder and the programs of this machine: no network, and no other files,
 * processes or environment. Linux only.
 *
 * Virtual paths start at the folder; commands see it at `mountPath`. Made by `openBubblewrap`, which first finds out
 * whether this machine can do that.
 */
export class BubblewrapBackend extends ShellBackend {
  readonly #launcher: CommandLauncher;

  /** `found`: the result of a trial. */
  constructor(options: BubblewrapOptions, found: FoundSandbox) {
    const { rootDir, maxFileSizeMb, respectGitignore = false, hidden = [] } = options;
    const launcher = new CommandLauncher(options, found);
    const { guards } = launcher;
    super(
      { rootDir, virtualMode: true, respectGitignore, hidden, maxFileSizeMb },
      {
        ...options,
        name: "bubblewrap",
        isolation: "process",
        facts: {
          directory: options.mountPath ?? "/workspace",
          shell: SHELL_DIALECT,
          network: false,
          endsLeftovers: !found.isShared,
          ...readableTops(options.readOnly ?? []),
        },
        // Bubblewrap ends at once when asked, and kills the command, so patience would be useless.
        patience: 0,
        launch: (...call) => launcher.launch(...call),
        ...(guards === undefined ? {} : { approvalReason: () => guards.problem() }),
      },
    );
    this.#launcher = launcher;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#launcher.close();
  }
}

/** Describes the process of each command, and holds the shared parts of a run. */
class CommandLauncher {
  readonly guards: StarterGuards | undefined;
  readonly #options: BubblewrapOptions;
  readonly #shape: SandboxShape;
  readonly #namespace: RunNamespace | undefined;
  /** Made with the first command; `null` if there can be none. */
  #cgroup: CommandCgroup | null | undefined;
  #watch: MemoryWatch | undefined;

  constructor(options: BubblewrapOptions, found: FoundSandbox) {
    this.#options = options;
    const shape = sandboxShape(options, found.hasSizeLimits);
    this.#shape = shape;
    const repositories = shape.repositories.map((mount) => mount.folder);
    const isGuarded = options.protectsStarters === true || repositories.length > 0;
    this.guards = isGuarded ? new StarterGuards(shape.writable.folder, repositories) : undefined;
    if (found.isShared)
      this.#namespace = new RunNamespace(options.bwrap ?? "bwrap", (path) => scratch(path, shape));
  }

  async launch(
    command: string,
    call: LaunchOptions,
    runner: ProcessRunner,
  ): Promise<Launch | BackendFailure> {
    const shape = this.#shape;
    const valid = validatePath(call.cwd ?? "/");
    if (!valid.ok) return { error: valid.error, code: valid.code };
    if (statsAt(shape.writable.folder) === undefined) return errors.directoryNotFound("/");
    const env = { ...shape.env, ...call.env };
    // Arguments are separated by NUL, so the text after one would be an argument of Bubblewrap.
    if (Object.entries(env).some((pair) => pair.join("").includes("\0")))
      return { code: "unsupported", error: "An environment variable contains a NUL character." };
    const entry = await this.#namespace?.enter(runner);
    const guard = this.guards?.begin(call.approved === true);
    if (guard !== undefined && "error" in guard) return guard;
    const { fixed = [], empty = [], release } = guard ?? {};
    const covered = { fixed: [...shape.fixed, ...fixed], hidden: [...shape.hidden, ...empty] };
    const keepsPrograms = entry !== undefined && call.keepPrograms === true;
    const memory = this.#limitMemory(runner);
    const inside = { entry, keepsPrograms };
    const { args, inputs } = bubblewrapCall(
      { ...shape, env, ...covered },
      command,
      addPrefix(shape.shownAt, valid.path),
      inside,
    );
    const program = programPath(this.#options.bwrap ?? "bwrap");
    const joining = this.#cgroup?.membersFiles ?? [];
    // Joins the groups that the first arguments name, and starts the program after `--`.
    const join = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"';
    const first = ["/bin/sh", "-c", join, "sh", ...joining, "--"];
    const words = [...(joining.length === 0 ? [] : first), ...(entry?.launcher ?? []), program, ...args];
    const [file = program, ...further] = words;
    const before = memory.kills();
    const facts = { command, isGuarded: guard !== undefined, signs: this.#options.signs === true };
    return {
      file,
      args: further,
      inputs,
      keepsPrograms,
      showsLife: keepsPrograms,
      // Commands can read the environment of Bubblewrap, so it is empty.
      env: {},
      cwd: "/",
      ...(release === undefined ? {} : { onGone: release }),
      explain: ({ output }) =>
        commandNotes(output, {
          ...facts,
          isNew: entry?.isReplacement === true,
          memoryMb: memory.kills() > before ? memory.megabytes : undefined,
          scratchMb: shape.scratch / MIB,
        }),
    };
  }

  /** Limits the memory of all commands together, by the kernel or by looking at their processes. */
  #limitMemory(runner: ProcessRunner) {
    const megabytes = this.#options.memoryMb ?? 4096;
    // The kernel counts the processes of other users than root. Bubblewrap itself has four.
    const pids = process.getuid?.() === 0 ? { pids: this.#shape.processes + 4 } : {};
    this.#cgroup ??= CommandCgroup.make({ ...pids, memory: megabytes * MIB }) ?? null;
    if (this.#cgroup?.limits.has("memory") !== true) {
      this.#watch ??= new MemoryWatch(megabytes * MIB, () => runner.leaders);
      this.#watch.start();
    }
    const kills = (): number => this.#watch?.kills ?? this.#cgroup?.memoryKills ?? 0;
    return { megabytes, kills };
  }

  /** Call it when all commands have ended. */
  async close(): Promise<void> {
    this.guards?.close();
    await this.#cgroup?.remove();
    this.#cgroup = undefined;
  }
}

export type OpenedBubblewrap = { ok: true; backend: BubblewrapBackend } | ({ ok: false } & NoSandbox);

/** Opens the sandbox after a trial, because containers and kernels often forbid an installed Bubblewrap to work. */
export async function openBubblewrap(given: BubblewrapOptions): Promise<OpenedBubblewrap> {
  const { readOnly = [], ...rest } = readOptions("Bubblewrap", given, tables.bubblewrap);
  const { mounts } = programFolders(process.env, rest.rootDir);
  const system = mounts.filter(({ at }) => ["/opt", LOCAL_PROGRAMS].some((folder) => isInside(folder, at)));
  const options = { ...rest, readOnly: [...system, ...readOnly] };
  const found = await probeBubblewrap(options);
  return found.ok ? { ok: true, backend: new BubblewrapBackend(options, found) } : found;
}

/**
 * Runs one command that does nothing, in the same sandbox as all others.
 *
 * @param trial.timeoutMs for each of the two programs that are started. Default 10,000.
 */
export async function probeBubblewrap(
  options: BubblewrapOptions,
  trial: { timeoutMs?: number; platform?: NodeJS.Platform } = {},
): Promise<({ ok: true; version: string } & FoundSandbox) | ({ ok: false } & NoSandbox)> {
  const { timeoutMs = PROBE_TIMEOUT_MS, platform = process.platform } = trial;
  const program = options.bwrap ?? "bwrap";
  if (platform !== "linux") return { ok: false, reason: "Bubblewrap exists for Linux only." };
  const run = (args: readonly string[], inputs: readonly Uint8Array[] = []) =>
    runProgram(program, args, { timeout: timeoutMs, cwd: "/", inputs });
  let version: string;
  try {
    version = (await run(["--version"])).trim().replace(/^bubblewrap /, "");
  } catch (error) {
    if (isTimedOut(error)) return { ok: false, ...tooSlow(program, timeoutMs) };
    if (isMissing(error)) return { ok: false, reason: fill(texts.noBubblewrap, program) };
    return { ok: false, reason: fill(texts.noVersion, program, oneLine(errorMessage(error), 200)) };
  }
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const hasSizeLimits = major > 0 || minor >= 8;
  try {
    const shape = sandboxShape(options, hasSizeLimits);
    const { args, inputs } = bubblewrapCall(shape, "exit 0", shape.writable.at);
    await run(args, inputs);
    return { ok: true, version, hasSizeLimits, isShared: await canShare(shape, program, timeoutMs) };
  } catch (error) {
    if (isTimedOut(error)) return { ok: false, ...tooSlow(program, timeoutMs) };
    const said = /bwrap: .*/.exec(errorMessage(error))?.[0] ?? "it ended with an error";
    return { ok: false, reason: fill(texts.bubblewrapFails, version, said) };
  }
}

/** True if commands can share the namespaces of their run. Otherwise each has its own. */
async function canShare(shape: SandboxShape, bwrap: string, timeout: number): Promise<boolean> {
  const runner = new ProcessRunner({ guarded: false, patience: 0 });
  try {
    const entry = await new RunNamespace(bwrap, (path) => scratch(path, shape)).enter(runner);
    if (entry === undefined) return false;
    const { args, inputs } = bubblewrapCall(shape, "exit 0", shape.writable.at, { entry });
    const [file = "", ...words] = [...entry.launcher, programPath(bwrap), ...args];
    await runProgram(file, words, { timeout, cwd: "/", inputs });
    return true;
  } catch {
    return false;
  } finally {
    await runner.close();
  }
}

function sandboxShape(options: BubblewrapOptions, hasSizeLimits: boolean): SandboxShape {
  const { readOnly = [], hidden = [], maxProcesses = 512, scratchMb = 512 } = options;
  const { LANG = "C.UTF-8" } = process.env;
  const folder = realpathSync.native(resolve(options.rootDir));
  const shownAt = withoutSlash(options.mountPath ?? "/workspace");
  const view = options.repository === true ? gitView(folder, shownAt) : undefined;
  return {
    writable: { folder, at: view?.at ?? shownAt },
    shownAt,
    repositories: view?.writable ?? [],
    readOnly: [...readOnly, ...(view?.readOnly ?? [])],
    hidden,
    fixed: [],
    env: unattended(
      {
        PATH: visiblePath(`${process.env["PATH"] ?? ""}:${SYSTEM_PATH}`, readOnly),
        HOME: "/tmp",
        TMPDIR: "/tmp",
        LANG,
        TERM: "dumb",
        TZ: commandZone(),
        // The stand-in for the repository lies in another file system than the folder.
        ...(view?.at === undefined ? {} : { GIT_DISCOVERY_ACROSS_FILESYSTEM: "true" }),
      },
      options.env ?? {},
      true,
    ),
    processes: maxProcesses,
    scratch: scratchMb * MIB,
    hasSizeLimits,
  };
}
