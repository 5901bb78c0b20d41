import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { SandboxMount } from "../../../src/backends/sandbox/environment.ts";
import { filesIn as folder } from "../../support/files-in.ts";

export { folder };

/** A number of seconds by which the processes of one test are told from all others. */
export const uniqueSleep = (): string => `${90_000 + Math.floor(Math.random() * 900_000)}`;

/** Whether processes of this machine, one or as many as are asked for, sleep for that number of seconds. */
export const isAsleep = (seconds: string, count = 1): boolean =>
  commandLines().filter((line) => line === `sleep\0${seconds}\0`).length >= count;

/** Of every process of this machine; its words end with NUL. */
export const commandLines = (): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLine(pid));

/** A number of folders, each of which keeps Bubblewrap busy for a moment before the command begins. */
export const manyMounts = (count: number): SandboxMount[] => {
  const mounted = folder();
  return Array.from({ length: count }, (_, index) => ({ folder: mounted, at: `/mounted/${index}` }));
};

/** Whether the sandbox of a command that has `mark` in it is being made, by a process of its own. */
export const isBeingMade = (mark: string): boolean =>
  commandLines().filter((line) => /^\S*bwrap\0/.test(line) && line.includes(mark)).length > 1;

/** Waits for as long as it takes for `holds` to become true. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(10);
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
