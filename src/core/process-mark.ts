/** Marks of processes, by which others on the machine find out that their owner has ended. */
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { isAlive } from "./child-process.ts";
import { orElse } from "./errors.ts";

/** Names this process by boot, process namespace, number and start. Empty without `/proc`. */
export function processMark(): string {
  const machine = machineMark();
  return machine === undefined ? "" : `.${machine}.${process.pid}.${processStart(process.pid)}`;
}

/** True if a marked owner has certainly ended: no process of this boot and namespace has its number and start. */
export function isGone(owner: string): boolean {
  const [, machine, pid, start = ""] = owner.split(".");
  if (machine === undefined || machine !== machineMark()) return false;
  // Another process has the number by now. Marks of earlier versions have no start.
  const isOther = start !== "" && !["", start].includes(processStart(Number(pid)));
  return isOther || !isAlive(Number(pid));
}

/** When a process started, in ticks of the kernel; empty if it is gone. */
export function processStart(pid: number): string {
  const stat = orElse(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

const machineMark = (): string | undefined =>
  orElse(() => {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
    const namespace = readlinkSync("/proc/self/ns/pid");
    return createHash("sha256").update(boot).update(namespace).digest("hex").slice(0, 16);
  }, undefined);
