/** Port for the conversations of a run's agents, beyond LangGraph. */
import type { ThreadStep, WrittenMessages } from "../agent/agent.ts";

export type { ThreadStep, WrittenMessages };

/** Orders those who work on a thread one after the other: by the number of their run, then of its claim. */
export interface FencingToken {
  readonly run: number;
  readonly claim: number;
}

/** Thrown when another process has taken over the thread: the caller must stop at once. */
export class FencedOffError extends Error {
  constructor(threadId: string) {
    super(`Another server works on thread ${threadId} now.`);
    this.name = "FencedOffError";
  }
}

/** Port for the checkpointer of a run's agents, beyond LangGraph. */
export interface Checkpoints {
  /** Makes stored data survive a power cut. */
  sync(): Promise<void>;
  /**
   * Prepares a thread for a continuation from the stored state. It drops the record of results that could not be
   * stored, and keeps holders of an earlier token from storing any. Throws `FencedOffError` when there is a later
   * token.
   */
  startOver(threadId: string, token: FencingToken): Promise<void>;
  deleteThread(threadId: string): Promise<void>;
  /** Deletes all of a thread's subagents but their messages, unless it was taken with a later token. */
  tidyThread(threadId: string, token: FencingToken): Promise<void>;
  usedBytes(): Promise<number>;
  /** Returns free space to the file system, and resolves with its bytes. */
  returnSpace(signal: AbortSignal): Promise<number>;
  /** Every thread that has a checkpoint. */
  threads(): Promise<string[]>;
  /** The steps of a thread that are kept, oldest first. */
  steps(threadId: string): Promise<ThreadStep[]>;
  /** All written messages that hold `text` as they are serialised, in graphs inside the thread too. */
  writtenWith(threadId: string, text: string): Promise<WrittenMessages[]>;
  /** Makes `target` of the thread `source` as it was at a checkpoint; false when it is gone. */
  copyThread(source: string, target: string, checkpointId: string): Promise<boolean>;
}
