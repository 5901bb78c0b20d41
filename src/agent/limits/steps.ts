import type { RunnableConfig } from "@langchain/core/runnables";
import { meterOf } from "../step.ts";

/**
 * Whether LangGraph would allow no whole turn of `turn` steps any more, and `end` steps to end in order.
 * It throws where its limit is reached, and what the run has would come to nobody. The first turn is always
 * tried.
 */
export function isOutOfSteps(config: RunnableConfig, { turn, end }: { turn: number; end: number }): boolean {
  const made = stepsBefore(config);
  const { recursionLimit = Infinity } = config;
  // It counts its own first step too, and asks for one more after the last.
  return made >= turn && made + turn + end + 2 > recursionLimit;
}

/** Steps of this graph before the one of `config`, since it was invoked. */
export function stepsBefore(config: RunnableConfig): number {
  const step: unknown = config.metadata?.["langgraph_step"]; // LangGraph's count over the whole thread
  return meterOf(config, {}).stepsBefore(typeof step === "number" ? step : 0);
}
