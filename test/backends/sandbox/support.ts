import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { onTestFinished } from "vitest";

/** A directory that is gone after the test. */
export function folder(): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), "deepagent-sandbox-")));
  onTestFinished(() => rmSync(made, { recursive: true, force: true, maxRetries: 3 }));
  return made;
}

/** A number of seconds by which the processes of one test are told from all others. */
export const uniqueSleep = (): string => `${90_000 + Math.floor(Math.random() * 900_000)}`;

/** Whether a process of this machine sleeps for that number of seconds. */
export function isAsleep(seconds: string): boolean {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => commandLine(pid) === `sleep\0${seconds}\0`);
}

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
