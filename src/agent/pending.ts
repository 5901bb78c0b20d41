import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ConfigurationError } from "../core/errors.ts";
import { ERROR, INTERRUPT, RESUME } from "./langgraph-keys.ts";
import { TOOLS } from "./state.ts";
import type { ValidatedArgs } from "./agent-tool.ts";
import type { HitlRequest, HitlResponse } from "./events.ts";
import { responseProblem } from "./middleware/human-in-the-loop.ts";

/** A write to any other channel says that a task has finished. */
const UNFINISHED = new Set([INTERRUPT, RESUME, ERROR]);
const INTERRUPT_ID = /^[0-9a-f]{32}(-\d+)?$/;

/** An open interrupt of a thread: a request for approval, or whatever a tool of the user asked. */
export interface OpenInterrupt {
  /** What it is answered by. */
  readonly id: string;
  /** What LangGraph calls it. */
  readonly interruptId: string;
  readonly value: unknown;
}

/**
 * What a question is answered by: LangGraph's id, which is that of the task, and from its second question
 * on the number too, so that an answer that is stored somewhere never counts for another question.
 */
export function questionId(interruptId: string, value: unknown): string {
  const { question = 1 } = isRequest(value) ? value : {};
  return question === 1 ? interruptId : `${interruptId}-${question}`;
}

/**
 * What waits for an answer in a thread, subagents included. Read from the checkpoints, because LangGraph's
 * `getState` goes on listing answered interrupts while others of the same step are open.
 */
export async function openInterrupts(
  checkpointer: BaseCheckpointSaver,
  configurable: RunnableConfig["configurable"],
): Promise<OpenInterrupt[]> {
  const { checkpoint_ns = "" } = configurable ?? {};
  const writes = (await checkpointer.getTuple({ configurable: address(configurable) }))?.pendingWrites ?? [];
  const finished = finishedTasks(writes);
  const open = writes.filter(([task, channel]) => channel === INTERRUPT && !finished.has(task));
  const found = await Promise.all(
    open.map(async ([task, , interrupt]) => {
      // A task keeps only the last interrupt of the subagent it runs; the subagent's checkpoint has all.
      const inner = [checkpoint_ns, `${TOOLS}:${task}`].filter((part) => part !== "").join("|");
      const nested = await openInterrupts(checkpointer, {
        thread_id: configurable?.["thread_id"],
        checkpoint_ns: inner,
      });
      if (nested.length > 0) return nested;
      const { id, value } = interrupt as { id?: string; value?: unknown }; // what LangGraph writes there
      return id ? [{ id: questionId(id, value), interruptId: id, value }] : [];
    }),
  );
  return found.flat();
}

/** The tasks of a step that have finished, by what they wrote. */
export const finishedTasks = (writes: NonNullable<CheckpointTuple["pendingWrites"]>): ReadonlySet<string> =>
  new Set(writes.filter(([, channel]) => !UNFINISHED.has(channel)).map(([task]) => task));

function address(configurable: RunnableConfig["configurable"]): Record<string, unknown> {
  const { thread_id, checkpoint_id, checkpoint_ns = "" } = configurable ?? {};
  return { thread_id, checkpoint_ns, ...(checkpoint_id === undefined ? {} : { checkpoint_id }) };
}

/** Checks the arguments of an edited call; `undefined` where the tools of the asking agent are not known. */
export type EditCheck = (request: HitlRequest, tool: string, args: unknown) => ValidatedArgs | undefined;

/**
 * Answers by LangGraph's interrupt id, from what a caller resumes with: a record by that id or the
 * question's, or a bare answer when exactly one interrupt is open. LangGraph alone would hand a bare answer
 * to every open interrupt.
 *
 * @throws ConfigurationError for an answer that fits no open interrupt; nothing was run then, and every
 *   interrupt stays open.
 */
export function answersById(
  resume: unknown,
  open: readonly OpenInterrupt[],
  checkEdit: EditCheck,
): Record<string, unknown> {
  const given = isRecordOfAnswers(resume, open) ? resume : { [theOnly(open)]: resume };
  const answers: Record<string, unknown> = {};
  for (const [id, answer] of Object.entries(given)) {
    const interrupt = open.find((candidate) => isCalled(candidate, id));
    if (!interrupt) throw new ConfigurationError("INTERRUPT_NOT_PENDING", `Interrupt ${id} is not pending.`);
    const problem = answerProblem(interrupt, answer, checkEdit);
    if (problem !== undefined) {
      throw new ConfigurationError(
        "INVALID_ANSWER",
        `${problem} Interrupt ${id} stays open; answer it again.`,
      );
    }
    answers[interrupt.interruptId] = answer;
  }
  return answers;
}

const isCalled = ({ id, interruptId }: OpenInterrupt, name: string): boolean =>
  id === name || interruptId === name;

/** What is wrong with the answer to an open interrupt; anything goes where no approval was asked for. */
export function answerProblem(
  { value }: OpenInterrupt,
  answer: unknown,
  checkEdit: EditCheck,
): string | undefined {
  if (!isRequest(value)) return undefined;
  const problem = responseProblem(value, answer);
  if (problem !== undefined) return problem;
  for (const decision of (answer as HitlResponse).decisions) {
    if (decision.type !== "edit") continue;
    const checked = checkEdit(value, decision.editedAction.name, decision.editedAction.args);
    if (checked?.ok === false) return checked.message.replace(/\.?$/, ".");
  }
  return undefined;
}

/** What an edit comes to that cannot be followed; allowed whatever else is, as a missed deadline is. */
export const denialOfEdit = (problem: string): HitlResponse => ({
  decisions: [
    {
      type: "reject",
      message: `Error: A person changed this call to one that cannot run. ${problem}`,
      expired: true,
    },
  ],
});

/** Whether an interrupt asks for an approval. */
export function isRequest(value: unknown): value is HitlRequest {
  return typeof value === "object" && value !== null && "actionRequests" in value;
}

function isRecordOfAnswers(
  resume: unknown,
  open: readonly OpenInterrupt[],
): resume is Record<string, unknown> {
  if (typeof resume !== "object" || resume === null || Array.isArray(resume)) return false;
  const keys = Object.keys(resume);
  return (
    keys.some((key) => open.some((interrupt) => isCalled(interrupt, key))) ||
    keys.some((key) => INTERRUPT_ID.test(key))
  );
}

function theOnly(open: readonly OpenInterrupt[]): string {
  const [first, ...others] = open;
  if (!first) {
    throw new ConfigurationError("NOTHING_PENDING", "Nothing waits for an answer in this thread.");
  }
  if (others.length > 0) {
    throw new ConfigurationError(
      "SEVERAL_APPROVALS_PENDING",
      `Several approvals are pending; answer by interrupt id: ${open.map(({ id }) => id).join(", ")}`,
    );
  }
  return first.id;
}
