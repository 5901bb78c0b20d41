/** Asks people about the call of a task, by LangGraph's interrupts. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphInterrupt } from "@langchain/langgraph";
import type { Questions } from "../calls/call-step.ts";
import type { HitlRequest } from "../contracts/question.ts";
import type { Step } from "../contracts/step.ts";
import { isRequest, questionId, refuseBroadcastAnswer } from "./open-interrupts.ts";
import { lastQuestion } from "./resume.ts";

export const questionsOf = (config: RunnableConfig, step: Step): Questions => ({
  shown: async () => {
    const asked = await lastQuestion(config);
    // Questions of a subagent do not count.
    const isOwn = isRequest(asked) && asked.agent?.length === step.agent.length;
    return isOwn ? (asked.shown ?? []) : [];
  },
  ask: async (request) => {
    await refuseBroadcastAnswer(config);
    return ask(request, step);
  },
});

/** LangGraph's `interrupt`, telling watchers about a question that is new. */
function ask(request: HitlRequest, step: Step): unknown {
  try {
    return interrupt(request);
  } catch (error) {
    if (isGraphInterrupt(error)) {
      const id = error.interrupts[0]?.id;
      if (id) step.tell({ kind: "approval_requested", interruptId: questionId(id, request), request });
    }
    throw error;
  }
}
