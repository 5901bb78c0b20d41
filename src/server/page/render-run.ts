import { isoTime } from "../../core/clock.ts";
import { cutMiddle, firstSentence, oneLine } from "../../core/text.ts";
import type { ModelUsage, RunEvent, RunView, SubagentView } from "../../runs/run.ts";
import { activityOf, costText } from "../../runs/view.ts";
import { agentLabel } from "../approval-form.ts";
import { type Html, html } from "./html.ts";
import { type Viewer, changesPath } from "./page-sessions.ts";
import { clockTime, renderTime } from "./render-time.ts";

const MAX = { answer: 100_000, line: 300, tip: 1000, agents: 300, files: 500, todos: 200 };

/** How many events of the journal the page shows, newest first. */
export const SHOWN_EVENTS = 100;

const STATUS: Record<RunView["run"]["status"], string> = {
  working: "Working",
  input_required: "Waits for a decision",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** The part of the page that is replaced as a whole whenever the run changes. */
export function renderRun(view: RunView, events: readonly RunEvent[], viewer: Viewer): Html {
  return html`${summary(view)} ${outcome(view)}
    <div class="columns">
      <div>${grants(view)} ${todos(view)} ${agents(view)}</div>
      <div>${files(view, viewer)} ${journal(events)}</div>
    </div>`;
}

function summary({ run, activity, models }: RunView): Html {
  const { inputTokens, outputTokens, cachedInputTokens } = run.usage;
  const tokens = `${count(inputTokens)} in (${count(cachedInputTokens)} cached), ${count(outputTokens)} out`;
  return html`<div class="summary">
    <p role="status">
      <strong class="badge ${run.status}">${STATUS[run.status]}</strong>
      <span>${oneLine(activity, MAX.line)}</span>
    </p>
    <dl>
      <div>
        <dt>Started</dt>
        <dd>${renderTime(run.createdAt)}</dd>
      </div>
      <div>
        <dt>${run.endedAt === undefined ? "Last change" : "Ended"}</dt>
        <dd>${renderTime(run.endedAt ?? run.updatedAt)}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>${tokens}</dd>
      </div>
      ${cost(models)}
    </dl>
  </div>`;
}

/** Shown where `limits.prices` names what models cost. */
function cost(models: readonly ModelUsage[]): Html | undefined {
  const text = costText(models);
  if (text === undefined) return undefined;
  const byModel = models.map((used) => `${used.model}: ${costText([used]) ?? "unknown"}`).join(", ");
  return html`<div title="${byModel}">
    <dt>Cost</dt>
    <dd>${text}</dd>
  </div>`;
}

function outcome({ run }: RunView): Html | undefined {
  if (run.failure !== undefined) {
    return html`<section>
      <h2>Why it failed</h2>
      <pre>${run.failure.reason}: ${run.failure.message}</pre>
    </section>`;
  }
  if (run.cancelReason !== undefined) {
    return html`<section>
      <h2>Why it was cancelled</h2>
      <pre>${run.cancelReason}</pre>
    </section>`;
  }
  if (run.answer === undefined || run.status !== "completed") return undefined;
  return html`<section>
    <h2>Answer</h2>
    <pre class="answer">${cutMiddle(run.answer, MAX.answer)}</pre>
  </section>`;
}

/** What a person approved for the whole run; nothing to show where there is none. */
function grants({ grants: all }: RunView): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all
    .slice(0, MAX.todos)
    .map(
      ({ text, grantedBy, grantedAt }) =>
        html`<li>${oneLine(text, MAX.line)} <small>${grantedBy}, ${renderTime(grantedAt)}</small></li>`,
    );
  return section(
    "Approved for this run",
    all.length,
    html`<ul>
      ${items}
    </ul>`,
  );
}

function todos({ run }: RunView): Html {
  const items = run.todos.slice(0, MAX.todos).map(({ content, status }) => {
    const label = status.replace("_", " ");
    return html`<li class="${status}">
      <span class="mark" aria-label="${label}"></span>${oneLine(content, MAX.line)}
    </li>`;
  });
  return section(
    "Todos",
    items.length,
    html`<ul class="todos">
      ${items}
    </ul>`,
  );
}

/** Agents nest by their path; each stands before those it started. */
function agents({ subagents }: RunView): Html {
  const shown = subagents.slice(0, MAX.agents);
  return section(
    "Agents",
    shown.length,
    html`<ul class="tree">
      ${branches(shown, "", 1)}
    </ul>`,
  );
}

const MAX_DEPTH = 16;

function branches(all: readonly SubagentView[], parent: string, depth: number): Html[] {
  return all
    .filter(({ agent }) => agent.length === depth && keyOf(agent.slice(0, -1)) === parent)
    .map((subagent) => {
      const inner = depth < MAX_DEPTH ? branches(all, keyOf(subagent.agent), depth + 1) : [];
      const calls = `${subagent.toolCalls} ${subagent.toolCalls === 1 ? "call" : "calls"}`;
      return html`<li>
        <p>
          <span class="mark ${subagent.status}" aria-label="${subagent.status}"></span>
          <strong>${oneLine(subagent.name, 64)}</strong>
          <span title="${oneLine(subagent.description, MAX.tip)}"
            >${firstSentence(subagent.description, MAX.line)}</span
          >
          <small>${calls}</small>
        </p>
        <p class="step">${oneLine(subagent.step, MAX.line)}</p>
        ${
          inner.length === 0
            ? undefined
            : html`<ul>
                ${inner}
              </ul>`
        }
      </li>`;
    });
}

const keyOf = (agent: SubagentView["agent"]): string =>
  agent.length === 0 ? "" : JSON.stringify(agent.map(({ callId }) => callId));

function files({ run, filesChanged }: RunView, viewer: Viewer): Html {
  const items = filesChanged.slice(0, MAX.files).map((path) => {
    const name = html`<code>${path}</code>`;
    return html`<li>
      ${viewer === "app" ? name : html`<a href="${changesPath(run.id, path)}">${name}</a>`}
    </li>`;
  });
  return section(
    "Files changed",
    filesChanged.length,
    html`<ul class="files">
      ${items}
    </ul>`,
  );
}

function journal(events: readonly RunEvent[]): Html {
  const rows = events.flatMap((event) => {
    const line = activityOf(event);
    return line === undefined ? [] : [eventRow(event, line)];
  });
  const list = html`<ol class="events" tabindex="0" aria-label="Events, newest first">
    ${rows.toReversed()}
  </ol>`;
  return section("Events", rows.length, list);
}

function eventRow(event: RunEvent, line: string): Html {
  const label = agentLabel(event.agent);
  return html`<li>
    <time datetime="${isoTime(event.time)}" title="${label}">${clockTime(event.time)}</time> ${line}
  </li>`;
}

function section(title: string, size: number, body: Html): Html {
  const content = size === 0 ? html`<p class="none">None so far.</p>` : body;
  const total = size === 0 ? undefined : html` <small>${size}</small>`;
  return html`<section>
    <h2>${title}${total}</h2>
    ${content}
  </section>`;
}

const count = (value: number): string => value.toLocaleString("en-US");
