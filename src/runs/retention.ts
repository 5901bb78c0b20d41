/** Which runs that are over are forgotten, and what that takes along. */
import type { Checkpoints } from "./thread-ports.ts";

export interface PruneContext {
  checkpoints: Checkpoints | undefined;
  now: number;
  signal: AbortSignal;
  /** Default `keep`. */
  orphans?: Orphans;
  /** Deletes the memories whose time is over; gives their number. */
  sweepMemories?: ((signal: AbortSignal) => Promise<number>) | undefined;
}

export interface PruneReport {
  runs: number;
  threads: number;
  /** Threads that belong to no run, if they were looked for: found, or deleted when that was asked. */
  orphans?: number;
  /** Memories whose time was over. */
  memories: number;
  /** How much smaller the files became. */
  freedBytes: number;
}

/** What a prune would do now. */
export interface PrunePlan {
  /** Runs that are kept no longer, whatever is stored. */
  runs: number;
  /** How many more may be forgotten, the oldest first, while too much is stored. */
  runsForSize: number;
  /** Runs that are not over, which are kept. */
  unfinished: number;
  storedBytes: number;
  /** Threads that belong to no run. */
  orphans: number;
}

/**
 * What to do with checkpoints of threads that belong to no run. There are some after the database of runs
 * was replaced by an older copy, or moved away: then they may still be wanted.
 */
export type Orphans = "keep" | "count" | "delete";

/** Which runs that are over may be forgotten. Without any limit all are kept. */
export interface Retention {
  /** Those that ended longer ago than this, in milliseconds. */
  maxAgeMs?: number;
  /** The oldest, as long as all that is stored takes more than this. */
  maxBytes?: number;
}

/** A run that is over is kept for so long, however much is stored: somebody may still come for its result. */
export const KEPT_FOR_SIZE_MS = 24 * 3_600_000;

/** How long a run is kept after it began, at least, in milliseconds; `null`: it is not forgotten. */
export function keptAtLeastMs({ maxAgeMs, maxBytes }: Retention): number | null {
  const limits = [maxAgeMs, maxBytes === undefined ? undefined : KEPT_FOR_SIZE_MS];
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}
