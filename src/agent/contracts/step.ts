/** The step of an agent, as its layers, models and calls see it. They do not know the graph that it is a task of. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { Backend, BackendSource, ThreadFiles } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import type { ModelTrace } from "./trace.ts";
import type { AgentEvent } from "./events.ts";
import type { AgentLimits, Spent } from "./limits.ts";
import type { AgentPath, AgentPathSegment, AgentState } from "./state.ts";

/** An event without the agent that it is about. */
export type OwnEvent<Event> = Event extends { agent: AgentPath } ? Omit<Event, "agent"> : never;

export interface Step {
  /** The agent whose step it is. */
  readonly agent: AgentPath;
  readonly budget: Budget;
  /** Files of the thread, with the changes of this step. */
  readonly files: ThreadFiles;
  /** Makes the backend of this step. */
  backend(source: BackendSource, state: AgentState, log?: Logger): Promise<Backend>;
  /** Reports an event of this agent, or of its subagent `child`, to those who watch the run. */
  tell(event: OwnEvent<AgentEvent>, child?: AgentPathSegment): void;
  /** Begins the trace of a model call; `undefined` if nobody traces the run. */
  traceModel(model: BaseChatModel): ModelTrace | undefined;
}

/** Counts what an agent uses, and knows its limits. */
export interface Budget {
  readonly limits: AgentLimits;
  add(spent: Spent): void;
}
