/** Asks a person in the terminal to answer the requests of a run. */
import { displayText } from "../../core/text.ts";
import { type RunRequest, alreadyAnswered, isQuestion, waitingIn } from "../../runs/run.ts";
import { ANSWERED_LATE } from "../../server/views/request-words.ts";
import { approvalLines, askDecision } from "./ask-approval.ts";
import { type AskOptions, openQuestion, questionLines } from "./ask-question.ts";
import type { BodyStyle, RequestLines } from "./body.ts";

/** Puts the open requests of a run to the person at the terminal, one after the other, until none is open. */
export async function askOpenRequests(runId: string, options: AskOptions): Promise<void> {
  const { runs, only } = options;
  for (let asked = 0; ; asked += 1) {
    const view = await runs.read.view(runId);
    const pending = view === undefined ? [] : waitingIn(view);
    const [first, ...others] = pending.filter(({ id }) => id === (only ?? id));
    if (first === undefined) return;
    await askUnlessAnswered(first, `${asked + 1} of ${asked + 1 + others.length} waiting`, options);
  }
}

/** Asks until there is an answer here, or elsewhere, such as on the page. */
async function askUnlessAnswered(asked: RunRequest, place: string, options: AskOptions): Promise<void> {
  const { asker } = options;
  const elsewhere = new AbortController();
  const watching = untilDecided(asked, options, elsewhere.signal).then(
    () => elsewhere.abort(),
    // Then the decision itself reports the problem.
    () => undefined,
  );
  try {
    await askRequest(asked, place, options, elsewhere.signal);
  } catch (error) {
    if (!elsewhere.signal.aborted) throw error;
    asker.print(asker.colors.dim(isQuestion(asked) ? "› answered elsewhere" : "› decided elsewhere"));
  } finally {
    elsewhere.abort();
    await watching;
  }
}

/** Asks until an answer is stored, here or elsewhere. */
async function askRequest(asked: RunRequest, place: string, options: AskOptions, elsewhere: AbortSignal) {
  const { runs, asker } = options;
  const { dim, yellow } = asker.colors;
  const read =
    asked.kind === "approval"
      ? () => askDecision(asked, place, asker, elsewhere)
      : await openQuestion(asked, place, options, elsewhere);
  for (;;) {
    const answer = await read();
    const outcome = await runs.requests.answer(asked.runId, { requestId: asked.id, answer }, "terminal");
    if (!outcome.ok) asker.print(yellow(displayText(outcome.message)));
    else if (outcome.how === "told") asker.print(yellow(ANSWERED_LATE));
    else if (outcome.how === "repeated") asker.print(yellow(alreadyAnswered(outcome.request)));
    else if (isQuestion(asked)) asker.print(dim(answer.type === "decline" ? "› declined" : "› answered"));
    if (outcome.ok || outcome.code !== "invalid_answer") return;
  }
}

/** Resolves when somebody has decided, as on the page of the run, or the signal is aborted. */
async function untilDecided({ runId, id }: RunRequest, { runs }: AskOptions, signal: AbortSignal) {
  for await (const { kind, data } of runs.watch.events(runId, { after: 0, signal })) {
    if (kind === "approval_decided" && data.approvalId === id) return;
    if (kind === "question_answered" && data.questionId === id) return;
  }
}

export const requestLines = (asked: RunRequest, style: BodyStyle): RequestLines =>
  asked.kind === "approval" ? approvalLines(asked, style) : questionLines(asked, style);
