/** The screen of a run at work: its plan, its agents over time, what one of them does, and what happened. */
import { grouped, tokens, totalCost } from "../cost-words.ts";
import { defined } from "../../../core/unknown.ts";
import { firstSentence, oneLine } from "../../../core/text.ts";
import { type RunEvent, activityOf, stepOf } from "../../../runs/events.ts";
import { type RunView, type SubagentView, isFinal } from "../../../runs/run.ts";
import { counted } from "../../../tools/format.ts";
import { changesPath, mayRun, runPath, type Viewer } from "../../contracts/viewer.ts";
import { type Html, html, textArea, type IconName, type Tone, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { elapsed, money, roundedParts, timeOf } from "./figures.ts";
import { goalRail } from "./goal.ts";
import { choice, cutPath, listSection, mainOf, share } from "./pieces.ts";
import { stateIcon } from "./states.ts";
import { MIN_FOLDED, callLine, inRuns, shownLine, stepRows } from "./steps.ts";
import { type AgentRow, agentRows, renderAgents } from "./timeline.ts";

const MAX = { line: 300, todos: 200, files: 200 };

export interface WorkScreen {
  view: RunView;
  viewer: Viewer;
  now: number;
  /** Key of the agent whose steps are shown; empty: the main one. */
  selected: string;
  /** Newest first. */
  steps: readonly RunEvent[];
  activity: readonly RunEvent[];
  /** True if `activity` has all events, and not just the key ones. */
  isAll: boolean;
  /** Shows the agents as a table, and not over time. */
  isList?: boolean;
  /** Sequence number of the oldest in `activity`, if there are older events. */
  older: number | undefined;
}

export function renderWork(screen: WorkScreen): Html {
  const { view, viewer, now, selected, isList = false } = screen;
  const rows = agentRows(view);
  const row = rows.find(({ key }) => key === selected) ?? rows[0];
  const own = row?.key ?? "";
  const address = (key: string, isTable = isList): string => {
    const query = new URLSearchParams(
      defined({ agent: key || undefined, view: isTable ? "list" : undefined }),
    );
    return `${runPath(view.run.id)}/work${query.size === 0 ? "" : `?${query.toString()}`}`;
  };
  const isApp = viewer === "app";
  const link = isApp ? () => undefined : address;
  const looks =
    !isApp &&
    html`<span class="seg"
      >${choice("Time", address(own, false), !isList)}${choice("List", address(own, true), isList)}</span
    >`;
  const timeline = rows.length > 1 && renderAgents(view, rows, { now, selected: own, link, looks, isList });
  const content = html`<aside class="rail" aria-label="Plan and summary">
      ${plan(view)} ${goalRail(view)} ${files(view, viewer)} ${grants(view)} ${cost(view)}
    </aside>
    <div class="main">
      ${timeline}
      <div class="split">${row && agentPanel(row, screen)} ${activityPanel(screen)}</div>
    </div>`;
  return mainOf(viewer, "work", content);
}

const PLAN: Readonly<Record<string, { name: string; icon: IconName; tone: Tone; word: string }>> = {
  completed: { name: "done", icon: "done", tone: "green", word: "Done" },
  in_progress: { name: "now", icon: "now", tone: "blue", word: "In progress" },
};

function plan({ run }: RunView): Html {
  const done = run.todos.filter(({ status }) => status === "completed").length;
  const items = run.todos.slice(0, MAX.todos).map(({ content, status }) => {
    const look = PLAN[status] ?? ({ name: "next", icon: "todo", tone: "faint", word: "To do" } as const);
    return html`<li class="${look.name}">
      ${icon(look.icon, look.tone)}<span
        ><span class="hide">${look.word}: </span>${oneLine(content, MAX.line)}</span
      >
    </li>`;
  });
  return html`<section>
    <h2>Plan${items.length > 0 && html`<span class="end">${done} of ${run.todos.length}</span>`}</h2>
    ${
      items.length === 0
        ? html`<p class="note">No plan${isFinal(run.status) ? "" : " yet"}.</p>`
        : html`<ol class="plan">
            ${items}
          </ol>`
    }
  </section>`;
}

function files({ run, filesChanged }: RunView, viewer: Viewer): Html | undefined {
  if (filesChanged.length === 0) return undefined;
  const items = filesChanged.slice(0, MAX.files).map((path) => {
    const name = html`<span class="cut" title="${path}">${cutPath(path)}</span>`;
    return html`<li>
      ${icon("file", "faint")}${viewer === "app" ? name : html`<a class="cut" href="${changesPath(run.id, path)}">${name}</a>`}
    </li>`;
  });
  return listSection("Files changed", filesChanged.length, items, { look: "later" });
}

function grants({ grants: all }: RunView): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.slice(0, MAX.todos).map(
    ({ text, grantedAt }) =>
      html`<li>
        <span
          >${oneLine(text, MAX.line)}<br /><span class="note"
            >since ${timeOf(grantedAt)}, until the run ends</span
          ></span
        >
      </li>`,
  );
  return listSection("Approved for this run", all.length, items, { look: "later" });
}

function cost({ models }: RunView): Html | undefined {
  const total = totalCost(models);
  if (total === undefined || total === 0) return undefined;
  const roles = Object.entries(words.roles).flatMap(([role, name]) => {
    const own = totalCost(models.filter((used) => used.role === role)) ?? 0;
    return own > 0 ? [{ name, own }] : [];
  });
  const costs = roundedParts(roles.map(({ own }) => own));
  const items = roles.map(({ name }, at) => share(name, costs[at] ?? 0, total));
  return listSection("Cost", money(total), items, { list: "cost", look: "later" });
}

function agentPanel(row: AgentRow, screen: WorkScreen): Html {
  const { view, steps, now } = screen;
  const { work, subagent, state, name, type } = row;
  const facts = [
    type !== undefined && html`<span>${type}</span>`,
    work.startedAt !== undefined && elapsed(work.startedAt, work.endedAt, now),
    html`<span>${counted(work.toolCalls, "tool call")}</span>`,
    html`<span>${tokens(work.usage.inputTokens + work.usage.outputTokens)} tokens</span>`,
    work.costUsd !== undefined && work.costUsd > 0 && html`<span>${money(row.cost, work.costUsd)}</span>`,
    work.model !== "" && html`<span>${oneLine(work.model, 60)}</span>`,
  ];
  const told = subagent === undefined ? view.run.task : subagent.description;
  const writes = subagent === undefined && !isFinal(view.run.status) && screen.viewer !== "app";
  const canSteer = subagent?.background === true && subagent.status === "working" && mayRun(screen.viewer);
  return html`<section class="panel" id="agent" aria-labelledby="ag-h">
    <div class="panel-head">
      ${stateIcon(state)}
      <h2 id="ag-h" class="cut">${name}</h2>
      ${canSteer && steering(view, subagent)}
    </div>
    <div class="agent-told">
      <details class="told">
        <summary>${firstSentence(told, 400)}</summary>
        <p>${told}</p>
      </details>
      <div class="agent-facts">${facts}</div>
    </div>
    <ol class="steps" aria-label="Steps, newest first">
      ${writes && html`<li class="say" id="writing" hidden>${icon("say", "blue")}<span class="plain"></span></li>`}
      ${stepRows(screen)}
    </ol>
    ${steps.length === 0 && html`<p class="note pad">No steps yet.</p>`}
  </section>`;
}

/** Message and cancel for one subagent in the background, whose run ends its path. */
function steering({ run }: RunView, { agent }: SubagentView): Html {
  const id = agent.at(-1)?.callId ?? "";
  const field = html`<input type="hidden" name="agent" value="${id}" />`;
  return html`<div class="end steer">
    <details class="confirm" id="tell-${id}" data-kept>
      <summary class="btn">${icon("say")}Message</summary>
      <form method="post" action="${runPath(run.id)}/tell" class="panel" autocomplete="off">
        ${field}
        <label class="label" for="tell-text-${id}">Message this agent (read at its next step)</label>
        ${textArea(html`id="tell-text-${id}" name="text" class="field" rows="3" maxlength="20000" required`, "")}
        <button class="btn ink">Send</button>
      </form>
    </details>
    <details class="confirm" id="cancel-${id}" data-kept>
      <summary class="btn">Cancel</summary>
      <form method="post" action="${runPath(run.id)}/cancel" class="panel">
        ${field}
        <p>Only this agent stops. Its work is kept, and the main agent is notified.</p>
        <button class="btn no">Cancel this agent</button>
      </form>
    </details>
  </div>`;
}

/** An event with the name of its agent, which is its task. */
function told(event: RunEvent, viewer: Viewer): Html | string | undefined {
  const name = event.agent.at(-1)?.task;
  const line = event.kind === "tool_started" ? callLine(event.data, true) : stepOf(event);
  if (line === undefined) return activityOf(event);
  const shown = typeof line === "string" ? shownLine(event, line, viewer) : line;
  return name === undefined ? shown : html`<b>${oneLine(name, 80)}:</b> ${shown}`;
}

/** Agents that were started one after the other are one row. */
function feedRows(events: readonly RunEvent[], viewer: Viewer): Html | readonly Html[] {
  const lines = events.flatMap((event) => {
    const line = told(event, viewer);
    return line === undefined ? [] : [{ ...event, text: html`<p>${line}</p>` }];
  });
  const [newest] = lines;
  if (newest === undefined || lines.length < MIN_FOLDED)
    return lines.map(({ seq, time, text }) => html`<li id="event-${seq}">${timeOf(time)} ${text}</li>`);
  const id = `events-${events.at(-1)?.seq}`;
  return html`<li id="${id}">
    ${timeOf(newest.time)}
    <details id="${id}-fold" data-kept>
      <summary>${lines.length} subagents started</summary>
      ${lines.map(({ text }) => text)}
    </details>
  </li>`;
}

function activityPanel({ view, viewer, activity, isAll, older }: WorkScreen): Html {
  const rows = inRuns(activity, ({ kind }) => (kind === "subagent_started" ? kind : undefined)).map(
    (events) => feedRows(events, viewer),
  );
  const { run } = view;
  const base = `${runPath(run.id)}/work`;
  const tell = html`<form class="tell" method="post" action="${runPath(run.id)}/tell" autocomplete="off">
    <label class="hide" for="tell">Message to the agent</label>
    <input
      id="tell"
      name="text"
      class="field"
      maxlength="20000"
      required
      placeholder="Message the agent (read at its next step)"
    />
    <button class="btn icon" aria-label="Send">${icon("up")}</button>
  </form>`;
  return html`<section class="panel" aria-labelledby="act-h">
    <div class="panel-head">
      <h2 id="act-h">Activity</h2>
      ${viewer !== "app" && html`<span class="end seg">${choice("Key", base, !isAll)}${choice(`All ${grouped(run.lastSeq)}`, `${base}?events=all`, isAll)}</span>`}
    </div>
    <ol class="feed" aria-label="Activity, newest first">
      ${rows}
    </ol>
    ${older !== undefined && viewer !== "app" && html`<p class="more"><a class="link" href="${base}?events=${isAll ? "all" : "key"}&amp;before=${older}">Show older</a></p>`}
    ${mayRun(viewer) && !isFinal(run.status) && tell}
  </section>`;
}
