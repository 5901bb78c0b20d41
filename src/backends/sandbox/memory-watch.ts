/** Limits the memory of commands where no control group can. */
import { readFileSync, readdirSync } from "node:fs";
import { monotonicClock } from "../../core/clock.ts";
import { orElse } from "../../core/errors.ts";

/** Time between two looks at the memory of a run, in ms. */
const LOOK_MS = 250;

/** The processes that hold the namespaces of a run. */
const HOLDERS = 3;

/**
 * Adds up the memory that programs really use, and ends the largest one while that is too much, as the kernel would do
 * in a control group. Address space that a program only reserves does not count.
 */
export class MemoryWatch {
  /** Number of programs that were ended. */
  kills = 0;
  readonly #limit: number;
  readonly #leaders: () => readonly number[];
  #timer: NodeJS.Timeout | undefined;

  /** `limit` in bytes, for all descendants of `leaders` together. */
  constructor(limit: number, leaders: () => readonly number[]) {
    this.#limit = limit;
    this.#leaders = leaders;
  }

  /** Looks again and again, until no program is left. */
  start(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const begun = monotonicClock();
      const isAtWork = this.#look();
      // Takes at most a twentieth of the time, however many processes there are.
      this.#delay = Math.max(LOOK_MS, 20 * (monotonicClock() - begun));
      if (isAtWork) this.start();
    }, this.#delay).unref();
  }

  #delay = LOOK_MS;

  #look(): boolean {
    const leaders = this.#leaders();
    const pids = descendants(leaders);
    if (leaders.length <= 1 && pids.length <= HOLDERS) return false;
    const isOver = (sizes: readonly number[]): boolean =>
      sizes.reduce((sum, size) => sum + size, 0) > this.#limit;
    if (!isOver(pids.map((pid) => kilobytes(pid, "status", /^(?:VmRSS|VmSwap):\s*(\d+) kB/gm)))) return true;
    // Pages that processes share counted for each of them. The exact figure takes the kernel longer.
    const exact = pids.map((pid) => kilobytes(pid, "smaps_rollup", /^(?:Pss|SwapPss):\s*(\d+) kB/gm));
    if (!isOver(exact)) return true;
    const largest = pids[exact.indexOf(Math.max(...exact))];
    if (largest !== undefined) orElse(() => process.kill(largest, "SIGKILL"), false);
    this.kills += 1;
    return true;
  }
}

/** Sum of the figures of a process, in bytes. */
function kilobytes(pid: number, file: string, figures: RegExp): number {
  const text = orElse(() => readFileSync(`/proc/${pid}/${file}`, "utf8"), "");
  return [...text.matchAll(figures)].reduce((sum, [, figure]) => sum + Number(figure) * 1024, 0);
}

/** All processes by parent, as they were a moment ago: many runs share one look. */
let seen: { at: number; children: Map<number, number[]> } = { at: -Infinity, children: new Map() };

function descendants(leaders: readonly number[]): number[] {
  if (monotonicClock() - seen.at > LOOK_MS / 2) {
    const children = new Map<number, number[]>();
    for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
      const stat = orElse(() => readFileSync(`/proc/${name}/stat`, "utf8"), "");
      const parent = Number(/\) \w (\d+) /.exec(stat)?.[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    }
    seen = { at: monotonicClock(), children };
  }
  const found = [...leaders];
  for (const pid of found) found.push(...(seen.children.get(pid) ?? []));
  return found;
}
