/** Stores the answers of people to questions that are not about approval. */
import { randomUUID } from "node:crypto";
import { canonicalJson } from "../core/json.ts";
import { oneLine, shownName } from "../core/text.ts";
import { answerText, checkAnswer, questionText } from "../tools/check-answer.ts";
import type { Answer } from "../tools/tool.ts";
import type { RunContext } from "./context.ts";
import type { AnsweredQuestion } from "./ports.ts";
import { DEADLINE, type OpenQuestion, type Principal, alreadyAnswered } from "./run.ts";
import type { AnswerOutcome } from "./service.ts";

/** An answer before it is stored. */
export interface ProposedAnswer {
  principal: Principal;
  runId: string;
  questionId: string;
  answer: Answer;
}

type AnswerContext = Pick<RunContext, "runs" | "clock">;

/** Stores an answer. One that comes after its question has expired reaches a run that is still open as a message. */
export async function answer(
  proposed: ProposedAnswer & { by: string },
  context: AnswerContext,
): Promise<AnswerOutcome> {
  const ready = await prepareAnswer(proposed, context);
  if ("ok" in ready) return ready;
  const { principal, by } = proposed;
  const stored = await context.runs.answer(principal, ready, by, context.clock());
  return answerOutcome(ready, stored, proposed, context);
}

/** The answer ready to be stored, or the outcome if it is not stored. */
export async function prepareAnswer(
  proposed: ProposedAnswer,
  context: AnswerContext,
): Promise<AnsweredQuestion | AnswerOutcome> {
  const { principal, runId, questionId, answer: given } = proposed;
  const question = await context.runs.read.question(principal, runId, questionId);
  if (question === undefined) {
    const message = `There is no question ${shownName(questionId)} in run ${shownName(runId)}.`;
    return { ok: false, code: "not_found", message };
  }
  // Silence is the deadline's alone.
  const checked = checkAnswer(question.question, given.type === "expired" ? { type: "decline" } : given);
  if (!checked.ok) return { ok: false, code: "invalid_answer", message: checked.message };
  const ready = { question, answer: checked.answer };
  return question.status === "pending" ? ready : answerOutcome(ready, undefined, proposed, context);
}

/** `stored`: the question as this answer changed it, if it did. */
export async function answerOutcome(
  { question, answer: given }: AnsweredQuestion,
  stored: OpenQuestion | undefined,
  { principal, runId }: Pick<ProposedAnswer, "principal" | "runId">,
  { runs, clock }: AnswerContext,
): Promise<AnswerOutcome> {
  if (stored !== undefined && stored.decidedBy !== DEADLINE)
    return { ok: true, question: stored, how: "stored" };
  const now = stored ?? (await runs.read.question(principal, runId, question.id)) ?? question;
  if (now.answer && canonicalJson(now.answer) === canonicalJson(given))
    return { ok: true, question: now, how: "repeated" };
  const said = answerText(given);
  if (now.decidedBy === DEADLINE && said !== undefined) {
    const text = `A late answer to your question "${oneLine(questionText(now.question), 300)}": ${said}`;
    const sent = await runs.send(principal, runId, { id: randomUUID(), text, now: clock() });
    if (sent.kind === "sent") return { ok: true, question: now, how: "told" };
  }
  return { ok: false, code: "already_answered", message: alreadyAnswered(now), question: now };
}
