/** Asks people for approvals and answers, and reads their responses. */
import { randomUUID } from "node:crypto";
import { defined } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import type { GivenAnswer } from "../../runs/ports.ts";
import { type RunRequest, type RunView, isApproval, isQuestion, waitingIn } from "../../runs/run.ts";
import type { AnswerOutcome, PrincipalRuns } from "../../runs/service.ts";
import { requestText } from "../../tools/check-answer.ts";
import type { ClientFacts } from "../calls/client.ts";
import type { Taken } from "../calls/open-requests.ts";
import { asText } from "../views/quoting.ts";
import type { FormPlace, PersonRequest } from "../views/request-form.ts";
import {
  addressOf,
  isWholeInForm,
  readForm,
  requestForm,
  saysNothing,
  shownText,
} from "../views/request-form.ts";
import { agentLabel, askedBy, deadlineText } from "../views/request-words.ts";

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

/** Parsed response: the person's answer, or the reason why there is none. */
export type Read = { kind: "said"; said: GivenAnswer } | Exclude<Taken, { kind: "decided" }>;

export interface Circumstances {
  /** Milliseconds since the form was shown. */
  elapsed: number;
  client: Pick<ClientFacts, "urls">;
}

/** True if a client refused by itself, faster than a person can read; `elapsed`: ms since the question. */
export const isUnread = ({ action }: FormResponse, elapsed: number): boolean =>
  action !== "accept" && elapsed < READING_TIME;

/**
 * Reads the answer to one form. Only an accepted form is an answer; a decline rejects, or leaves a question without
 * an answer. Silence, a closed form and a client that answers automatically, faster than anyone can read, leave it
 * open.
 */
export function readAnswer(
  request: RunRequest,
  response: FormResponse,
  { elapsed, client }: Circumstances,
): Read {
  const { action, content } = response;
  if (isUnread(response, elapsed)) return { kind: "left", isUnread: true };
  if (action === "cancel") return { kind: "left" };
  const said = (answer: GivenAnswer["answer"]): Read => ({
    kind: "said",
    said: { requestId: request.id, answer },
  });
  if (action === "decline")
    return said(
      isQuestion(request) ? { type: "decline" } : { type: "reject", message: "declined by the user" },
    );
  if (isQuestion(request)) {
    if (saysNothing(content) && elapsed < READING_TIME) return { kind: "left", isUnread: true };
    if (addressOf(request) !== undefined && client.urls) return said({ type: "opened" });
  }
  const read = readForm(request, content);
  return read.ok ? said(read.answer) : { kind: "again", problem: read.message };
}

export async function takeAnswer(
  session: Decider,
  request: RunRequest,
  response: FormResponse,
  { by, ...circumstances }: Circumstances & { by: string },
): Promise<Taken> {
  const read = readAnswer(request, response, circumstances);
  if (read.kind !== "said") return read;
  const { runs, runId, notes = [] } = session;
  const outcome = await runs.requests.answer(runId, read.said, by);
  if (isLate(outcome)) await refuseAnswer(session, "decided before", by);
  return takenBy(outcome, request, response, { ...session, notes });
}

const isLate = (outcome: AnswerOutcome): boolean => !outcome.ok && outcome.code === "already_answered";

/** Records in the journal of an open run that an answer was not used, and why. */
export async function refuseAnswer({ runs, runId }: Decider, problem: string, by: string): Promise<void> {
  await runs.requests.useAnswer(runId, { id: randomUUID(), problem, answers: [], replies: [], by });
}

/** Interprets the outcome of an answer, and adds the facts that the call reports to `notes`. */
export function takenBy(
  outcome: AnswerOutcome,
  request: RunRequest,
  response: FormResponse,
  { logger, runId, notes }: Required<Pick<Decider, "logger" | "runId" | "notes">>,
): Taken {
  const isToldLate = outcome.ok && outcome.how === "told";
  if (!outcome.ok && isLate(outcome)) {
    logger.info("question.already_answered", { runId, questionId: request.id });
    notes.push(`The user's answer to ${requestName(request)} was not used. ${outcome.message}`);
  }
  if (isToldLate)
    notes.push(`The user's answer to ${requestName(request)} came late, so the agent gets it as a message.`);
  // Somebody was faster, or the run ended while the person was reading: there is nothing left to answer.
  if (outcome.ok || isLate(outcome) || outcome.code === "not_found") return { kind: "decided" };
  // A person who declined has nothing to correct.
  return response.action === "decline" ? { kind: "left" } : { kind: "again", problem: outcome.message };
}

const requestName = (request: RunRequest): string =>
  isQuestion(request) ? `"${asText(requestText(request), 100)}"` : oneLine(request.tool, 64);

export const askable = (
  view: RunView,
  left: ReadonlySet<string>,
  { open }: { open: { isPointless(request: RunRequest): boolean } },
): RunRequest[] => waitingIn(view).filter((waiting) => !left.has(waiting.id) && !open.isPointless(waiting));

/** The client that is asked, and the places other than a form for a person to decide in. */
export interface Asking {
  readonly client: Pick<ClientFacts, "urls" | "revision">;
  /** An address for the client alone, never for its model. `undefined`: no page can be served. */
  readonly pageLink: () => Promise<string | undefined>;
  /** A line to paste into a terminal; `undefined`: a terminal does not show the run. */
  readonly openCommand: string | undefined;
}

/** Builds the form for a request. If it is too small, it names the place that shows all of it. */
export async function formFor(
  request: RunRequest,
  place: FormPlace,
  { client: { urls, revision }, pageLink, openCommand }: Asking,
): Promise<PersonRequest> {
  const abilities = { urls, lists: revision.lists };
  if (isWholeInForm(request)) return requestForm(request, place, abilities);
  const link = await pageLink();
  const inTerminal = openCommand === undefined ? undefined : `run ${openCommand} in a terminal`;
  const elsewhere = link === undefined ? inTerminal : `open ${link}`;
  return requestForm(request, { ...place, ...defined({ elsewhere }) }, abilities);
}

/** The place of one of `all` among those of its kind. */
export function placeOf(request: RunRequest, all: readonly RunRequest[]) {
  const alike = all.filter((other) => isQuestion(other) === isQuestion(request));
  return { position: alike.indexOf(request) + 1, total: alike.length };
}

/** Approvals and questions that are listed by name; the page has all. */
const LISTED = 5;

/** Text for a person whose client is about to open the page, which alone takes answers. */
export function pageMessage(runId: string, waiting: readonly RunRequest[]): string {
  const more = waiting.length - LISTED;
  const [decides, answers] = [!waiting.every(isQuestion), waiting.some(isQuestion)];
  const what = [...(decides ? ["your decision"] : []), ...(answers ? ["your answer"] : [])].join(" and ");
  return [
    `Run ${runId} waits for ${what}. The page shows ${decides ? "what would be done, and decides" : "all of it"}:`,
    ...waiting
      .slice(0, LISTED)
      .flatMap((request) => [
        isApproval(request)
          ? `- ${asText(agentLabel(request.agent))}, ${asText(request.tool, 64)}: ${asText(request.preview.summary)}`
          : `- ${askedBy(request)} ${asText(shownText(request))}`,
        ...deadlineText(request),
      ]),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}

export const allDecided =
  (asked: readonly Pick<RunRequest, "id">[]) =>
  (view: RunView): boolean =>
    !waitingIn(view).some(({ id }) => asked.some((open) => open.id === id));
