/** Deletion of finished runs and of everything that belongs to them. */
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Checkpoints } from "./thread-ports.ts";

export interface PruneContext {
  checkpoints: Checkpoints | undefined;
  now: number;
  signal: AbortSignal;
  /** Default `keep`. */
  orphans?: Orphans;
  /** Deletes expired memories; returns their number. */
  sweepMemories?: ((signal: AbortSignal) => Promise<number>) | undefined;
}

export interface PruneReport {
  runs: number;
  threads: number;
  /** Threads that belong to no run, if they were looked for: found, or deleted when that was asked. */
  orphans?: number;
  /** Expired memories. */
  memories: number;
  /** Reduction in size of the files. */
  freedBytes: number;
}

export interface PrunePlan {
  /** Runs that are kept no longer, whatever is stored. */
  runs: number;
  /** Number of further runs to delete, the oldest first, while too much is stored. */
  runsForSize: number;
  /** Runs that are not over, which are kept. */
  unfinished: number;
  storedBytes: number;
  /** Threads that belong to no run. */
  orphans: number;
}

/** Handling of checkpoints without a run, as after the database of runs was replaced by an older copy. */
export type Orphans = "keep" | "count" | "delete";

/** The finished runs that may be deleted. Without any limit all are kept. */
export interface Retention {
  /** Those that ended longer ago than this, in milliseconds. */
  maxAgeMs?: number;
  /** The oldest, as long as all that is stored takes more than this. */
  maxBytes?: number;
}

/** Minimum time that a finished run is kept, regardless of size: somebody may still come for its result. */
export const KEPT_FOR_SIZE_MS = 24 * 3_600_000;

/** Minimum time that a run is kept after it began, in ms; `null`: it is never deleted. */
export function keptAtLeastMs({ maxAgeMs, maxBytes }: Retention): number | null {
  const limits = [maxAgeMs, maxBytes === undefined ? undefined : KEPT_FOR_SIZE_MS];
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}

/** Prunes now and every hour until `signal` aborts, then resolves when it is done. Keeps no process alive. */
export async function keepHouse(
  prune: (now: number) => Promise<PruneReport>,
  { clock = systemClock, log }: { clock?: Clock; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      log.info("runs.pruned", { ...(await prune(clock())) });
    } catch (error) {
      log.warn("runs.prune_failed", { error });
    }
    await delay(3_600_000, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
