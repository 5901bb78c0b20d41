/** Gives a call that a program makes everything that governs it, from the call of the program. */
import type { ToolCall } from "@langchain/core/messages/tool";
import { checkAnswer } from "../../tools/check-answer.ts";
import type { AskPerson } from "../../tools/tool.ts";
import type { HitlRequest } from "../contracts/question.ts";
import type { InnerCall, ProgramQuestions, WaitingCall } from "../contracts/program.ts";
import type { CallStep, Questions } from "./call-step.ts";
import type { Effects } from "./effects.ts";

/** Stops a call of a program that waits for a person. */
export class Suspended extends Error {
  readonly waiting: WaitingCall;

  constructor(waiting: WaitingCall) {
    super("the call waits for a person");
    this.waiting = waiting;
  }
}

/** Questions of one call of a program: answered if there is an answer, else the call stops. */
export class InnerAsk implements Questions {
  readonly #number: number;
  readonly #questions: ProgramQuestions;

  constructor(number: number, questions: ProgramQuestions) {
    this.#number = number;
    this.#questions = questions;
  }

  async shown(): Promise<readonly string[]> {
    return this.#questions.shown(this.#number);
  }

  async ask(approval: HitlRequest): Promise<unknown> {
    return this.#next({ approval });
  }

  readonly askPerson: AskPerson = async (question) => {
    for (;;) {
      const checked = checkAnswer(question, this.#next({ question }));
      if (checked.ok) return checked.answer;
    }
  };

  #next(asked: WaitingCall["asked"]): never {
    const answer = this.#questions.next(this.#number, asked);
    if (answer === undefined) throw new Suspended({ number: this.#number, asked });
    return answer as never; // checked by those who ask
  }
}

interface InnerOptions {
  inner: InnerCall;
  ask: InnerAsk;
  /** Records that the call begins. */
  begun: () => Promise<void>;
}

/** Everything that governs a call of a program. It reads and changes the files of the program's own call. */
export function innerStep(outer: CallStep, call: ToolCall, { inner, ask, begun }: InnerOptions): CallStep {
  const { scope, program } = outer;
  const { context } = scope;
  const effects = program.effectsFor(inner);
  const background = program.backgroundFor(inner);
  return {
    ...outer,
    inner,
    reply: [call],
    questions: ask,
    effects: { ...effects, begin: (tool) => begunThen(begun, effects, tool) },
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
        ...(background ? { background } : {}),
        ...(context.hold ? { hold: context.hold } : {}),
        ...(context.ask ? { ask: ask.askPerson } : {}),
      },
    },
  };
}

async function begunThen(begun: () => Promise<void>, effects: Effects, tool: string): Promise<void> {
  await begun();
  await effects.begin(tool);
}
