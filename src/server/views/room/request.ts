/** Pieces of requests: approvals and other questions stand in one queue and look alike. */
import { displayName, oneLine } from "../../../core/text.ts";
import { type RunRequest, agentName } from "../../../runs/run.ts";
import { type ApprovalViewer, isShared, runPath } from "../../contracts/viewer.ts";
import { type Html, html } from "../html.ts";
import { timeOf } from "./figures.ts";
import { type IconName, icon } from "./icons.ts";

/** A waiting request, with the agent's text before it. */
export interface Request {
  asked: RunRequest;
  why: string | undefined;
  /** Task of the run, if requests of several runs are shown. */
  task?: string | undefined;
}

/** A refused form; it is shown again with the typed text. */
export interface Complaint {
  /** Id of the approval or question. */
  requestId: string;
  problem: string;
  form: URLSearchParams;
  /** Problems by the name of the field. */
  fields?: ReadonlyMap<string, string>;
  /** The answer reaches the agent all the same, as a message. */
  isTold?: boolean;
  /** True if it was carried out: the text reports the result. */
  isDone?: boolean;
}

/** Names a request in the page's addresses. */
export const anchorOf = ({ id }: Pick<RunRequest, "id">): string =>
  `a-${Buffer.from(id).toString("base64url")}`;

export const who = ({ agent }: Pick<RunRequest, "agent">, limit = 80): string => {
  const last = agent.at(-1);
  return last === undefined ? "Main agent" : displayName(oneLine(last.task ?? agentName(last), limit));
};

/** Appearance of a request among those shown, for its viewer. */
export interface RequestLook {
  viewer: ApprovalViewer;
  place: { index: number; count: number };
  complaint?: Complaint | undefined;
}

interface Head {
  sign: IconName;
  /** Its kind, in a word or two. */
  tag: string;
  title: Html;
  /** Below the title, in full. */
  more?: Html | undefined;
}

/** Names who asks, what and why, above the content of one request. */
export function requestPanel(
  { asked, why, task }: Request,
  { place: { index, count } }: RequestLook,
  { sign, tag, title, more }: Head,
  content: Html,
): Html {
  const anchor = anchorOf(asked);
  return html`<article
    class="panel ask"
    id="${anchor}"
    data-approval="${asked.id}"
    aria-labelledby="${anchor}-h"
    tabindex="-1"
  >
    <div class="ask-head">
      <div class="ask-kicker">
        ${icon(sign, "amber")}<span class="cut">${who(asked)}</span><span class="tag">${tag}</span
        ><span class="end num"
          >${index + 1} of ${count}<span class="desk"> · asked ${timeOf(asked.requestedAt)}</span></span
        >
      </div>
      <h2 id="${anchor}-h">${title}</h2>
      ${more}
      ${task !== undefined && html`<p class="note">In <a class="link" href="${runPath(asked.runId)}">${oneLine(task, 160)}</a></p>`}
      ${why !== undefined && html`<blockquote class="ask-why" aria-label="What the agent said before">${oneLine(why, 600)}</blockquote>`}
    </div>
    ${content}
  </article>`;
}

/** Replaces the form for viewers who may not send one. */
export function onlyLooks({ session, openCommand }: ApprovalViewer): Html {
  const elsewhere = openCommand && html`, or run <code>${openCommand}</code> in a terminal`;
  // A host could press anything in a page that it frames, so the app has no buttons.
  const kind =
    session === "app" ? "app" : isShared(session) ? "shared" : session.isLoggedIn ? "token" : "link";
  return html`<p class="ask-foot only-looks note">
    ${icon("eye")}<span>${WHY_NOT[kind]}${elsewhere}.</span>
  </p>`;
}

const WHY_NOT = {
  app: "Nothing is decided in this view. Answer the form of your client",
  shared: "This page was shared with you to read. Only the owner of the run decides",
  token: "Your token only looks. To decide, log in with one that has the scope approve",
  /** It came from a tool result, and the model that read it could have opened it. */
  link: "This page was opened from a link that the calling model knows, so it only shows the run. To decide, use a client that shows forms",
};

/** The return key in a field presses a form's first button: this one, which does nothing. */
export const NO_DEFAULT = html`<button disabled hidden></button>`;

/** A section that the person opens and closes, one at a time. Updates of the page do not change its state. */
export const fold = (
  name: string,
  { id }: Pick<RunRequest, "id">,
  isOpen: boolean,
  title: Html | string,
  body: Html,
): Html =>
  html`<details class="fold" name="decide ${id}" data-fold="${name}" ${isOpen && html` open`}>
    <summary class="btn">${title}</summary>
    <div class="more-form">${body}</div>
  </details>`;
