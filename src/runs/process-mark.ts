import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Names this process for others on the same machine: boot and process namespace, then the process id.
 * Empty where the system does not tell them (it is Linux's `/proc` that does).
 */
export function processMark(): string {
  const machine = machineMark();
  return machine === undefined ? "" : `.${machine}.${process.pid}`;
}

/**
 * Whether an owner marked so is certainly not there any more: a process of this machine, in this boot and
 * process namespace, whose id is free. An id that was given to another process counts as there.
 */
export function isGone(owner: string): boolean {
  const [, machine, pid] = owner.split(".");
  if (machine === undefined || machine !== machineMark()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}

function machineMark(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
    const namespace = readlinkSync("/proc/self/ns/pid");
    return createHash("sha256").update(boot).update(namespace).digest("hex").slice(0, 16);
  } catch {
    return undefined;
  }
}
