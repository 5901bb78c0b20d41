/** Limits the memory of commands where no control group can. */
import { readFileSync, readdirSync } from "node:fs";
import { monotonicClock } from "../../core/clock.ts";
import { orElse } from "../../core/errors.ts";

/** Time between two looks at the memory of a run, in ms. */
const LOOK_MS = 250;

/**
 * Adds up the memory that programs really use, and ends the largest one while that is too much, as the kernel would do
 * in a control group. Address space that a program only reserves does not count.
 */
export class MemoryWatch {
  /** All processes by parent, as they were a moment ago: many runs share one look. */
  static #seen: { at: number; children: Map<number, number[]> } = { at: -Infinity, children: new Map() };
  /** Number of programs that were ended. */
  kills = 0;
  readonly #limit: number;
  readonly #leaders: () => readonly number[];
  #timer: NodeJS.Timeout | undefined;
  #delay = LOOK_MS;

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
      const pids = this.#descendants();
      this.#check(pids);
      // Takes at most a twentieth of the time, however many processes there are.
      this.#delay = Math.max(LOOK_MS, 20 * (monotonicClock() - begun));
      // The last three hold the namespaces of the run.
      if (this.#leaders().length > 1 || pids.length > 3) this.start();
    }, this.#delay).unref();
  }

  #check(pids: readonly number[]): void {
    const sizes = (file: string, figures: RegExp): number[] =>
      pids.map((pid) => {
        const text = orElse(() => readFileSync(`/proc/${pid}/${file}`, "utf8"), "");
        return [...text.matchAll(figures)].reduce((sum, [, figure]) => sum + Number(figure) * 1024, 0);
      });
    const isOver = (found: readonly number[]): boolean =>
      found.reduce((sum, size) => sum + size, 0) > this.#limit;
    if (!isOver(sizes("status", /^(?:VmRSS|VmSwap):\s*(\d+) kB/gm))) return;
    // Pages that processes share counted for each of them. The exact figure takes the kernel longer.
    const exact = sizes("smaps_rollup", /^(?:Pss|SwapPss):\s*(\d+) kB/gm);
    const largest = pids[exact.indexOf(Math.max(...exact))];
    if (!isOver(exact) || largest === undefined) return;
    orElse(() => process.kill(largest, "SIGKILL"), false);
    this.kills += 1;
  }

  #descendants(): number[] {
    if (monotonicClock() - MemoryWatch.#seen.at > LOOK_MS / 2) {
      const children = new Map<number, number[]>();
      for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
        const stat = orElse(() => readFileSync(`/proc/${name}/stat`, "utf8"), "");
        const parent = Number(/\) \w (\d+) /.exec(stat)?.[1]);
        children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
      }
      MemoryWatch.#seen = { at: monotonicClock(), children };
    }
    const found = [...this.#leaders()];
    for (const pid of found) found.push(...(MemoryWatch.#seen.children.get(pid) ?? []));
    return found;
  }
}
