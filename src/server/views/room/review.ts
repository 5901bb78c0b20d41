/** The review of requests: open approvals and questions, oldest first, then past decisions and answers. */
import { askedAgainText } from "../request-words.ts";
import { capital, displayText, oneLine } from "../../../core/text.ts";
import { byRuleText } from "../../../runs/asked-words.ts";
import type { RunRequest, RunView } from "../../../runs/run.ts";
import { BY_RULE, DEADLINE, isQuestion, waitingIn } from "../../../runs/run.ts";
import { answerText } from "../../../tools/check-answer.ts";
import { type ApprovalViewer, callPath, isShared } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { markdownText } from "../content/texts.ts";
import { headline, renderCard, requestIcon } from "./card.ts";
import { elapsed, timeOf } from "./figures.ts";
import { emptyPanel, mainOf } from "./pieces.ts";
import { type ProposedScreen, type RenderedProposal, renderProposal } from "./proposed.ts";
import { isReview } from "./question.ts";
import { type Complaint, type Request, anchorOf, who } from "./request.ts";
import { RUN_STATES, type State } from "./states.ts";

const MAX = { answer: 300, decided: 100 };

export interface ReviewScreen {
  requests: readonly Request[];
  /** Number of further requests that wait. Default: none. */
  rest?: number;
  viewer: ApprovalViewer;
  now: number;
  complaint?: Complaint | undefined;
  /** The run they belong to; absent where those of all runs are shown. */
  view?: RunView | undefined;
  proposed?: ProposedScreen | undefined;
}

/** Renders the requests in sequence, without a surrounding screen. */
export const renderRequests = ({ requests, viewer, complaint, now }: ReviewScreen): Html =>
  html`${requests.map((request, index) => {
    const own = complaint?.requestId === request.asked.id ? complaint : undefined;
    const look = { viewer, now, complaint: own, isOfAll: request.task !== undefined };
    return renderCard(request, `${index + 1} of ${requests.length}`, look);
  })}`;

export function renderReview(screen: ReviewScreen): Html {
  const { rest = 0, view, viewer, complaint } = screen;
  const proposal = renderProposed(screen);
  // The whole change stands in the place of the question about it.
  const requests = screen.requests.filter(({ asked }) => proposal === undefined || !isReview(asked));
  const summary = screen.requests.find(({ asked }) => isReview(asked))?.why;
  const waiting = requests.length + rest;
  const isShown = proposal !== undefined || requests.length > 0;
  const isShownThere =
    screen.requests.some(({ asked }) => asked.id === complaint?.requestId) ||
    (complaint?.requestId === PROPOSED && typeof screen.proposed?.change === "object");
  const content = html`<aside class="queue" aria-label="Requests">
      ${(proposal === undefined || waiting > 0) && queue({ ...screen, requests }, waiting)} ${proposal?.lists}
      ${view && decided(view, proposal !== undefined, viewer)}
    </aside>
    <div id="requests">
      ${view === undefined && html`<h1 class="hide">Needs you</h1>`}
      ${complaint && !isShownThere && html`<p class="notice ${complaint.isDone ? "intro" : complaint.isTold ? "amber" : "red"}" role="alert">${complaint.isDone && icon("done", "green")}<span>${complaint.problem}</span></p>`}
      ${renderRequests({ ...screen, requests })}
      ${proposal && summary && html`<section class="panel pad intro" aria-label="The agent’s summary">${markdownText(summary)}</section>`}
      ${proposal?.content} ${!isShown && emptyPanel("done", words.empty.requests)}
      ${rest > 0 && html`<p class="note pad">${rest} more are shown when these are decided.</p>`}
    </div>`;
  return mainOf(viewer.session, "review", content);
}

function renderProposed(screen: ReviewScreen): RenderedProposal | undefined {
  const { proposed, requests, viewer, now, complaint } = screen;
  if (proposed === undefined) return undefined;
  const question = requests.map(({ asked }) => asked).find(isReview);
  const isOwn = complaint !== undefined && [question?.id, PROPOSED].includes(complaint.requestId);
  const own = isOwn ? complaint : undefined;
  return renderProposal(proposed, { viewer, now, complaint: own, question, describeChannel });
}

/** Replaces the request ID, if a finished run asks for no review. */
export const PROPOSED = "proposed";

function queue({ requests, now }: ReviewScreen, waiting: number): Html {
  const items = requests.map(
    ({ asked, task }) =>
      html`<li id="q-${anchorOf(asked)}">
        <a href="#${anchorOf(asked)}" data-row
          >${icon(requestIcon(asked), "amber")}${headline(asked)}<small class="cut"
            >${who(asked)} ·
            ${elapsed(asked.requestedAt, undefined, now)}${task !== undefined && ` · ${oneLine(task, 80)}`}</small
          ></a
        >
      </li>`,
  );
  return html`<section>
    <h2>Waiting<span class="count${waiting > 0 ? " amber" : ""}">${waiting}</span></h2>
    <ol class="list">
      ${items}
    </ol>
  </section>`;
}

const DECISIONS: Readonly<Record<RunRequest["status"], State>> = {
  pending: RUN_STATES.input_required,
  approved: { ...RUN_STATES.completed, word: "Approved" },
  edited: { ...RUN_STATES.completed, word: "Approved with changes" },
  rejected: { ...RUN_STATES.failed, word: "Rejected" },
  answered: { ...RUN_STATES.completed, word: "Answered" },
  declined: { ...RUN_STATES.cancelled, word: "Skipped" },
  withdrawn: { ...RUN_STATES.cancelled, word: "No longer needed" },
};

/** Ways that a person decides, by the channel of the decision. */
const CHANNELS: Readonly<Record<string, string>> = words.channels;

const EXPIRED: State = { icon: "clock", tone: "faint", word: "Nobody answered in time" };

export const describeChannel = (by: string): string =>
  CHANNELS[by] ?? `(${oneLine(by.replaceAll("_", " "), 40)})`;

/** `isListed`: the reviews of the change stand in a list of their own. */
function decided(view: RunView, isListed: boolean, { session }: ApprovalViewer): Html | undefined {
  const past = view.requests
    .filter((asked) => asked.status !== "pending" && !(isListed && isReview(asked)))
    .toReversed();
  if (past.length === 0) return undefined;
  const isOwner = session !== "app" && !isShared(session);
  const items = past.slice(0, MAX.decided).map((asked) => {
    const again = isQuestion(asked) ? "" : askedAgainText(asked, view);
    const own = isQuestion(asked) && asked.decidedBy === DEADLINE ? EXPIRED : DECISIONS[asked.status];
    const state: State = again === "" ? own : { ...own, icon: "again", tone: "amber" };
    const answer = asked.answer && answerText(asked.answer);
    const { decidedBy } = asked;
    const hasWord = decidedBy === undefined || asked.status === "withdrawn" || state.word === EXPIRED.word;
    const by =
      !hasWord &&
      (decidedBy.startsWith(BY_RULE)
        ? capital(byRuleText(decidedBy))
        : `${state.word} ${describeChannel(decidedBy)}`);
    const at = asked.decidedAt !== undefined && html`, ${timeOf(asked.decidedAt)}`;
    return html`<li>
      <span class="past"
        >${icon(state.icon, state.tone)}${!isQuestion(asked) && isOwner ? html`<a class="link" href="${callPath(asked.runId, asked.id)}">${headline(asked)}</a>` : headline(asked)}<small
          class="anywhere"
          >${by || state.word}${at}${answer && `: ${oneLine(displayText(answer), MAX.answer)}`}${again}</small
        ></span
      >
    </li>`;
  });
  return html`<section class="past-box">
    <h2>Decided<span class="count">${past.length}</span></h2>
    <ul>
      ${items}
    </ul>
  </section>`;
}

export const requestsIn = (view: RunView, why: ReadonlyMap<string, string>): Request[] =>
  waitingIn(view).map((asked) => ({ asked, why: why.get(asked.id) }));
