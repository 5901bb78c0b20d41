/** Background subagents as the agent that starts them sees them: each is a run of its own. */
import type { BackgroundTask } from "../../tools/tool.ts";
import type { SharedBudget } from "./limits.ts";
import type { AgentState, InboxMessage, ReportingChild } from "./state.ts";

export interface ChildRun extends BackgroundTask {
  readonly threadId: string;
}

export interface NewChild {
  /** Names the call for ever: one that is made again finds its child. */
  readonly call: string;
  readonly name: string;
  /** Its task in a few words, as in its place among the agents. */
  readonly title: string;
  readonly description: string;
  /** The thread that `newThread` returned, with the state from which the child begins. */
  readonly threadId: string;
}

/** The background subagents of a run. They outlive a step, and the process. */
export interface ChildRuns {
  /** The child that a call started, or the one with an id. */
  find(which: { call: string } | { id: string }): Promise<ChildRun | undefined>;
  /** True if one of them has not ended. */
  hasOpen(): Promise<boolean>;
  /** Notes a thread for a child, so that it is found and deleted if no child follows. */
  newThread(): Promise<string>;
  /** `too_many`: as many are at work as may be. */
  start(child: NewChild): Promise<ChildRun | "too_many">;
  /** In the order in which they were started. */
  list(): Promise<ChildRun[]>;
  /** Adds a message that the child reads at its next step; once, however often it is sent with its id. */
  tell(id: string, message: InboxMessage): Promise<ChildRun | undefined>;
  /** Cancels a child; returns it as it was before. */
  cancel(id: string, reason: string): Promise<ChildRun | undefined>;
  /** Shared with the run that started this one, and with its other children. */
  readonly budget: SharedBudget;
}

/** Reads the files of a background subagent that has ended, as parts of its state: nothing if it changed none. */
export type ReadChild = (child: ReportingChild) => Promise<Partial<AgentState>>;
