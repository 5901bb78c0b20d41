/**
 * LangGraph for other rooms, and private names of LangGraph and LangChain, read in @langchain/langgraph 1.7.3 and
 * @langchain/core 1.4.0; compare each new version of either with this file.
 */
import { GraphRecursionError } from "@langchain/langgraph";
import { RunFailure } from "../../core/errors.ts";
import texts from "./texts.json" with { type: "json" };

export { Command, MemorySaver } from "@langchain/langgraph";

/** Errors of the graph engine that mean something to a person; everything else is passed on as it is. */
export function graphFailure(error: unknown): unknown {
  if (!(error instanceof GraphRecursionError)) return error;
  return new RunFailure("recursion_limit", texts.tooManySteps, { cause: error });
}

/** Keys in `configurable` of a running task: its checkpointer, and whether the run continues from a checkpoint. */
export const CHECKPOINTER_KEY = "__pregel_checkpointer";
export const RESUMING_KEY = "__pregel_resuming";
/** In `configurable`: the signals of the running graph; the external one is shared by all graphs below it. */
export const SIGNALS_KEY = "__pregel_abort_signals";
/** In `configurable`: the stream of the graph above, where that shows the steps of graphs below it. */
export const STREAM_KEY = "__pregel_stream";
/** In `configurable`: reads channel values for the running task, and takes its writes. */
export const READ_KEY = "__pregel_read";
export const SEND_KEY = "__pregel_send";
/** In `configurable`: answers to interrupts by id. */
export const RESUME_MAP_KEY = "__pregel_resume_map";
/** In `configurable`: what LangGraph keeps for one task, a `Scratchpad`. */
export const SCRATCHPAD_KEY = "__pregel_scratchpad";

export interface Scratchpad {
  /** Answers to the task's questions so far. */
  resume: unknown[];
  /** Number of its last question; -1 before the first. */
  interruptCounter: number;
  /** An answer without an id. */
  nullResume?: unknown;
  /** Number of graphs that the task has started: it distinguishes their threads. */
  subgraphCounter?: number;
}

/** Channels of a checkpoint's writes: questions, answers, and errors of tasks. */
export const INTERRUPT = "__interrupt__";
export const RESUME = "__resume__";
export const ERROR = "__error__";
interface WrittenInterrupt {
  id?: string;
  value?: unknown;
  response_schema?: Record<string, unknown>;
}

/** Reads a write to `INTERRUPT`: one question, or a list of them since LangGraph 1.7. */
export const interruptsIn = (written: unknown): WrittenInterrupt[] => [written].flat() as WrittenInterrupt[]; // what LangGraph writes there
/** Channel of the tasks to start next. */
export const TASKS_CHANNEL = "__pregel_tasks";
/** Writes of no task have this id; an answer without an id is one. */
export const NO_TASK = "00000000-0000-0000-0000-000000000000";

/** Channel that makes a node work in the next step. */
export const branchTo = (node: string): string => `branch:to:${node}`;

/** Key of a task's metadata: LangGraph's count of steps over the whole thread. */
export const STEP_KEY = "langgraph_step";

/** Key of the running configuration and its variables in LangChain's context store. */
export const CONFIG_KEY = Symbol.for("lc:child_config");
export const VARIABLES_KEY = Symbol.for("lc:context_variables");
