/** Asks a person from within a call: the task stops with an interrupt, and begins again with the answer. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { checkAnswer } from "../../tools/check-answer.ts";
import type { AskPerson } from "../../tools/tool.ts";
import type { AskedQuestion } from "../contracts/question.ts";
import { CHECKPOINTER_KEY, interrupt, isGraphInterrupt } from "./internals.ts";
import { refuseBroadcastAnswer } from "./open-interrupts.ts";
import { taskStep } from "./step-of-task.ts";

/** `undefined` in a graph without a checkpointer: it cannot wait. */
export function askPerson(config: RunnableConfig, toolCallId: string): AskPerson | undefined {
  if (typeof config.configurable?.[CHECKPOINTER_KEY] !== "object") return undefined;
  return async (question) => {
    const step = taskStep(config);
    const asked: AskedQuestion = { question, agent: step.agent, toolCallId };
    for (;;) {
      await refuseBroadcastAnswer(config);
      try {
        const checked = checkAnswer(question, interrupt(asked));
        if (checked.ok) return checked.answer;
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
