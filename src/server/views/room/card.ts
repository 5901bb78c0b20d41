/** The card of a request, whatever its kind: who asks, what and why, and the form that answers. */
import { oneLine } from "../../../core/text.ts";
import { askedCall, objectText } from "../../../runs/asked-words.ts";
import type { RunRequest } from "../../../runs/run.ts";
import { runPath } from "../../contracts/viewer.ts";
import { type Html, html, type IconName, icon } from "../html.ts";
import { approvalCard, callHeadline } from "./approval.ts";
import { timeOf } from "./figures.ts";
import { questionCard, questionLine } from "./question.ts";
import { type Request, type RequestLook, anchorOf, who } from "./request.ts";

/** `place`: such as `1 of 3`. */
export function renderCard({ asked, why, task }: Request, place: string, look: RequestLook): Html {
  const { tag, title, more, content } =
    asked.kind === "approval" ? approvalCard(asked, look) : questionCard(asked, look);
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
        ${icon(requestIcon(asked), "amber")}<span class="cut">${who(asked)}</span
        ><span class="tag">${tag}</span
        ><span class="end num"
          >${place}<span class="desk"> · requested at ${timeOf(asked.requestedAt)}</span></span
        >
      </div>
      <h2 id="${anchor}-h">${title}</h2>
      ${more}
      ${task !== undefined && html`<p class="note">In <a class="link" href="${runPath(asked.runId)}">${oneLine(task, 160)}</a></p>`}
      ${why !== undefined && html`<blockquote class="ask-why"><span class="${asked.kind === "elicitation" ? "label" : "hide"}">What the agent said before</span>${oneLine(why, 600)}</blockquote>`}
    </div>
    ${content}
  </article>`;
}

/** Names a request on one line, such as `Run node --test test/`, or the words of a question. */
export const headline = (asked: RunRequest): Html =>
  asked.kind === "approval"
    ? callHeadline(asked)
    : html`<span class="headline"><span class="cut">${questionLine(asked)}</span></span>`;

export function headlineText(asked: RunRequest): string {
  if (asked.kind !== "approval") return questionLine(asked);
  const call = askedCall(asked);
  return `${call.act} ${objectText(call)}`;
}

export function requestIcon(asked: RunRequest): IconName {
  switch (asked.kind) {
    case "approval":
      return ({ diff: "diff", command: "term", arguments: "plug" } as const)[asked.preview.kind];
    case "review":
      return "diff";
    case "elicitation":
      return asked.mode === "url" ? "link" : "plug";
    default:
      return "help";
  }
}
