/**
 * Keeps the calls of a program beside the checkpoint of its step, and asks their questions by interrupts. Records are
 * writes under ids that no task has: LangGraph ignores them, every saver stores them, a server that lost the thread
 * cannot add any, and they go when the next checkpoint has the result of the program.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BackgroundTasks } from "../../tools/tool.ts";
import type { CallStep } from "../calls/call-step.ts";
import { noEffects } from "../calls/effects.ts";
import type { CallIdentity, Step } from "../contracts/middleware.ts";
import type {
  InnerRecord,
  ProgramQuestions,
  ProgramRecords,
  ProgramScope,
  ProgramStart,
  WaitingCall,
} from "../contracts/program.ts";
import type { AskedByProgram, AskedQuestion, HitlRequest } from "../contracts/question.ts";
import { PASSING as PROGRAM } from "../../storage/checkpoints/writes.ts";
import { askTask } from "./ask-person.ts";
import { CHECKPOINTER_KEY } from "./internals.ts";
import { type BoundAnswer, askedByProgram, sealOfQuestion } from "./open-interrupts.ts";
import { lastQuestion, stepOfTask } from "./unfinished-step.ts";
import { contextOf } from "./step-of-task.ts";
import { storedEffects } from "./outcome.ts";

export function programScope(
  config: RunnableConfig,
  own: RunnableConfig,
  step: Step,
  at: CallIdentity,
  backgroundOf: (callId: string) => BackgroundTasks | undefined,
): CallStep["program"] {
  const { effects } = contextOf(config);
  const isKept = typeof config.configurable?.[CHECKPOINTER_KEY] === "object";
  return {
    ...(isKept
      ? { records: keptRecords(config), questions: () => questionsSoFar(config, step, at.callId) }
      : UNKEPT),
    get config() {
      const { [CHECKPOINTER_KEY]: _checkpointer, ...configurable } = own.configurable ?? {};
      return { ...own, configurable };
    },
    backgroundFor: ({ outer, number }) => backgroundOf(`${outer}:${number}`),
    effectsFor: ({ number }) => (effects ? storedEffects(effects, { ...at, inner: number }) : noEffects),
  };
}

/** Without a checkpointer, nothing starts again. */
const UNKEPT: Pick<ProgramScope, "records" | "questions"> = {
  records: { begin: async (start) => ({ start, calls: new Map() }), put: async () => undefined },
  questions: async () => ({
    shown: () => [],
    next: () => undefined,
    ask: () => Promise.reject(new Error("nobody can be asked in a graph without a checkpointer")),
  }),
};

/** A record begins as `{ start }` with the program, and is `{ number, record }` for each call. */
type StoredRecord = { start: ProgramStart } | { number: number; record: InnerRecord };

function keptRecords(config: RunnableConfig): ProgramRecords {
  const put = async (name: string, written: StoredRecord): Promise<void> => {
    const { checkpointer, place, task } = await stepOfTask(config);
    await contextOf(config).events?.stored();
    await checkpointer?.putWrites(place, [[PROGRAM, written]], `${task}:${name}`);
  };
  return {
    begin: async (first) => {
      const { writes, task } = await stepOfTask(config);
      let start: ProgramStart | undefined;
      const calls = new Map<number, InnerRecord>();
      for (const [writer, channel, value] of writes) {
        if (channel !== PROGRAM || !writer.startsWith(`${task}:`)) continue;
        const written = value as StoredRecord; // ours
        if ("start" in written) start = written.start;
        // The end of a call counts, wherever it stands.
        else if (written.record.ended || !calls.has(written.number))
          calls.set(written.number, written.record);
      }
      if (!start) await put("program", { start: first });
      return { start: start ?? first, calls };
    },
    put: (number, record) => put(record.ended ? `${number}` : `${number}:begun`, { number, record }),
  };
}

/** The answers of a task come in the order of its interrupts, so that each pass takes all of them in turn. */
async function questionsSoFar(config: RunnableConfig, step: Step, callId: string): Promise<ProgramQuestions> {
  const last = await lastQuestion(config);
  const asked = askedByProgram(last);
  const outer = asked?.outer ?? (last as HitlRequest | undefined)?.shown ?? []; // the gate's, if it is not ours
  const batches = asked?.batches ?? [];
  const answers = new Map<number, unknown[]>();
  for (const batch of batches) {
    const answer = await askTask(last as HitlRequest | AskedQuestion, config, step); // `asked` is there
    for (const [index, { number }] of batch.entries()) {
      const decisions: unknown = Object(answer).decisions;
      answers.set(number, [
        ...(answers.get(number) ?? []),
        Array.isArray(decisions) ? { decisions: decisions.slice(index, index + 1) } : (answer ?? null),
      ]);
    }
  }
  const taken = new Map<number, number>();
  return {
    shown: (number) => batches.flat().findLast((one) => one.number === number)?.shown ?? [],
    next: (number, asked) => {
      for (;;) {
        const index = taken.get(number) ?? 0;
        taken.set(number, index + 1);
        const answer = answers.get(number)?.[index];
        if (answer === undefined || "approval" in asked) return answer;
        const given = answer as Partial<BoundAnswer>; // checked here
        // When a call begins again, it may ask something else.
        if (given.asked === sealOfQuestion(asked.question)) return given.answer;
      }
    },
    ask: async (waiting) => {
      const question = questionFor(waiting, { outer: [...outer], batches, agent: step.agent, callId });
      await askTask(question, config, step);
    },
  };
}

/** All approvals that calls wait for, or else the first other question. */
function questionFor(
  waiting: readonly WaitingCall[],
  { outer, batches, agent, callId }: AskedByProgram & { agent: Step["agent"]; callId: string },
): HitlRequest | AskedQuestion {
  const byNumber = waiting.toSorted((one, other) => one.number - other.number);
  const number = outer.length + batches.length + 1;
  const requests = byNumber.flatMap(({ number, asked }) =>
    "approval" in asked ? [{ number, request: asked.approval }] : [],
  );
  const program = (batch: AskedByProgram["batches"][number]) => ({ outer, batches: [...batches, batch] });
  if (requests.length > 0)
    return {
      actionRequests: requests.flatMap(({ request }) => request.actionRequests),
      reviewConfigs: requests.flatMap(({ request }) => request.reviewConfigs),
      agent,
      ...(number > 1 ? { question: number } : {}),
      program: program(requests.map(({ number, request }) => ({ number, shown: request.shown ?? [] }))),
    };
  const [first] = byNumber;
  if (!first || !("question" in first.asked)) throw new Error("a program stopped without a question");
  return {
    question: first.asked.question,
    agent,
    toolCallId: `${callId}:${first.number}`,
    ...(number > 1 ? { number } : {}),
    program: program([{ number: first.number, shown: [] }]),
  };
}
