/** Limits of a command in the sandbox: memory and processes by a cgroup, and its system calls by a filter. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { orElse } from "../../core/errors.ts";
import calls from "./system-calls.json" with { type: "json" };

const PREFIX = "deepagent-";

type Controller = "pids" | "memory";

/**
 * A control group that limits the processes and the memory of all commands of a run together. The limit of processes
 * holds for root, too, which the kernel exempts from the limit for a user, even root without privileges.
 */
export class CommandCgroup {
  /** A process that writes its number to these files joins the group, with all processes that it starts later. */
  readonly membersFiles: readonly string[];
  readonly limits: ReadonlySet<Controller>;
  readonly #folders: readonly string[];

  private constructor(folders: ReadonlyMap<Controller, string>) {
    this.#folders = [...new Set(folders.values())];
    this.membersFiles = this.#folders.map((folder) => join(folder, "cgroup.procs"));
    this.limits = new Set(folders.keys());
  }

  /** Makes a group with as many of the limits as this process may set. Returns undefined if it may set none. */
  static make(
    limits: Partial<Record<Controller, number>>,
    parentFor: (controller: Controller) => string | undefined = (controller) => cgroupParent(controller),
  ): CommandCgroup | undefined {
    const name = `${PREFIX}${process.pid}-${randomBytes(4).toString("hex")}`;
    const folders = new Map<Controller, string>();
    for (const controller of ["pids", "memory"] as const) {
      const parent = parentFor(controller);
      const limit = limits[controller];
      if (parent === undefined || limit === undefined) continue;
      // The groups of servers that were killed.
      for (const other of orElse(() => fs.readdirSync(parent), [])) {
        const pid = other.startsWith(PREFIX) ? /^(\d+)-/.exec(other.slice(PREFIX.length))?.[1] : undefined;
        if (pid !== undefined && !fs.existsSync(`/proc/${pid}`)) removeGroup(join(parent, other));
      }
      const folder = join(parent, name);
      try {
        // Version 2 has one group for both. Node 20 never ends when it makes folders in /proc with those above them.
        if (!fs.existsSync(folder)) fs.mkdirSync(folder);
        // Version 1 has another name for the limit of memory.
        const names = [`${controller}.max`, "memory.limit_in_bytes"].map((each) => join(folder, each));
        const file = names.find((path) => fs.existsSync(path));
        if (file === undefined) throw new Error("no such limit");
        fs.accessSync(join(folder, "cgroup.procs"), fs.constants.W_OK);
        fs.writeFileSync(file, String(limit));
        folders.set(controller, folder);
      } catch {
        if (![...folders.values()].includes(folder)) removeGroup(folder);
      }
    }
    return folders.size === 0 ? undefined : new CommandCgroup(folders);
  }

  /** Number of programs that the kernel has ended because the group used too much memory. */
  get memoryKills(): number {
    const counts = this.#folders.flatMap((folder) =>
      ["memory.events", "memory.oom_control"].map((name) => readOrEmpty(join(folder, name))),
    );
    return counts.reduce((sum, text) => sum + Number(/^oom_kill (\d+)/m.exec(text)?.[1] ?? 0), 0);
  }

  /** Removes the group. Call it after its processes were ended; they may take a moment to go. */
  async remove(): Promise<void> {
    for (let attempt = 1; attempt < 50; attempt += 1) {
      if (this.#folders.filter((folder) => !removeGroup(folder)).length === 0) return;
      await delay(20);
    }
  }
}

/** Finds the group in which groups with a limit can be made. `root` is the root of the file system. */
export function cgroupParent(controller: Controller, root = "/"): string | undefined {
  const mount = join(root, "sys/fs/cgroup");
  // The paths of this process's groups by kind. In version 2 the kind is empty.
  const own = new Map(
    readOrEmpty(join(root, "proc/self/cgroup"))
      .split("\n")
      .flatMap((line): [string, string][] => {
        const [, kinds, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
        return kinds === undefined || path === undefined ? [] : kinds.split(",").map((kind) => [kind, path]);
      }),
  );
  const tree = join(mount, controller);
  const inTree = own.get(controller);
  // In version 1 each kind of group has its own tree, of which a container may see a part.
  if (inTree !== undefined)
    return [join(tree, inTree), tree].find((folder) => fs.existsSync(join(folder, "cgroup.procs")));
  // In version 2 the parent must hand the limit down, and such a group has no processes itself.
  const folder = resolve(mount, `.${own.get("") ?? "/"}`);
  return [folder, ...(folder === mount ? [] : [dirname(folder)])].find((candidate) => {
    const handedDown = readOrEmpty(join(candidate, "cgroup.subtree_control")).trim().split(" ");
    return handedDown.includes(controller);
  });
}

function removeGroup(folder: string): boolean {
  orElse(() => fs.rmdirSync(folder), undefined);
  return !fs.existsSync(folder);
}

const readOrEmpty = (file: string): string => orElse(() => fs.readFileSync(file, "utf8"), "");

/**
 * The numbers of system calls that are `refused` to commands in the sandbox, or `special`, by name on a processor. The
 * table has those of x64 and arm64; numbers from 424 on are the same everywhere. The default profiles of container
 * engines refuse the same calls to a process without capabilities.
 */
export function callNumbers(kind: keyof typeof calls, processor: "x64" | "arm64"): Map<string, number> {
  const rows = Object.values(calls[kind]).flatMap((group) =>
    Object.entries<readonly (number | null)[]>(group),
  );
  const column = processor === "x64" ? 0 : 1;
  return new Map(
    rows.flatMap(([name, numbers]) => (numbers[column] == null ? [] : [[name, numbers[column]]])),
  );
}

const OPCODES = { load: 0x20, ifEqual: 0x15, ifGreater: 0x25, ifAnyBit: 0x45, return: 0x06 } as const;

/** The results of the filter for a call. The last two refuse it with this error. */
const VERDICTS = {
  allow: 0x7fff0000,
  kill: 0x80000000,
  eperm: 0x00050000 + 1,
  enosys: 0x00050000 + 38,
} as const;

/**
 * A step of the kernel's classic packet filter: `struct sock_filter`. `jt` and `jf`: steps to skip if a comparison
 * holds, and if it does not.
 */
const step = (code: number, k: number, jt = 0, jf = 0) => ({ code, jt, jf, k });
/** `at`: an offset in `struct seccomp_data`. */
const load = (at: number) => step(OPCODES.load, at);
/** Only the lower half of an argument, which is all that the kernel uses here. */
const loadArgument = (index: number) => load(16 + 8 * index);
const finish = (verdict: keyof typeof VERDICTS) => step(OPCODES.return, VERDICTS[verdict]);
const refuseIf = (comparison: number, value: number) => [step(comparison, value, 0, 1), finish("eperm")];

/** Refuses an argument that has one of these bits. By default, a mode with the set-user-ID or set-group-ID bit. */
const refuseBits = (index: number, bits = 0o6000) => [
  loadArgument(index),
  ...refuseIf(OPCODES.ifAnyBit, bits),
  finish("allow"),
];

const openWith = (flags: number, mode: number) => [
  loadArgument(flags),
  // O_CREAT, and the bit of O_TMPFILE. Without them there is no mode.
  step(OPCODES.ifAnyBit, 0o100 | 0o20000000, 1, 0),
  finish("allow"),
  ...refuseBits(mode),
];

/** The checks of calls whose arguments decide. */
const SPECIAL: Readonly<Record<string, readonly ReturnType<typeof step>[]>> = {
  // CLONE_NEW* of mounts, control groups, host names, message queues, users, processes and network.
  clone: refuseBits(0, 0x7e020000),
  // A filter cannot see their arguments, which are in memory. Programs use clone and openat instead.
  clone3: [finish("enosys")],
  openat2: [finish("enosys")],
  // Linux, its variants with 32-bit addresses or old kernel versions, and the query of the current one.
  personality: [
    loadArgument(0),
    ...[0, 8, 0x20000, 0x20008, 0xffffffff].flatMap((value) => [
      step(OPCODES.ifEqual, value, 0, 1),
      finish("allow"),
    ]),
    finish("eperm"),
  ],
  // AF_ALG and AF_VSOCK lead out of the network namespace.
  socket: [
    loadArgument(0),
    ...[38, 40].flatMap((family) => refuseIf(OPCODES.ifEqual, family)),
    finish("allow"),
  ],
  chmod: refuseBits(1),
  fchmod: refuseBits(1),
  fchmodat: refuseBits(2),
  fchmodat2: refuseBits(2),
  creat: refuseBits(1),
  open: openWith(1, 2),
  openat: openWith(2, 3),
  mknod: refuseBits(1),
  mknodat: refuseBits(2),
};

/**
 * Makes the program by which the kernel checks every system call of a command and its descendants. Returns undefined
 * for other processors. Calls of another architecture (32-bit programs) end the process, calls newer than the list
 * seem to be missing, and refused calls fail with EPERM.
 */
export function systemCallFilter(processor: string = process.arch): Uint8Array | undefined {
  if (processor !== "x64" && processor !== "arm64") return undefined;
  const special = [...callNumbers("special", processor)].flatMap(([name, number]) => {
    const block = SPECIAL[name] ?? [];
    return [step(OPCODES.ifEqual, number, 0, block.length), ...block];
  });
  const refused = [...callNumbers("refused", processor).values()];
  const steps = [
    // The architecture.
    load(4),
    step(OPCODES.ifEqual, processor === "x64" ? 0xc000003e : 0xc00000b7, 1, 0),
    finish("kill"),
    // The number of the call.
    load(0),
    // Programs do without calls newer than setxattrat and its relatives, the last that were checked. The calls of x32
    // are among them, because their numbers begin far above.
    step(OPCODES.ifGreater, 466, 0, 1),
    finish("enosys"),
    ...special,
    ...refused.flatMap((number) => refuseIf(OPCODES.ifEqual, number)),
    finish("allow"),
  ];
  // Both processors are little-endian.
  const bytes = new DataView(new ArrayBuffer(steps.length * 8));
  for (const [index, { code, jt, jf, k }] of steps.entries()) {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, jt);
    bytes.setUint8(index * 8 + 3, jf);
    bytes.setUint32(index * 8 + 4, k, true);
  }
  return new Uint8Array(bytes.buffer);
}
