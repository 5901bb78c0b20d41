/** Asks a person about a call or from within it: the task stops with an interrupt, and begins again with the answer. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphInterrupt } from "@langchain/langgraph";
import { defined } from "../../core/unknown.ts";
import { checkAnswer } from "../../tools/check-answer.ts";
import { questionCounter } from "../../tools/question-quota.ts";
import type { AskPerson, HoldQuestion, ToolContext } from "../../tools/tool.ts";
import type { Questions } from "../calls/call-step.ts";
import type { AskedQuestion, HitlRequest } from "../contracts/question.ts";
import type { Step } from "../contracts/middleware.ts";
import { CHECKPOINTER_KEY, interruptsIn } from "./internals.ts";
import {
  type BoundAnswer,
  askedByProgram,
  isRequest,
  questionId,
  questionOf,
  refuseBroadcastAnswer,
  sealOfQuestion,
} from "./open-interrupts.ts";
import { lastQuestion } from "./unfinished-step.ts";
import { contextOf } from "./step-of-task.ts";

export const questionsOf = (config: RunnableConfig, step: Step): Questions => ({
  shown: async () => {
    const asked = await lastQuestion(config);
    // Questions of a subagent do not count.
    const isOwn = isRequest(asked) && asked.agent?.length === step.agent.length;
    return isOwn ? (asked.program?.outer ?? asked.shown ?? []) : (askedByProgram(asked)?.outer ?? []);
  },
  ask: (request) => askTask(request, config, step),
});

/** Asks by the next interrupt of the task, and reports it to watchers. @throws a pause as long as nobody answers. */
export async function askTask(
  asked: HitlRequest | AskedQuestion,
  config: RunnableConfig,
  step: Step,
): Promise<unknown> {
  await refuseBroadcastAnswer(config);
  try {
    return interrupt(asked);
  } catch (error) {
    for (const { id } of isGraphInterrupt(error) ? error.interrupts : []) {
      if (!id) continue;
      const interruptId = questionId(id, asked);
      if (isRequest(asked)) {
        step.tell({ kind: "approval_requested", interruptId, request: asked });
        continue;
      }
      const { question, toolCallId: callId } = asked;
      if (question.kind === "elicitation") await contextOf(config).countQuestion?.(interruptId);
      step.tell({ kind: "question_asked", interruptId, question, callId });
    }
    throw error;
  }
}

/** Returns undefined where no run keeps the question while the call is at work. */
export function holdQuestion(
  config: RunnableConfig,
  { callId, signal }: Pick<ToolContext, "callId" | "signal">,
): HoldQuestion | undefined {
  const { hold, path: agent = [] } = contextOf(config);
  const ask: HoldQuestion = async (question, ended) => hold?.({ agent, question, callId }, signal, ended);
  return hold && Object.assign(ask, defined({ run: hold.run }));
}

/** Returns undefined in a graph without a checkpointer, which cannot wait. */
export function askPerson(config: RunnableConfig, step: Step, toolCallId: string): AskPerson | undefined {
  if (typeof config.configurable?.[CHECKPOINTER_KEY] !== "object") return undefined;
  // A call that is made again goes through all its questions again.
  const count = questionCounter();
  return async (question) => {
    const asked: AskedQuestion = { question, agent: step.agent, toolCallId };
    for (;;) {
      count(question);
      const given = (await askTask(asked, config, step)) as Partial<BoundAnswer> | undefined; // checked here
      const isFitting = given?.asked === sealOfQuestion(question);
      const checked = isFitting && given.answer && checkAnswer(question, given.answer);
      if (checked && checked.ok) return checked.answer;
    }
  };
}

/** Reports questions that a tool asks by LangGraph's `interrupt` at once, because other calls may work on for long. */
export function tellQuestions(pause: unknown, step: Step, callId: string | undefined): void {
  if (!isGraphInterrupt(pause)) return;
  for (const { id, value, response_schema: schema } of interruptsIn(pause.interrupts)) {
    if (!id || isRequest(value)) continue;
    const { question } = questionOf({ id, interruptId: id, value, ...defined({ schema }) });
    step.tell({ kind: "question_asked", interruptId: id, question, ...defined({ callId }) });
  }
}
