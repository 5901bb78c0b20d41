import { existsSync, lstatSync, readlinkSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { isInside, realPath } from "../../core/real-path.ts";
import { SHELL } from "./shell-executor.ts";
import { systemCallFilter } from "./system-call-filter.ts";

/** A folder of this machine at a path inside the sandbox. */
export interface SandboxMount {
  folder: string;
  at: string;
}

/** What a command in the sandbox sees and may use. */
export interface SandboxShape {
  /** The one place that commands may change. */
  writable: SandboxMount;
  readOnly: readonly SandboxMount[];
  /** Paths of this machine that are empty wherever they would be seen. */
  hidden: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Bytes of memory of one process. */
  memory: number;
  /** Processes and threads at one time. The kernel holds those of root to no such limit: see `ProcessCgroup`. */
  processes: number;
  /** Bytes that fit into `/tmp`, and into `/dev/shm`. */
  scratch: number;
  /** Whether this Bubblewrap limits scratch space and forbids nested user namespaces (0.8 and later). */
  hasSizeLimits: boolean;
}

/** Folders of programs and libraries; some systems have them as links into `/usr`. */
const SYSTEM_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];

/** What programs need of `/etc`. The rest stays outside: it names users, hosts and secrets. */
const SYSTEM_FILES = [
  "alternatives",
  "ca-certificates",
  "fonts",
  "group",
  "java-11-openjdk",
  "java-17-openjdk",
  "java-21-openjdk",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "magic",
  "mime.types",
  "nsswitch.conf",
  "passwd",
  "perl",
  "protocols",
  "python3",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
].map((name) => `/etc/${name}`);

/** Files in which the kernel tells about this machine and its users' keys. Containers do not see them either. */
const MACHINE_FACTS = [
  "acpi",
  "asound",
  "interrupts",
  "kcore",
  "key-users",
  "keys",
  "latency_stats",
  "sched_debug",
  "scsi",
  "timer_list",
].map((name) => `/proc/${name}`);

/** Who a server that runs as root is in the sandbox: programs expect more of root than it can do there. */
const PLAIN_USER = "1000";

/** Address space reserved is not memory used: several runtimes reserve far more than they touch. */
const ADDRESS_SPACE_FACTOR = 16;
const KIB = 1024;

const ISOLATION =
  "--unshare-all --unshare-user --die-with-parent --new-session --cap-drop ALL --hostname sandbox --clearenv".split(
    " ",
  );

/** Sets the limits, goes to the directory, and becomes the command. */
const START = [
  "ulimit -c 0",
  'ulimit -d "$1"',
  'ulimit -v "$2"',
  '{ ulimit -u "$3" || ulimit -p "$3"; } 2>/dev/null',
  'cd -- "$4" || exit 1',
  'exec "$5" -c "$6"',
].join("\n");

/** How `bwrap` is started. */
export interface BubblewrapCall {
  args: string[];
  /** Its input on the descriptors 3 and 4. */
  inputs: Uint8Array[];
}

/**
 * One command in a file system of its own in which only the programs of this machine and the given folders
 * exist, with no network, no capabilities, a filter of system calls, no processes but its own, and an end
 * together with its parent. The command line tells nothing of this machine, because commands can read it.
 */
export function bubblewrapCall(shape: SandboxShape, command: string, cwd: string): BubblewrapCall {
  const { memory, processes } = shape;
  const filter = systemCallFilter();
  const settings = [...sandboxArguments(shape), ...(filter === undefined ? [] : ["--seccomp", "4"])];
  const limits = [kibibytes(memory), kibibytes(memory * ADDRESS_SPACE_FACTOR), String(processes)];
  return {
    args: ["--args", "3", "--", "/bin/sh", "-c", START, "sh", ...limits, cwd, SHELL, command],
    inputs: [
      Buffer.from(settings.map((text) => `${text}\0`).join("")),
      ...(filter === undefined ? [] : [filter]),
    ],
  };
}

function sandboxArguments(shape: SandboxShape): string[] {
  const { writable, readOnly, env } = shape;
  return [
    ISOLATION,
    shape.hasSizeLimits ? ["--disable-userns"] : [],
    process.getuid?.() === 0 ? ["--uid", PLAIN_USER, "--gid", PLAIN_USER] : [],
    SYSTEM_FOLDERS.flatMap((path) => systemFolder(path)),
    SYSTEM_FILES.flatMap((path) => ["--ro-bind-try", path, path]),
    ["--proc", "/proc", "--dev", "/dev"],
    MACHINE_FACTS.flatMap((path) => cover(path, path)),
    scratch("/tmp", shape),
    scratch("/dev/shm", shape),
    readOnly.flatMap(({ folder, at }) => ["--ro-bind-try", folder, at]),
    ["--bind", writable.folder, writable.at],
    masks(shape),
    // For a server that runs as root the files of the kernel's settings would be its own, and writable.
    ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"],
    Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    ["--chdir", "/"],
  ].flat();
}

/**
 * Covers what is hidden below any mount. The directories on the way become mounts of their own where commands
 * may write, because a mount cannot be renamed: otherwise what is covered could be moved from under its cover.
 */
function masks({ writable, readOnly, hidden }: SandboxShape): string[] {
  const places = hidden.map((path) => realPath(path));
  const system = SYSTEM_FOLDERS.map((path) => ({ folder: path, at: path }));
  return [...system, ...readOnly, writable].flatMap((mount) => {
    const folder = realPath(mount.folder);
    const inside = places.filter((path) => path !== folder && isInside(folder, path));
    const onTheWay =
      mount === writable ? new Set(inside.flatMap((path) => directoriesBetween(folder, path))) : [];
    const at = (path: string): string => join(mount.at, relative(folder, path));
    return [
      ...[...onTheWay].flatMap((path) => ["--bind-try", path, at(path)]),
      ...inside.flatMap((path) => cover(path, at(path))),
    ];
  });
}

/** Outermost first. */
function directoriesBetween(folder: string, path: string): string[] {
  const above = dirname(path);
  return above === folder ? [] : [...directoriesBetween(folder, above), above];
}

function cover(path: string, at: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isDirectory() ? ["--tmpfs", at, "--remount-ro", at] : ["--ro-bind", "/dev/null", at];
}

const kibibytes = (bytes: number): string => String(Math.floor(bytes / KIB));

function systemFolder(path: string): string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink()
    ? ["--symlink", readlinkSync(path), path]
    : ["--ro-bind", path, path];
}

const scratch = (path: string, { hasSizeLimits, scratch }: SandboxShape): string[] => [
  ...(hasSizeLimits ? ["--size", String(scratch)] : []),
  "--tmpfs",
  path,
];

/** Folders in which programs of the sandbox are found: those of `path` that it can see. */
export function visiblePath(path: string, readOnly: readonly SandboxMount[]): string {
  const seen = [...SYSTEM_FOLDERS, ...readOnly.filter(({ folder, at }) => folder === at).map(({ at }) => at)];
  const isSeen = (entry: string): boolean =>
    seen.some((folder) => entry === folder || entry.startsWith(`${folder}/`));
  return [...new Set(path.split(":").filter((entry) => isSeen(entry)))].join(":");
}
