/** The first screen: what needs the person, a task to start, and all runs. */
import { isoTime } from "../../../core/clock.ts";
import { displayText, oneLine } from "../../../core/text.ts";
import type { PendingApproval, RunFilter, RunStatus, RunSummary } from "../../../runs/run.ts";
import { type PageSession, mayRun, runPath } from "../../page/sessions.ts";
import { type Html, html } from "../html.ts";
import { elapsed, grouped, money, timeOf, tokens } from "./figures.ts";
import { icon } from "./icons.ts";
import { choice, composeBox, mainOf, searchField } from "./pieces.ts";
import { anchorOf, headline, who } from "./review.ts";
import { QUEUED, RUN_STATES, approvalIcon, stateIcon } from "./states.ts";
import { decisionsWait, decisionsWaitForYou } from "./waiting.ts";

const MAX = { needs: 8, line: 300 };

/** A run in the list, with what it does now. */
export interface ListedRun extends RunSummary {
  /** While it is open. */
  activity: string | undefined;
  /** The name of the folder it works in, where that is known. */
  folder: string | undefined;
}

export interface HomeScreen {
  session: PageSession;
  counts: Readonly<Record<RunStatus, number>>;
  /** How many decisions wait. */
  waiting: number;
  /** The oldest of them. */
  pending: readonly PendingApproval[];
  runs: readonly ListedRun[];
  filter: RunFilter;
  /** Whether there are older ones than `runs`. */
  hasOlder: boolean;
  now: number;
  /** Facts of the server's settings that a new run gets: folder, model, limit. */
  settings: readonly string[];
}

export function renderHome(screen: HomeScreen): Html {
  const { counts, session, runs, hasOlder, filter, waiting } = screen;
  const content = html`<div class="home-head">
      <h1>Runs</h1>
      <span class="dim">${stand(counts, waiting)}</span>
    </div>
    ${needs(screen)} ${mayRun(session) ? startForm(screen) : undefined} ${tools(screen)}
    ${runs.length === 0 ? empty(screen) : list(screen)}
    ${hasOlder ? html`<p class="more"><a class="link" href="${address(filter, runs.at(-1)?.id)}">Show older runs</a></p>` : undefined}`;
  return mainOf(session, "home", content);
}

function stand({ working }: HomeScreen["counts"], waiting: number): string {
  return [`${working} at work`, ...(waiting > 0 ? [decisionsWaitForYou(waiting)] : [])].join(", ");
}

function needs({ waiting, pending, now }: HomeScreen): Html | undefined {
  if (pending.length === 0) return undefined;
  const items = pending.slice(0, MAX.needs).map((approval) => {
    return html`<li id="need-${anchorOf(approval)}">
      ${icon(approvalIcon(approval), "amber")}<span class="what cut">${headline(approval)}</span
      ><small class="cut">${who(approval)} · in “${oneLine(displayText(approval.task), 120)}”</small
      ><span class="num small dim">${elapsed(approval.requestedAt, undefined, now)}</span
      ><a class="btn small" data-row href="/review#${anchorOf(approval)}">Review</a>
    </li>`;
  });
  const rest = waiting - items.length;
  return html`<section class="panel needs" aria-labelledby="needs-h">
    <div class="panel-head">
      <h2 id="needs-h">Needs you</h2>
      <span class="count amber">${waiting}</span>
      <span class="end small dim desk">Only the agents that asked are waiting. The others go on.</span>
    </div>
    <ul class="needs-list">
      ${items}
    </ul>
    ${rest > 0 ? html`<p class="more pad"><a class="link" href="/review">${rest} more</a></p>` : undefined}
  </section>`;
}

const startForm = ({ settings }: HomeScreen): Html =>
  html`<form class="compose start" method="post" action="/start" autocomplete="off">
    ${composeBox({
      id: "task",
      label: "New task",
      placeholder: "What should an agent do, and what does a good result look like?",
      send: "Start run",
      facts: settings,
    })}
  </form>`;

const FILTERS: readonly (readonly [RunStatus | undefined, string])[] = [
  [undefined, "All"],
  ["working", "At work"],
  ["input_required", "Needs you"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
];

function address({ status, text }: RunFilter, before?: string): string {
  const query = new URLSearchParams({
    ...(status === undefined ? {} : { status }),
    ...(text === undefined ? {} : { q: text }),
    ...(before === undefined ? {} : { before }),
  }).toString();
  return query === "" ? "/" : `/?${query}`;
}

function tools({ counts, filter }: HomeScreen): Html {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const choices = FILTERS.map(([status, name]) => {
    const count = status === undefined ? all : counts[status];
    const target = address({
      ...(filter.text === undefined ? {} : { text: filter.text }),
      ...(status === undefined ? {} : { status }),
    });
    return choice(`${name} ${grouped(count)}`, target, filter.status === status);
  });
  return html`<div class="list-tools">
    <nav class="seg" aria-label="Filter">${choices}</nav>
    <form class="search" method="get" action="/" role="search">
      ${filter.status === undefined ? undefined : html`<input type="hidden" name="status" value="${filter.status}" />`}
      ${searchField("Search runs", "Search tasks and answers", 200, filter.text)}
    </form>
  </div>`;
}

function empty({ session, filter: { status, text } }: HomeScreen): Html {
  const isFiltered = status !== undefined || text !== undefined;
  const start = mayRun(session) ? "Start one here, or from" : "Start one from";
  return html`<div class="panel empty">
    ${icon("list")}
    <h3>${isFiltered ? "No run is like that" : "No runs so far"}</h3>
    <p>
      ${isFiltered ? html`<a class="link" href="/">Show all runs</a>` : `${start} any MCP client that is connected to this server.`}
    </p>
  </div>`;
}

const DAY_MS = 86_400_000;

/** The local day of the server, which is the person's own where both are one machine. */
function dayName(time: number, now: number): string {
  const day = (moment: number): string => new Date(moment).toDateString();
  if (day(time) === day(now)) return "Today";
  if (day(time) === day(now - DAY_MS)) return "Yesterday";
  return new Date(time).toLocaleDateString("en-GB", {
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
  });
}

function list({ runs, now }: HomeScreen): Html {
  const isOfMany = new Set(runs.map(({ folder }) => folder)).size > 1;
  let day = "";
  const rows = runs.flatMap((run) => {
    const own = dayName(run.createdAt, now);
    const head =
      own === day
        ? []
        : [html`<h3 class="group" id="day-${isoTime(run.createdAt).slice(0, 10)}">${own}</h3>`];
    day = own;
    return [...head, row(isOfMany ? run : { ...run, folder: undefined }, now)];
  });
  return html`<section class="panel" aria-label="Runs, newest first">
    <div class="run-row head desk" aria-hidden="true">
      <span></span><span>Task</span><span>Agents</span><span class="num">Time</span
      ><span class="num tok">Tokens</span><span class="num">Cost</span>
    </div>
    ${rows}
  </section>`;
}

function row(run: ListedRun, now: number): Html {
  const { id, task, status, place, folder, usage, costUsd, hasUnknownCost, createdAt, endedAt } = run;
  const used = usage.inputTokens + usage.outputTokens;
  return html`<a class="run-row" id="row-${id}" data-row href="${runPath(id)}"
    ><span>${stateIcon(place === undefined ? RUN_STATES[status] : QUEUED)}</span
    ><span class="cut"
      ><span class="t cut block">${oneLine(displayText(task.slice(0, 2000)), MAX.line)}</span
      ><span class="s cut block"
        >${folder === undefined ? undefined : html`<span class="tag">${oneLine(folder, 40)}</span> `}${timeOf(createdAt)}
        · ${secondLine(run)}</span
      ></span
    ><span class="agents-mini">${agentsBar(run)}</span
    ><span class="num dur">${elapsed(createdAt, endedAt, now)}</span
    ><span class="num tok">${used === 0 ? "–" : tokens(used)}</span
    ><span class="num cst">${costUsd === 0 ? "–" : `${hasUnknownCost ? "≥ " : ""}${money(costUsd)}`}</span></a
  >`;
}

function secondLine({ status, place, pending, activity, outcome }: ListedRun): string {
  const waits = pending === 0 ? [] : [decisionsWait(pending)];
  if (activity !== undefined) return [...waits, oneLine(displayText(activity), MAX.line)].join(" · ");
  const text = oneLine(displayText(outcome ?? "").replace(/^#+ |[`*]/gm, ""), MAX.line);
  if (text === "") return (place === undefined ? RUN_STATES[status] : QUEUED).word;
  return status === "completed" ? `“${text}”` : text;
}

function agentsBar({ subagents: { completed, failed, open } }: ListedRun): Html | undefined {
  const all = completed + failed + open;
  if (all === 0) return undefined;
  let at = 0;
  const piece = (name: string, count: number): Html | undefined => {
    const [x, width] = [at, (100 * count) / all];
    at += width;
    return count === 0
      ? undefined
      : html`<rect class="${name}" x="${x.toFixed(1)}%" width="${width.toFixed(1)}%" height="6" />`;
  };
  return html`<svg aria-hidden="true">
      ${piece("fill-green", completed)}${piece("fill-red", failed)}${piece("fill-blue", open)}</svg
    ><span class="num">${completed} of ${all}</span>`;
}
