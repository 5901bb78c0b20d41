/** The outcome of a run without an answer: the cause in words, the kept parts, and ways to continue. */
import { capital, oneLine } from "../../../core/text.ts";
import { type RunView, endedEarly } from "../../../runs/run.ts";
import { type Viewer, isShared, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import causes from "./causes.json" with { type: "json" };
import { timeOf } from "./figures.ts";
import { counted, standingOf } from "./states.ts";

const MAX = { text: 600, said: 4000 };

/** Begins the words of a provider in the message of a failure. */
const QUOTED = " The provider said: ";

/** Renders the end of a run, unless it has a full answer. `reached`: the limit that stopped it, to continue with. */
export function renderOutcome(view: RunView, viewer: Viewer, reached?: string): Html | undefined {
  const { status, failure, stopReason, cancelReason = "", endedAt, answer = "" } = view.run;
  const why = stopReason && capital(endedEarly(stopReason));
  if (failure === undefined && status !== "cancelled")
    return why === undefined
      ? why
      : html`<p class="notice amber stopped">
          <span>${reached === undefined ? why : `Stopped at the limit of ${reached}`}. Results so far:</span>
          ${reached && html`<a class="btn end" href="#more">Continue with another ${reached}</a>`}
        </p>`;
  const [advice = "", ...quoted] = failure?.message.split(QUOTED) ?? [];
  const [, own] = Object.entries(words.cancels).find(([known]) => known === cancelReason) ?? [];
  const reason =
    (isShared(viewer) ? undefined : own) ?? (cancelReason && `“${oneLine(cancelReason, MAX.text)}”.`);
  const at = endedAt !== undefined && html` at ${timeOf(endedAt)}`;
  const [again, more] = failure
    ? ["Try again", "Continue with a message"]
    : ["Start again", "Continue from here"];
  const isLasting = words.lasting.includes(failure?.reason ?? "");
  return html`<section class="banner${failure === undefined ? " calm" : ""}" ${failure && html`role="alert"`}>
    ${icon(failure ? "fail" : "stop")}
    <h2>${failure ? causes[failure.reason] : html`The run was cancelled${at}`}</h2>
    <p>${failure ? oneLine(advice, MAX.text) : `${reason} No agents are running.`.trimStart()}</p>
    ${kept(view)}
    ${
      mayRun(viewer) &&
      html`<div class="actions">
        <form method="post" action="${runPath(view.run.id)}/again">
          <button class="btn${isLasting ? "" : " ink"}">${icon("again")}${again}</button>
        </form>
        <a class="btn" href="#more">${more}</a>
      </div>`
    }
    ${quoted.length > 0 && said("Message from the provider", quoted.join(QUOTED))}
    ${answer && said("Last message (incomplete)", answer)}
  </section>`;
}

/** Sums up the work before the end. All of it is kept with the conversation. */
function kept(view: RunView): Html {
  const { run, mainAgent, subagents, filesChanged } = view;
  const { all, done } = standingOf(view).agents;
  const steps = subagents.reduce((sum, one) => sum + one.toolCalls, mainAgent.toolCalls);
  const planned = run.todos.filter(({ status }) => status === "completed").length;
  const facts = [
    "the conversation",
    ...counted({
      [steps === 1 ? "tool call" : "tool calls"]: steps,
      [filesChanged.length === 1 ? "file changed" : "files changed"]: filesChanged.length,
    }),
    ...(all > 0 ? [`${done} of ${all} agent reports`] : []),
    ...(run.todos.length > 0 ? [`${planned} of ${run.todos.length} plan steps done`] : []),
  ];
  return html`<p class="kept"><strong>Saved:</strong> ${facts.join(", ")}.</p>`;
}

const said = (title: string, text: string): Html =>
  html`<details class="said" data-fold="said">
    <summary>${title}</summary>
    <p class="plain">${oneLine(text, MAX.said)}</p>
  </details>`;
