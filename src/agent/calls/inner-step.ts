/** Derives everything that governs a call of a program from the program's own call. */
import type { ToolCall } from "@langchain/core/messages/tool";
import { defined } from "../../core/unknown.ts";
import { checkAnswer } from "../../tools/check-answer.ts";
import { questionCounter } from "../../tools/question-quota.ts";
import type { AskPerson } from "../../tools/tool.ts";
import type { InnerCall, ProgramQuestions, WaitingCall } from "../contracts/program.ts";
import type { CallStep, Questions } from "./call-step.ts";

/** Stops a call of a program that waits for a person. */
export class Suspended extends Error {
  readonly waiting: WaitingCall;

  constructor(waiting: WaitingCall) {
    super("the call waits for a person");
    this.waiting = waiting;
  }
}

/** Questions of one call of a program: answered if there is an answer, else the call stops. */
function innerAsk(number: number, questions: ProgramQuestions): Questions & { askPerson: AskPerson } {
  const count = questionCounter();
  const next = (asked: WaitingCall["asked"]): never => {
    const answer = questions.next(number, asked);
    if (answer === undefined) throw new Suspended({ number, asked });
    return answer as never; // checked by those who ask
  };
  return {
    shown: async () => questions.shown(number),
    ask: async (approval) => next({ approval }),
    askPerson: async (question) => {
      for (;;) {
        count(question);
        const checked = checkAnswer(question, next({ question }));
        if (checked.ok) return checked.answer;
      }
    },
  };
}

/**
 * Everything that governs a call of a program. It reads and changes the files of the program's own call. `begun`
 * records that the call begins.
 */
export function innerStep(
  outer: CallStep,
  call: ToolCall,
  { inner, asked, begun }: { inner: InnerCall; asked: ProgramQuestions; begun: () => Promise<void> },
): CallStep {
  const { scope, program } = outer;
  const { context } = scope;
  const ask = innerAsk(inner.number, asked);
  const effects = program.effectsFor(inner);
  const background = program.backgroundFor(inner);
  return {
    ...outer,
    inner,
    reply: [call],
    questions: ask,
    effects: { ...effects, begin: (tool) => begun().then(() => effects.begin(tool)) },
    scope: {
      ...scope,
      config: program.config,
      isPause: (error) => error instanceof Suspended || scope.isPause(error),
      context: {
        callId: call.id ?? "",
        signal: context.signal,
        backend: context.backend,
        isProgram: true,
        versionSeen: (path) => context.versionSeen?.(path),
        ...defined({ background, hold: context.hold, ask: context.ask && ask.askPerson }),
      },
    },
  };
}
