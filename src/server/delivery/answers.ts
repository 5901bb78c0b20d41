/** Asks people for approvals and answers, and reads what they say. */
import { randomUUID } from "node:crypto";
import { defined } from "../../core/defined.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import type { OpenQuestion, PersonDecision, RunView, Waiting } from "../../runs/run.ts";
import { isQuestion, waitingIn } from "../../runs/run.ts";
import type { AnswerOutcome, DecideOutcome, PrincipalRuns } from "../../runs/service.ts";
import { questionText } from "../../tools/check-answer.ts";
import type { Answer } from "../../tools/tool.ts";
import type { ClientFacts } from "../calls/client.ts";
import type { Taken } from "../calls/open-requests.ts";
import type { FormPlace } from "../views/approval-form.ts";
import { agentLabel, approvalForm, deadlineText, decisionOf, isWholeInForm } from "../views/approval-form.ts";
import {
  type PersonRequest,
  addressOf,
  answerIn,
  askedBy,
  expiryText,
  isWholeInQuestionForm,
  questionForm,
  saysNothing,
  shownText,
} from "../views/question-form.ts";
import { asText } from "../views/quoting.ts";

/** A refusal that comes sooner than this, in milliseconds, was not made by a person who read the form. */
const READING_TIME = 1000;

/** Identifies who answers, and for which run. */
export interface Decider {
  readonly runs: PrincipalRuns;
  readonly runId: string;
  readonly logger: Logger;
  /** Sentences that the result of the call puts before the state of the run. */
  readonly notes?: string[];
}

/** The answer that a client sent back for a form. */
export interface FormResponse {
  action: "accept" | "decline" | "cancel";
  content?: unknown;
}

export type Said = { approvalId: string; decision: PersonDecision } | { questionId: string; answer: Answer };

/** The meaning of an answer: what the person says, or the reason why it says nothing. */
export type Read = { kind: "said"; said: Said } | Exclude<Taken, { kind: "decided" }>;

export interface Circumstances {
  /** Milliseconds since the form was shown. */
  elapsed: number;
  client: Pick<ClientFacts, "urls">;
}

/** True if a client refused by itself, faster than a person can read; `elapsed`: ms since the question. */
export const isUnread = ({ action }: FormResponse, elapsed: number): boolean =>
  action !== "accept" && elapsed < READING_TIME;

/**
 * Reads the answer to one form. Only an accepted form says something; a decline rejects, or leaves a question without
 * an answer. Silence, a closed form and a client that answers by itself, faster than anyone can read, leave it open.
 */
export function readAnswer(waiting: Waiting, response: FormResponse, around: Circumstances): Read {
  if (isUnread(response, around.elapsed)) return { kind: "left", isUnread: true };
  if (response.action === "cancel") return { kind: "left" };
  if (isQuestion(waiting)) return readQuestion(waiting, response, around);
  const { id: approvalId } = waiting;
  if (response.action === "decline") {
    const decision = { type: "reject" as const, message: "declined by the user" };
    return { kind: "said", said: { approvalId, decision } };
  }
  const answer = decisionOf(waiting, response.content);
  return answer.ok
    ? { kind: "said", said: { approvalId, decision: answer.decision } }
    : { kind: "again", problem: answer.problem };
}

function readQuestion(
  { id: questionId, question }: OpenQuestion,
  { action, content }: FormResponse,
  { elapsed, client }: Circumstances,
): Read {
  const said = (answer: Answer): Read => ({ kind: "said", said: { questionId, answer } });
  if (action === "decline") return said({ type: "decline" });
  if (saysNothing(content) && elapsed < READING_TIME) return { kind: "left", isUnread: true };
  if (addressOf(question) !== undefined && client.urls) return said({ type: "opened" });
  const read = answerIn(question, content);
  return read.ok ? said(read.answer) : { kind: "again", problem: read.problem };
}

export async function takeAnswer(
  session: Decider,
  waiting: Waiting,
  response: FormResponse,
  { by, ...circumstances }: Circumstances & { by: string },
): Promise<Taken> {
  const read = readAnswer(waiting, response, circumstances);
  if (read.kind !== "said") return read;
  const { runs, runId, notes = [] } = session;
  const { said } = read;
  const outcome =
    "decision" in said
      ? await runs.requests.decide(runId, said.approvalId, said.decision, by)
      : await runs.requests.answer(runId, said.questionId, said.answer, by);
  if (isLate(outcome)) await refuseAnswer(session, "decided before", by);
  return takenBy(outcome, waiting, response, { ...session, notes });
}

type SomeOutcome = DecideOutcome | AnswerOutcome;

const isLate = (outcome: SomeOutcome): boolean =>
  !outcome.ok && (outcome.code === "already_decided" || outcome.code === "already_answered");

/** Records in the journal of an open run that an answer was not used, and why. */
export async function refuseAnswer({ runs, runId }: Decider, problem: string, by: string): Promise<void> {
  const nothing = { decisions: [], answers: [], replies: [] };
  await runs.requests.useAnswer(runId, { id: randomUUID(), problem, ...nothing, by });
}

/** Interprets the outcome of a decision or an answer, and adds to `notes` what the call has to report. */
export function takenBy(
  outcome: SomeOutcome,
  waiting: Waiting,
  response: FormResponse,
  { logger, runId, notes }: Required<Pick<Decider, "logger" | "runId" | "notes">>,
): Taken {
  const isToldLate = outcome.ok && "how" in outcome && outcome.how === "told";
  if (!outcome.ok && isLate(outcome)) {
    logger.info("question.already_answered", { runId, questionId: waiting.id });
    notes.push(`The user's answer to ${nameOf(waiting)} was not used. ${outcome.message}`);
  }
  if (isToldLate)
    notes.push(`The user's answer to ${nameOf(waiting)} came late, so the agent gets it as a message.`);
  // Somebody was faster, or the run ended while the person was reading: there is nothing left to answer.
  if (outcome.ok || isLate(outcome) || outcome.code === "not_found") return { kind: "decided" };
  // A person who declined has nothing to correct.
  return response.action === "decline" ? { kind: "left" } : { kind: "again", problem: outcome.message };
}

const nameOf = (waiting: Waiting): string =>
  isQuestion(waiting) ? `"${asText(questionText(waiting.question), 100)}"` : oneLine(waiting.tool, 64);

export const askable = (
  view: RunView,
  left: ReadonlySet<string>,
  { open }: { open: { isPointless(waiting: Waiting): boolean } },
): Waiting[] => waitingIn(view).filter((waiting) => !left.has(waiting.id) && !open.isPointless(waiting));

/** The client that is asked, and the places other than a form for a person to decide in. */
export interface Asking {
  readonly client: Pick<ClientFacts, "urls" | "revision">;
  /** An address for the client alone, never for its model. `undefined`: no page can be served. */
  readonly pageLink: () => Promise<string | undefined>;
  /** A line to paste into a terminal; `undefined`: a terminal does not show the run. */
  readonly openCommand: string | undefined;
}

/** The form for what waits. Where it is too small for that, it says where all of it is shown. */
export async function formFor(waiting: Waiting, place: FormPlace, asking: Asking): Promise<PersonRequest> {
  const isWhole = isQuestion(waiting) ? isWholeInQuestionForm(waiting) : isWholeInForm(waiting);
  const there = isWhole ? place : { ...place, ...defined({ elsewhere: await whereElse(asking) }) };
  if (!isQuestion(waiting)) return approvalForm(waiting, there);
  const { urls, revision } = asking.client;
  return questionForm(waiting, there, { urls, lists: revision.lists });
}

async function whereElse({ pageLink, openCommand }: Asking): Promise<string | undefined> {
  const link = await pageLink();
  if (link !== undefined) return `open ${link}`;
  return openCommand === undefined ? undefined : `run ${openCommand} in a terminal`;
}

/** The place of one of `all` among those of its kind. */
export function placeOf(waiting: Waiting, all: readonly Waiting[]): Pick<FormPlace, "position" | "total"> {
  const alike = all.filter((other) => isQuestion(other) === isQuestion(waiting));
  return { position: alike.indexOf(waiting) + 1, total: alike.length };
}

/** Approvals and questions that are listed by name; the page has all. */
const LISTED = 5;

/** Text for a person whose client is about to open the page, which alone takes answers. */
export function pageMessage(runId: string, waiting: readonly Waiting[]): string {
  const more = waiting.length - LISTED;
  const [decides, answers] = [!waiting.every(isQuestion), waiting.some(isQuestion)];
  const what = [...(decides ? ["your decision"] : []), ...(answers ? ["your answer"] : [])].join(" and ");
  return [
    `Run ${runId} waits for ${what}. The page shows ${decides ? "what would be done, and decides" : "all of it"}:`,
    ...waiting.slice(0, LISTED).flatMap(pageLines),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}

function pageLines(waiting: Waiting): string[] {
  if (isQuestion(waiting))
    return [`- ${askedBy(waiting)} ${asText(shownText(waiting.question))}`, ...expiryText(waiting)];
  const { agent, tool, preview } = waiting;
  const line = `- ${asText(agentLabel(agent))}, ${asText(tool, 64)}: ${asText(preview.summary)}`;
  return [line, ...deadlineText(waiting)];
}

export const allDecided =
  (asked: readonly Pick<Waiting, "id">[]) =>
  (view: RunView): boolean =>
    !waitingIn(view).some(({ id }) => asked.some((open) => open.id === id));
