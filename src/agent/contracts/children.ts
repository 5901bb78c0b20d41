/** Background subagents as the agent that starts them sees them: each is a run of its own. */
import type { Spent } from "./limits.ts";
import type { AgentState, InboxMessage, ReportingChild } from "./state.ts";

/** One background subagent. */
export interface ChildRun {
  /** Id of its run, by which the model names it. */
  readonly id: string;
  /** Type of the subagent. */
  readonly name: string;
  readonly description: string;
  readonly status: ChildStatus;
  readonly threadId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt?: number;
  /** One line: its newest step; empty before the first. */
  readonly step: string;
}

/** `input_required`: it waits for a person. The last three are final. */
type ChildStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

export const hasEnded = ({ status }: Pick<ChildRun, "status">): boolean =>
  status !== "working" && status !== "input_required";

export interface NewChild {
  /** Names the call for ever: one that is made again finds its child. */
  readonly call: string;
  readonly name: string;
  readonly description: string;
  /** The thread that `newThread` gave, with the state from which the child begins. */
  readonly threadId: string;
}

/** The background subagents of a run. They outlive a step, and the process. */
export interface ChildRuns {
  /** The child that a call started. */
  find(call: string): Promise<ChildRun | undefined>;
  /** Notes a thread for a child, so that it is found and deleted if no child follows. */
  newThread(): Promise<string>;
  /** `too_many`: as many are at work as may be. */
  start(child: NewChild): Promise<ChildRun | "too_many">;
  /** In the order in which they were started. */
  list(): Promise<ChildRun[]>;
  /** Adds a message that the child reads at its next step; once, however often it is sent with its id. */
  tell(id: string, message: InboxMessage): Promise<ChildRun | undefined>;
  /** Cancels a child; gives it as it was before. */
  cancel(id: string, reason: string): Promise<ChildRun | undefined>;
  /** Use of all other runs of the tree: of the one that started this one, and of its other children. */
  spentElsewhere(): Promise<Spent>;
}

/** Reads the state of a background subagent that has ended. */
export type ReadChild = (child: ReportingChild) => Promise<Partial<AgentState>>;
