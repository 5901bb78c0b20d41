import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const PREFIX = "deepagent-";
/** Bubblewrap itself, on its way to the command and beside it. */
const OVERHEAD = 4;
const REMOVE_ATTEMPTS = 50;
const REMOVE_EVERY_MS = 20;

/**
 * A control group that counts processes. The kernel's limit for processes of a user does not hold for root,
 * also not for root without any privilege; this one holds for everybody.
 */
export class ProcessCgroup {
  /** Who writes its process number here belongs to the group, with all it starts from then on. */
  readonly membersFile: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.membersFile = join(folder, "cgroup.procs");
  }

  /** Undefined where this process may not make one. */
  static make(maxProcesses: number, parent = cgroupParent()): ProcessCgroup | undefined {
    if (parent === undefined) return undefined;
    removeAbandoned(parent);
    const folder = join(parent, `${PREFIX}${process.pid}-${randomBytes(4).toString("hex")}`);
    try {
      mkdirSync(folder);
      writeFileSync(join(folder, "pids.max"), String(maxProcesses + OVERHEAD));
      return new ProcessCgroup(folder);
    } catch {
      remove(folder);
      return undefined;
    }
  }

  /** To be called when its processes were ended; they may take a moment to go. */
  async remove(): Promise<void> {
    for (let attempt = 1; !remove(this.#folder) && attempt < REMOVE_ATTEMPTS; attempt += 1) {
      await delay(REMOVE_EVERY_MS);
    }
  }
}

/**
 * The group in which groups that count processes can be made; undefined when there is none. `root` is the
 * root of the file system.
 */
export function cgroupParent(root = "/"): string | undefined {
  const mount = join(root, "sys/fs/cgroup");
  const own = ownCgroups(root);
  const counting = join(mount, "pids");
  const inCounting = own.get("pids");
  // Version 1: each kind of group has a tree of its own. A container may see only its part of it.
  if (inCounting !== undefined) {
    return [join(counting, inCounting), counting].find((folder) => existsSync(join(folder, "cgroup.procs")));
  }
  // Version 2: only a group that hands the counting down has members that count, and it has no processes.
  const folder = resolve(mount, `.${own.get("") ?? "/"}`);
  return [folder, ...(folder === mount ? [] : [dirname(folder)])].find((candidate) => {
    const handedDown = read(join(candidate, "cgroup.subtree_control")).trim().split(" ");
    return handedDown.includes("pids");
  });
}

/** The paths of this process's groups by their kind; that of version 2 has none. */
function ownCgroups(root: string): Map<string, string> {
  const lines = read(join(root, "proc/self/cgroup")).split("\n");
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, kinds, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      return kinds === undefined || path === undefined ? [] : kinds.split(",").map((kind) => [kind, path]);
    }),
  );
}

/** Of servers that were killed. */
function removeAbandoned(parent: string): void {
  for (const name of list(parent)) {
    const pid = name.startsWith(PREFIX) ? /^(\d+)-/.exec(name.slice(PREFIX.length))?.[1] : undefined;
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) remove(join(parent, name));
  }
}

function remove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
