/** Marks of processes, by which others on the machine find out that their owner has ended. */
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { isAlive } from "./child-process.ts";
import { orElse } from "./errors.ts";

/** Names this process by boot, process namespace, number and start. Empty without `/proc`. */
export function processMark(): string {
  const machine = machineMark();
  return machine === undefined ? "" : `.${machine}.${process.pid}.${processStat(process.pid).start}`;
}

/** True if a marked owner has certainly ended: no process of this boot and namespace has its number and start. */
export function isGone(owner: string): boolean {
  const [, machine, pid, start = ""] = owner.split(".");
  if (machine === undefined || machine !== machineMark()) return false;
  // Another process has the number by now. Marks of earlier versions have no start.
  const isOther = start !== "" && !["", start].includes(processStat(Number(pid)).start);
  return isOther || !isAlive(Number(pid));
}

/**
 * State of a process, its parent, its process group and its start in ticks of the kernel. Texts are empty and numbers are
 * 0 if it is gone. A process chooses its name, which comes first in the file and may look like the other fields.
 */
export function processStat(pid: number): { state: string; parent: number; group: number; start: string } {
  const stat = orElse(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "");
  const [state = "", parent, group, ...others] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state, parent: Number(parent ?? 0), group: Number(group ?? 0), start: others[16] ?? "" };
}

const machineMark = (): string | undefined =>
  orElse(() => {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
    const namespace = readlinkSync("/proc/self/ns/pid");
    return createHash("sha256").update(boot).update(namespace).digest("hex").slice(0, 16);
  }, undefined);
