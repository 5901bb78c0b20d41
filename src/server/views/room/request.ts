/** Pieces of request cards, whatever the kind. */
import { displayText, oneLine } from "../../../core/text.ts";
import { type RunRequest, agentName } from "../../../runs/run.ts";
import { type ApprovalViewer, isShared, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };

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
  return last === undefined ? "Main agent" : oneLine(displayText(last.task ?? agentName(last)), limit);
};

/** The viewer of a request, and what their last form lacked. */
export interface RequestLook {
  viewer: ApprovalViewer;
  now: number;
  complaint?: Complaint | undefined;
  /** Shown among the requests of all runs. */
  isOfAll: boolean;
}

/** The parts of a card that depend on the kind of its request. */
export interface CardParts {
  /** Its kind, in a word or two. */
  tag: string;
  title: Html;
  /** Below the title, in full. */
  more?: Html | undefined;
  content: Html;
}

/** The form of any request. Only a pressed button answers. `proof`: it stands below the whole call. */
export const requestForm = (
  { id, runId }: Pick<RunRequest, "id" | "runId">,
  { isOfAll, complaint, proof }: Pick<RequestLook, "isOfAll" | "complaint"> & { proof?: string | undefined },
  look: string,
  fields: Html,
): Html =>
  html`<form class="${look}" method="post" action="${runPath(runId)}/reply" autocomplete="off">
    <input type="hidden" name="request" value="${id}" />
    <input type="hidden" name="back" value="${isOfAll ? "all" : "run"}" />
    ${proof && html`<input type="hidden" name="whole" value="${proof}" />`} ${NO_DEFAULT}
    ${complaint && html`<p class="notice red" role="alert">${icon("fail", "red")}${complaint.problem}</p>`}
    ${fields}
  </form>`;

/** Replaces the form for viewers without the right to send one. */
export function onlyLooks({ session, openCommand }: ApprovalViewer): Html {
  const elsewhere = openCommand && html`, or run <code>${openCommand}</code> in a terminal`;
  // A host could press anything in a page that it frames, so the app has no buttons.
  const kind =
    session === "app" ? "app" : isShared(session) ? "shared" : session.isLoggedIn ? "token" : "link";
  // A link came from a tool result, and the model that read it could have opened it.
  return html`<p class="ask-foot only-looks note">
    ${icon("eye")}<span>${words.whyOnlyLooks[kind]}${elsewhere}.</span>
  </p>`;
}

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
