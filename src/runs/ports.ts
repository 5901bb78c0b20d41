import type { FencingToken } from "../storage/sqlite/checkpoints/thread-fences.ts";
import type { ThreadStep } from "../storage/sqlite/checkpoints/thread-history.ts";
import type { RunStatus } from "./run.ts";

export interface PruneReport {
  runs: number;
  threads: number;
  /** Threads that belong to no run, if they were looked for: found, or deleted when that was asked. */
  orphans?: number;
  /** Memories whose time was over. */
  memories: number;
  /** By which the files got smaller. */
  freedBytes: number;
}

/** What a prune would do now. */
export interface PrunePlan {
  /** Runs that are kept no longer, whatever is stored. */
  runs: number;
  /** Those of the others that may be forgotten, the oldest first, as long as too much is stored. */
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

/** What runs need of the checkpointer of their agents, beyond LangGraph. */
export interface Checkpoints {
  /** Makes what was stored outlive a power cut. */
  sync(): Promise<void>;
  /**
   * For whoever goes on from what is stored: forgets which results of the thread could not be, and keeps those
   * with an earlier token from storing any. Throws `FencedOffError` when there is a later one.
   */
  startOver(threadId: string, token: FencingToken): void;
  deleteThread(threadId: string): Promise<void>;
  /**
   * Makes a thread small whose run is over: forgets the steps of its subagents, packs its own. Leaves it as it is
   * when it was taken with a later token.
   */
  tidyThread(threadId: string, token: FencingToken): Promise<void>;
  usedBytes(): number;
  /** Gives free space back to the file system; gives its bytes. */
  returnSpace(signal: AbortSignal): Promise<number>;
  /** Every thread that has a checkpoint. */
  threads(): Promise<string[]>;
  /** The steps of a thread that are kept, oldest first. */
  steps(threadId: string): Promise<ThreadStep[]>;
  /** Makes `target` of the thread `source` as it was at a checkpoint; false when it is gone. */
  copyThread(source: string, target: string, checkpointId: string): Promise<boolean>;
}

/** Numbers over the runs of all principals: for whoever operates the server, never for a client. */
export interface RunStatistics {
  runs: Readonly<Record<RunStatus, number>>;
  pendingApprovals: number;
}

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

/** A serialised message that a 2025-era session was sent, and to whom. */
export interface SentMessage {
  id: number;
  owner: string;
  message: string;
}

/** Keeps what 2025-era sessions were sent, so that a client can resume a broken stream. Times in milliseconds. */
export interface StreamStore {
  /** Stores a message; gives its id, which is higher than all before it. */
  append(sent: {
    session: string;
    owner: string;
    stream: string;
    message: string;
    time: number;
  }): Promise<number>;
  /** Deletes the messages of a session up to this id. */
  dropUpTo(session: string, id: number): Promise<void>;
  /** The stream that a message of the session was sent on. `undefined`: it is not kept. */
  streamOf(session: string, id: number): Promise<string | undefined>;
  /** Messages of one stream with an id of at least `from`, oldest first. */
  page(place: { session: string; stream: string; from: number; limit: number }): Promise<SentMessage[]>;
  deleteSession(session: string): Promise<void>;
  /** Deletes what was sent at `time` or before. */
  deleteUntil(time: number): Promise<void>;
  /** Deletes the oldest messages of all sessions until the others have at most so many characters. */
  shrinkTo(characters: number): Promise<void>;
  close(): void;
}
