/** Asks a person from within a call: the task stops with an interrupt, and begins again with the answer. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { checkAnswer } from "../../tools/check-answer.ts";
import type { AskPerson, HoldQuestion } from "../../tools/tool.ts";
import type { AskedQuestion } from "../contracts/question.ts";
import { CHECKPOINTER_KEY, interrupt, isGraphInterrupt } from "./internals.ts";
import { type BoundAnswer, refuseBroadcastAnswer, sealOfQuestion } from "./open-interrupts.ts";
import { contextOf, taskStep } from "./step-of-task.ts";

/** `undefined` where no run keeps the question while the call is at work. */
export function holdQuestion(config: RunnableConfig, signal: AbortSignal): HoldQuestion | undefined {
  const { hold, path: agent = [] } = contextOf(config);
  return hold && ((question) => hold({ agent, question }, signal));
}

/** `undefined` in a graph without a checkpointer: it cannot wait. */
export function askPerson(config: RunnableConfig, toolCallId: string): AskPerson | undefined {
  if (typeof config.configurable?.[CHECKPOINTER_KEY] !== "object") return undefined;
  return async (question) => {
    const step = taskStep(config);
    const asked: AskedQuestion = { question, agent: step.agent, toolCallId };
    for (;;) {
      await refuseBroadcastAnswer(config);
      try {
        const given: Partial<BoundAnswer> | undefined = interrupt(asked);
        const isFitting = given?.asked === sealOfQuestion(question);
        const checked = isFitting && given.answer && checkAnswer(question, given.answer);
        if (checked && checked.ok) return checked.answer;
      } catch (error) {
        if (isGraphInterrupt(error)) {
          for (const { id } of error.interrupts) {
            if (id) step.tell({ kind: "question_asked", interruptId: id, question });
          }
        }
        throw error;
      }
    }
  };
}
