/** The outcome of a run without an answer: the cause in words, the kept parts, and ways to continue. */
import { oneLine } from "../../../core/text.ts";
import { type RunView, endedEarly } from "../../../runs/run.ts";
import { type Viewer, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import causes from "./causes.json" with { type: "json" };
import { timeOf } from "./figures.ts";
import { counted, standingOf } from "./states.ts";

const MAX = { text: 600, said: 4000 };

/** Begins the words of a provider in the message of a failure. */
const QUOTED = " The provider said: ";

/** Renders the end of a run, with a note if its answer is early. Returns undefined if it has a full answer. */
export function renderOutcome(view: RunView, viewer: Viewer): Html | undefined {
  const { status, failure, stopReason, cancelReason = "", endedAt, answer = "" } = view.run;
  if (failure === undefined && status !== "cancelled")
    return stopReason === undefined
      ? undefined
      : html`<p class="notice amber">
          The run ${endedEarly(stopReason)}. This is the work done until then.
        </p>`;
  const [advice = "", ...quoted] = failure?.message.split(QUOTED) ?? [];
  const reason = oneLine(cancelReason, MAX.text);
  const at = endedAt !== undefined && html` at ${timeOf(endedAt)}`;
  const [again, more] = failure
    ? ["Try again", "Continue with a message"]
    : ["Start again", "Continue from here"];
  return html`<section class="banner${failure === undefined ? " calm" : ""}" ${failure && html`role="alert"`}>
    ${icon(failure ? "fail" : "stop")}
    <h2>${failure ? causes[failure.reason] : html`The run was cancelled${at}`}</h2>
    <p>${failure ? oneLine(advice, MAX.text) : `${reason && `“${reason}”. `}Nothing runs any more.`}</p>
    ${kept(view)} ${mayRun(viewer) && actions(view, again, more)}
    ${quoted.length > 0 && said("What the provider said", quoted.join(QUOTED))}
    ${answer && said("The agent’s last message, unfinished", answer)}
  </section>`;
}

/** Sums up the work before the end. All of it is kept with the conversation. */
function kept(view: RunView): Html {
  const { run, mainAgent, subagents, filesChanged } = view;
  const { all, done } = standingOf(view).agents;
  const steps = subagents.reduce((sum, one) => sum + one.toolCalls, mainAgent.toolCalls);
  const planned = run.todos.filter(({ status }) => status === "completed").length;
  const facts = [
    ...(run.todos.length > 0 ? [`${planned} of ${run.todos.length} steps of the plan`] : []),
    ...(all > 0 ? [`${done} of ${all} agents finished`] : []),
    ...counted({
      [filesChanged.length === 1 ? "file changed" : "files changed"]: filesChanged.length,
      [steps === 1 ? "tool call" : "tool calls"]: steps,
    }),
    "the conversation",
  ];
  return html`<p class="kept"><strong>What is kept:</strong> ${facts.join(", ")}.</p>`;
}

const actions = ({ run }: RunView, again = "", more = ""): Html =>
  html`<div class="actions">
    <form method="post" action="${runPath(run.id)}/again">
      <button class="btn ink">${icon("again")}${again}</button>
    </form>
    <a class="btn" href="#more">${more}</a>
  </div>`;

const said = (title: string, text: string): Html =>
  html`<details class="said" data-fold="said">
    <summary>${title}</summary>
    <p class="plain">${oneLine(text, MAX.said)}</p>
  </details>`;
