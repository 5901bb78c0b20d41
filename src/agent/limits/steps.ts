import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isReply } from "../message-kind.ts";
import { isResuming, meterOf, readState } from "../step.ts";
import { STEP_KEY } from "../langgraph-keys.ts";
import { currentRun } from "./limits.ts";

/** Graph steps of one turn, and of the end of a run. */
export interface TurnSteps {
  turn: number;
  end: number;
}

/**
 * Whether LangGraph would allow no whole turn of `turn` steps any more, and `end` steps to end in order.
 * It throws where its limit is reached, and what the run has would come to nobody. The first turn is always
 * tried.
 */
export function isOutOfSteps(config: RunnableConfig, { turn, end }: TurnSteps): boolean {
  const made = meterOf(config, {}).stepsBefore(stepOf(config));
  const { recursionLimit = Infinity } = config;
  // It counts its own first step too, and asks for one more after the last.
  return made >= turn && made + turn + end + 2 > recursionLimit;
}

/**
 * Takes notice of where the run began, once. LangGraph counts anew each time a run goes on; here what it did
 * before counts, as far as its messages tell.
 */
export function noticeStep(config: RunnableConfig, steps: TurnSteps): void {
  const meter = meterOf(config, {});
  if (meter.hasBegun) return;
  const before = isResuming(config) ? stepsOf(readState(config, ["messages"]).messages, steps) : 0;
  meter.begin(stepOf(config) - before);
}

/** LangGraph's count over the whole thread. */
function stepOf(config: RunnableConfig): number {
  const step: unknown = config.metadata?.[STEP_KEY];
  return typeof step === "number" ? step : 0;
}

/** Each reply took a turn, without the step of its calls where it made none, or none has finished. */
function stepsOf(thread: readonly BaseMessage[], { turn }: TurnSteps): number {
  const { messages } = currentRun(thread);
  return messages.reduce((steps, message, index) => {
    if (isReply(message)) return steps + turn - 1;
    const isFirstResult = ToolMessage.isInstance(message) && !ToolMessage.isInstance(messages[index - 1]);
    return isFirstResult ? steps + 1 : steps;
  }, 0);
}
