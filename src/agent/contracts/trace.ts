/** Tracers of runs and model calls. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import type { MaybePromise } from "../../backends/backend.ts";
import type { AgentEvent } from "./events.ts";
import type { AgentPath } from "./state.ts";

export interface ModelTrace {
  answered(reply: AIMessage): void;
  failed(error: unknown): void;
}

/** The tracer of one run, with all graphs below its own. */
export interface RunTrace {
  tell(event: AgentEvent): void;
  modelCall(agent: AgentPath, model: BaseChatModel): ModelTrace;
}

/** The place of a run in a trace, kept beyond the end of a process. */
export interface TracePlace {
  /** The first span of the run, as `traceparent` of the W3C names it. */
  before(): MaybePromise<string | undefined>;
  /** Stores the first span, when there was none before. */
  began(traceparent: string): MaybePromise<void>;
}
