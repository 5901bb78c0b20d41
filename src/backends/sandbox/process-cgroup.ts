import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const PREFIX = "deepagent-";
/** Processes of Bubblewrap itself. */
const OVERHEAD = 4;
const REMOVE_ATTEMPTS = 50;
const REMOVE_EVERY_MS = 20;

/**
 * A control group that limits the number of processes. It holds for root, too, which the kernel exempts from the
 * limit of processes for a user, even root without privileges.
 */
export class ProcessCgroup {
  /** A process that writes its number to this file joins the group, with all processes that it starts later. */
  readonly membersFile: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.membersFile = join(folder, "cgroup.procs");
  }

  /** Gives undefined if this process may not make a group. */
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

  /** Removes the group. Call it after its processes were ended; they may take a moment to go. */
  async remove(): Promise<void> {
    for (let attempt = 1; !remove(this.#folder) && attempt < REMOVE_ATTEMPTS; attempt += 1) {
      await delay(REMOVE_EVERY_MS);
    }
  }
}

/**
 * Finds the group in which groups that limit processes can be made. `root` is the root of the file system.
 */
export function cgroupParent(root = "/"): string | undefined {
  const mount = join(root, "sys/fs/cgroup");
  const own = ownCgroups(root);
  const counting = join(mount, "pids");
  const inCounting = own.get("pids");
  // In version 1 each kind of group has its own tree, of which a container may see a part.
  if (inCounting !== undefined) {
    return [join(counting, inCounting), counting].find((folder) => existsSync(join(folder, "cgroup.procs")));
  }
  // In version 2 the parent must hand the limit down, and such a group has no processes itself.
  const folder = resolve(mount, `.${own.get("") ?? "/"}`);
  return [folder, ...(folder === mount ? [] : [dirname(folder)])].find((candidate) => {
    const handedDown = read(join(candidate, "cgroup.subtree_control")).trim().split(" ");
    return handedDown.includes("pids");
  });
}

/** The paths of this process's groups by kind. In version 2 the kind is empty. */
function ownCgroups(root: string): Map<string, string> {
  const lines = read(join(root, "proc/self/cgroup")).split("\n");
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, kinds, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      return kinds === undefined || path === undefined ? [] : kinds.split(",").map((kind) => [kind, path]);
    }),
  );
}

/** Removes the groups of servers that were killed. */
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
