/** The head of every screen of a run: its task, its state, and its tabs. */
import { costGap, grouped, tokens } from "../cost-words.ts";
import { capital, displayText, oneLine } from "../../../core/text.ts";
import { type Run, type RunView, isFinal, nameOf, waitingIn } from "../../../runs/run.ts";
import { counted } from "../../../tools/format.ts";
import type { Viewer } from "../../contracts/viewer.ts";
import {
  changesPath,
  filesPath,
  isShared,
  mayDecide,
  mayRun,
  runPath,
  schedulePath,
} from "../../contracts/viewer.ts";
import { type Html, html, textArea, icon } from "../html.ts";
import { limitWords } from "../limit-words.ts";
import { costOf, dayAndTime, elapsed } from "./figures.ts";
import { headlineText } from "./card.ts";
import { current } from "./pieces.ts";
import { renderRunDialogs, renderRunMenu } from "./run-menu.ts";
import type { Sharing } from "./share.ts";
import { ASKING, agentsText, pill, standingOf } from "./states.ts";
import { requestsNeed } from "./waiting.ts";

export const TABS = ["work", "review", "answer"] as const;
export type Tab = (typeof TABS)[number];

export interface HeadLook {
  tab: Tab | "files";
  now: number;
  folder?: string | undefined;
  /** Absent: no links to the run can be made here. */
  sharing?: Sharing | undefined;
}

export function renderRunHead(view: RunView, viewer: Viewer, { tab, now, folder, sharing }: HeadLook): Html {
  const { run } = view;
  const waiting = waitingIn(view).length;
  return html`<section class="run-head" aria-label="This run">
      <div class="wrap">
        <p class="crumbs">
          ${isAll(viewer) && html`<a href="/">Runs</a>${icon("chev")}`}${folder !== undefined && html`<span class="cut">${oneLine(folder, 60)}</span>${icon("chev")}`}<code
            >${run.id}</code
          >
        </p>
        <div class="run-title">
          <h1 title="${oneLine(nameOf(run), 2000)}">${oneLine(nameOf(run), 300)}</h1>
          ${actions(view, viewer, sharing !== undefined)}
        </div>
        ${facts(view, viewer, now)} ${viewer !== "app" && tabs(view, tab, waiting)}
      </div>
    </section>
    ${viewer !== "app" && tab !== "review" && waiting > 0 && reviewBar(view, viewer)}
    ${tab !== "review" && countUnapplied(run) > 0 && unappliedBar(run, viewer)}
    ${mayRun(viewer) && html`${thumbMenu(view)} ${renderRunDialogs(view, sharing)}`}`;
}

function facts(view: RunView, viewer: Viewer, now: number): Html {
  const { run, models, place } = view;
  const { states, agents } = standingOf(view);
  const { inputTokens, outputTokens, cachedInputTokens } = run.usage;
  const cost = costOf(models);
  const used = models.find(({ role }) => role === "main")?.model ?? run.model ?? "";
  const limits = limitWords(run.limits ?? {});
  const pills = states.map((state) =>
    pill(isShared(viewer) && state === ASKING ? { ...ASKING, word: "Waiting for the owner" } : state),
  );
  const { schedule } = run;
  const by = schedule && oneLine(`schedule ${displayText(schedule.name)}`, 60);
  // Those who see schedules get a link to it.
  const starter =
    schedule && mayRun(viewer) && isAll(viewer)
      ? html`<a class="link" href="${schedulePath(schedule.id)}">${by}</a>`
      : by;
  const tokensTip = `${grouped(inputTokens)} in, of which ${grouped(cachedInputTokens)} cached; ${grouped(outputTokens)} out`;
  return html`<dl class="facts">
    <div>
      <dt class="hide">State</dt>
      <dd>${pills}</dd>
    </div>
    ${place && fact("Queued", `${place.number} of ${place.waiting}`)}
    ${fact("Time", elapsed(run.createdAt, run.endedAt, now))}
    ${fact("Tokens", tokens(inputTokens + outputTokens), "", tokensTip)}
    ${cost && fact("Cost", cost, "", costGap(models))}
    ${agents.all > 0 && fact("Agents", agentsText(agents), "opt")}
    ${run.endedAt !== undefined && fact("Ended", dayAndTime(run.endedAt), "opt")}
    ${used !== "" && fact("Model", html`<span class="tag">${oneLine(used, 60)}</span>`, "opt")}
    ${starter && fact("Started by", starter)}
    ${run.changes === "propose" && fact("Changes", "proposed for review", "opt")}
    ${limits.length > 0 && fact("Limit", limits.join(", "), "opt")}
  </dl>`;
}

/** `look`: how it is shown; `opt` where there is room. */
const fact = (name: string, value: Html | string, look = "", tip = ""): Html =>
  html`<div class="${look}" ${tip && html`title="${tip}"`}>
    <dt>${name}</dt>
    <dd>${value}</dd>
  </div>`;

const isAll = (viewer: Viewer): boolean => viewer !== "app" && viewer.run === undefined;

function tabs(view: RunView, shown: Tab | "files", waiting: number): Html {
  const { run } = view;
  const unapplied = countUnapplied(run);
  // Counts what waits, else the files that were proposed and not applied.
  const count =
    waiting > 0
      ? html`<span class="count amber">${waiting}</span>`
      : unapplied > 0 && html`<span class="count">${unapplied}</span>`;
  const items = TABS.filter((tab) => tab !== "answer" || isFinal(run.status)).map((tab) => {
    const name = tab === "answer" && run.status !== "completed" ? "Outcome" : capital(tab);
    const own = tab === "review" && count;
    return html`<a href="${runPath(run.id)}/${tab}" ${current(tab === shown, "page")}>${name}${own}</a>`;
  });
  const changed = view.filesChanged.length;
  const files = changed === 1 ? changesPath(run.id, view.filesChanged[0] ?? "") : filesPath(run.id);
  return html`<nav class="tabs" aria-label="Run">
    ${items}<a href="${files}" ${current(shown === "files", "page")}
      >Files${changed > 0 && html`<span class="count">${changed}</span>`}</a
    >
  </nav>`;
}

/** Number of files that a run left which has ended. */
const countUnapplied = ({ status, unapplied = 0 }: Run): number => (isFinal(status) ? unapplied : 0);

function actions(view: RunView, viewer: Viewer, canShare: boolean): Html | undefined {
  if (viewer === "app") return undefined;
  const { run } = view;
  const atWork = html`<a class="btn" href="${runPath(run.id)}/work#tell" data-tell
      >${icon("say")}Message<kbd aria-hidden="true">M</kbd></a
    >
    ${cancelling(run)}`;
  return html`<div class="actions">
    ${mayRun(viewer) && !isFinal(run.status) && atWork} ${renderRunMenu(view, viewer, canShare)}
  </div>`;
}

/** Asks once more. */
const cancelling = ({ id }: RunView["run"]): Html =>
  html`<details class="confirm">
    <summary class="btn">Cancel run</summary>
    <form method="post" action="${runPath(id)}/cancel" class="panel">
      <p>Finished work is kept. You can continue the conversation later.</p>
      <button class="btn no">Cancel the run</button>
    </form>
  </details>`;

/** Message and cancel at the bottom of a phone. */
function thumbMenu({ run }: RunView): Html {
  const sheet = isFinal(run.status)
    ? html`<a class="btn ink" href="${runPath(run.id)}/answer#more">${icon("say")}Continue with a message</a>`
    : html`<form method="post" action="${runPath(run.id)}/tell" autocomplete="off">
          <label class="label" for="thumb-text">Message the agent (read at its next step)</label>
          ${textArea(html`id="thumb-text" name="text" class="field" rows="2" maxlength="20000" required`, "")}
          <button class="btn ink">Send</button>
        </form>
        ${cancelling(run)}`;
  return html`<details class="thumb">
    <summary>${icon("dots")}This run</summary>
    <div class="sheet" role="region" aria-label="Message and cancel">${sheet}</div>
  </details>`;
}

function reviewBar(view: RunView, viewer: Viewer): Html {
  const pending = waitingIn(view);
  const named = pending.slice(0, 2).map((one) => oneLine(headlineText(one), 80));
  const more = pending.length - named.length;
  const rest = more > 0 ? ` and ${more} more` : "";
  const [waits, word] = isShared(viewer)
    ? [requestsNeed(pending.length, "the owner’s"), "Show"]
    : [requestsNeed(pending.length), "Review"];
  return html`<aside class="review-bar" aria-label="Open requests">
    <div class="wrap">
      ${icon("ask", "amber")}
      <strong>${waits}</strong>
      <span class="dim cut desk">${named.join(", ")}${rest}</span>
      <a class="btn ink" href="${runPath(view.run.id)}/review">${word}<kbd aria-hidden="true">R</kbd></a>
    </div>
  </aside>`;
}

function unappliedBar({ id, unapplied = 0 }: Run, viewer: Viewer): Html {
  const isOne = unapplied === 1;
  const link = html`<a class="btn" href="${runPath(id)}/review"
    >${mayDecide(viewer) ? "Review" : "Show"}<kbd aria-hidden="true">R</kbd></a
  >`;
  return html`<aside class="review-bar calm" aria-label="Proposed change">
    <div class="wrap">
      ${icon("diff", "faint")}
      <strong>${counted(unapplied, "file")} ${isOne ? "is" : "are"} proposed and not applied</strong>
      <span class="dim cut desk">${isOne ? "It is" : "They are"} in a copy of the folder.</span>
      ${viewer !== "app" && !isShared(viewer) && link}
    </div>
  </aside>`;
}
