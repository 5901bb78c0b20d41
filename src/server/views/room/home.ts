/** The first screen: requests to the person, a task to start, and all runs. */
import { grouped, tokens } from "../cost-words.ts";
import { isoTime, timeZone } from "../../../core/clock.ts";
import { defined } from "../../../core/unknown.ts";
import { displayText, oneLine } from "../../../core/text.ts";
import type { PendingRequest, RunFilter, RunSummary, Run } from "../../../runs/run.ts";
import { isQuestion, nameOf } from "../../../runs/run.ts";
import type { Readiness } from "../../../runs/service.ts";
import { type PageSession, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import causes from "./causes.json" with { type: "json" };
import { elapsed, money, timeOf } from "./figures.ts";
import { type Refused, choice, composeBox, emptyPanel, mainOf, searchField } from "./pieces.ts";
import { isReview } from "./question.ts";
import { anchorOf, who } from "./request.ts";
import { headline, requestIcon } from "./card.ts";
import { type StartSettings, startChips } from "./start-choices.ts";
import { ASKING, type Standing, WORKING, counted, stateIcon } from "./states.ts";
import { requestsNeed } from "./waiting.ts";

const MAX = { needs: 8, line: 300, folders: 8 };

/** A run in the list, with its current activity. */
export interface ListedRun extends RunSummary {
  standing: Standing;
  /** While it is open. */
  activity: string | undefined;
  /** The name of the folder it works in, where that is known. */
  folder: string | undefined;
}

export interface HomeScreen {
  session: PageSession;
  counts: Readonly<Record<Run["status"], number>>;
  /** Runs that need somebody while others of their agents work. */
  both: number;
  /** Runs that wait for their turn, counted as at work. */
  inLine: number;
  /** Number of open requests, the oldest of which are `pending`. */
  waiting: number;
  pending: readonly PendingRequest[];
  runs: readonly ListedRun[];
  filter: RunFilter;
  /** True if there are older ones than `runs`. */
  hasOlder: boolean;
  now: number;
  settings: StartSettings;
  readiness: Readiness;
  refused: Refused | undefined;
  /** A task to begin with. */
  given: string | undefined;
}

export function renderHome(screen: HomeScreen): Html {
  const { session, runs, hasOlder, filter, counts, inLine, waiting } = screen;
  const line = inLine > 0 ? ` (${inLine} queued)` : "";
  const waits = waiting > 0 ? `, ${requestsNeed(waiting)}` : "";
  const stand = `${counts.working + screen.both} at work${line}${waits}`;
  const content = html`<div class="home-head">
      <h1>Runs</h1>
      <span class="dim">${stand}</span>
    </div>
    ${needs(screen)} ${mayRun(session) && startForm(screen)} ${tools(screen)}
    ${runs.length === 0 ? empty(screen) : list(screen)}
    ${hasOlder && html`<p class="more"><a class="link" href="${address(filter, runs.at(-1)?.id)}">Show older runs</a></p>`}`;
  return mainOf(session, "home", content);
}

function needs({ waiting, pending, now }: HomeScreen): Html | undefined {
  if (pending.length === 0) return undefined;
  const items = pending.slice(0, MAX.needs).map((asked) => {
    // A proposed change has a screen of its own.
    const address = isReview(asked) ? `${runPath(asked.runId)}/review` : `/review#${anchorOf(asked)}`;
    const word = isQuestion(asked) && !isReview(asked) ? "Answer" : "Review";
    const leading = html`<a class="btn small" data-row href="${address}">${word}</a>`;
    return html`<li id="need-${anchorOf(asked)}">
      ${icon(requestIcon(asked), "amber")}<span class="what">${headline(asked)}</span
      ><small class="cut">${who(asked)} · in “${oneLine(displayText(asked.task), 120)}”</small
      ><span class="num small dim">${elapsed(asked.requestedAt, undefined, now)}</span>${leading}
    </li>`;
  });
  const rest = waiting - items.length;
  return html`<section class="panel needs" aria-labelledby="needs-h">
    <div class="panel-head">
      <h2 id="needs-h">Needs you</h2>
      <span class="count amber">${waiting}</span>
      <span class="end small dim desk">Other agents keep working while these wait.</span>
    </div>
    <ul class="needs-list">
      ${items}
    </ul>
    ${rest > 0 && html`<p class="more pad"><a class="link" href="/review">${rest} more</a></p>`}
  </section>`;
}

/** Shows the settings of a new run, and warns about missing ones before anything is typed. */
function startForm({ settings, readiness, refused, given }: HomeScreen): Html {
  const { refusal } = readiness;
  const isOff = refusal !== undefined && refused === undefined;
  return html`${isOff && obstacle(refusal)}
    <form class="compose start" method="post" action="/start" autocomplete="off">
      ${composeBox({
        id: "task",
        label: "New task",
        placeholder: "What should an agent do, and what does a good result look like?",
        send: "Start run",
        choices: startChips(settings, readiness, refused),
        refused,
        given,
        off: isOff ? `${OBSTACLES[refusal.code] ?? NOT_NOW}. What you type is kept.` : undefined,
      })}
    </form>`;
}

type Refusal = NonNullable<Readiness["refusal"]>;

const OBSTACLES: Partial<Readonly<Record<Refusal["code"], string>>> = words.obstacles;
const NOT_NOW = "No run can start now";

/** The numbered lines of the message are its remedies. */
function obstacle({ code, message, remedy }: Refusal): Html {
  const lines = message.split("\n");
  const ways = lines.flatMap((line) => /^\d+\. (.+)$/.exec(line)?.[1] ?? []);
  const text = lines.filter((line) => !/^\d+\. /.test(line)).join("\n");
  const mayEndAtOnce = code === "workspace_missing" || code === "configuration_invalid";
  return html`<section class="panel needs obstacle" aria-labelledby="obstacle-h">
    <div class="panel-head">
      <h2 id="obstacle-h">${OBSTACLES[code] ?? NOT_NOW}</h2>
      ${!mayEndAtOnce && html`<span class="end small dim desk">Restart the server to apply.</span>`}
    </div>
    <p class="pad lines">${text}</p>
    ${
      ways.length > 0 &&
      html`<ol class="ways">
        ${ways.map((way) => html`<li>${way.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}</li>`)}
      </ol>`
    }
    ${remedy && html`<p class="pad">To keep the key in the keychain: <code>${remedy}</code></p>`}
  </section>`;
}

function address({ status, text, folder }: RunFilter, before?: string): string {
  const query = new URLSearchParams(defined({ status, q: text, folder, before })).toString();
  return query === "" ? "/" : `/?${query}`;
}

function tools({ counts, both, filter, runs }: HomeScreen): Html {
  const { status: chosen, folder, ...others } = filter;
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const choices = Object.entries(words.filters).map(([name, word]) => {
    const status = (name || undefined) as Run["status"] | undefined; // the table has these names
    const count = status === undefined ? all : counts[status] + (status === "working" ? both : 0);
    const target = address({ ...others, ...defined({ folder, status }) });
    return choice(`${word} ${grouped(count)}`, target, chosen === status);
  });
  const names = [...new Set([folder, ...runs.map((run) => run.folder)])].filter((name) => name !== undefined);
  const folders = [undefined, ...names.slice(0, MAX.folders)].map((name) => {
    const target = address({ ...others, ...defined({ status: chosen, folder: name }) });
    return choice(
      name === undefined ? "All folders" : oneLine(displayText(name), 40),
      target,
      name === folder,
    );
  });
  return html`<div class="list-tools">
    <nav class="seg" aria-label="Filter">${choices}</nav>
    ${(folder !== undefined || names.length > 1) && html`<nav class="seg folders" aria-label="Folders">${folders}</nav>`}
    <form class="search" method="get" action="/" role="search" data-live>
      ${chosen && html`<input type="hidden" name="status" value="${chosen}" />`}
      ${folder && html`<input type="hidden" name="folder" value="${folder}" />`}
      ${searchField("Search runs", "Search tasks and answers", 200, filter.text)}
    </form>
  </div>`;
}

function empty({ session, filter }: HomeScreen): Html {
  const isFiltered = Object.keys(filter).length > 0;
  const start = mayRun(session) ? "Start one here, or from" : "Start one from";
  const more = isFiltered
    ? html`<a class="link" href="/">Show all runs</a>`
    : `${start} any MCP client that is connected to this server.`;
  return emptyPanel("list", { title: isFiltered ? "No runs match your search" : "No runs yet", text: more });
}

/** Made once: making it takes as long as a row. */
let dayFormat: Intl.DateTimeFormat | undefined;

/** The local day of the server, which is the person's own where both are one machine. */
function dayName(time: number, now: number): string {
  dayFormat ??= new Intl.DateTimeFormat("en-GB", {
    timeZone: timeZone(),
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
  });
  const day = dayFormat.format(time);
  if (day === dayFormat.format(now)) return "Today";
  return day === dayFormat.format(now - 86_400_000) ? "Yesterday" : day;
}

function list({ runs, now }: HomeScreen): Html {
  const isOfMany = new Set(runs.map(({ folder }) => folder)).size > 1;
  let day = "";
  const rows = runs.map((run) => {
    const before = day;
    day = dayName(run.createdAt, now);
    const head = html`<h3 class="group" id="day-${isoTime(run.createdAt).slice(0, 10)}">${day}</h3>`;
    return [day !== before && head, row(isOfMany ? run : { ...run, folder: undefined }, now)];
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
  const { id, folder, standing, usage, costUsd, hasUnknownCost, createdAt, endedAt, schedule } = run;
  const used = usage.inputTokens + usage.outputTokens;
  const [first = WORKING, ...others] = standing.states;
  const word = standing.states.map((state) => state.word).join(", ");
  // Needing a person is seen first.
  const state = others.length === 0 ? first : { ...ASKING, word };
  return html`<a class="run-row" id="row-${id}" data-row href="${runPath(id)}"
    ><span>${stateIcon(state)}</span
    ><span class="cut"
      ><span class="t cut block">${oneLine(displayText(nameOf(run).slice(0, 2000)), MAX.line)}</span
      ><span class="s cut block"
        >${folder !== undefined && html`<span class="tag">${oneLine(folder, 40)}</span> `}${timeOf(createdAt)}
        ${schedule && `by schedule ${oneLine(displayText(schedule.name), 40)}`} · ${secondLine(run)}</span
      ></span
    ><span class="agents-mini">${agentsBar(run)}</span
    ><span class="num dur">${elapsed(createdAt, endedAt, now)}</span
    ><span class="num tok">${used === 0 ? "–" : tokens(used)}</span
    ><span class="num cst"
      >${costUsd === 0 ? (hasUnknownCost ? "unknown" : "–") : `${hasUnknownCost ? "≥ " : ""}${money(costUsd)}`}</span
    ></a
  >`;
}

function secondLine({ status, standing, activity, outcome, failure }: ListedRun): string {
  const { states, agents, waiting } = standing;
  const [word = ""] = states.map((state) => state.word);
  const text = failure === undefined ? (activity ?? outcome ?? "") : causes[failure.reason];
  const line = oneLine(displayText(text).replace(/^#+ |[`*]/gm, ""), MAX.line);
  const parts = [
    ...counted({ [waiting === 1 ? "request" : "requests"]: waiting }),
    ...(states.length > 1 ? [`${agents.working} at work`, ...counted({ queued: agents.queued })] : []),
    line && (status === "completed" ? `“${line}”` : line),
  ];
  return parts.filter(Boolean).join(" · ") || word;
}

function agentsBar({ standing: { agents } }: ListedRun): Html | undefined {
  const { all, done, failed, cancelled, asking, working } = agents;
  if (all === 0) return undefined;
  let at = 0;
  const piece = (name: string, count: number): Html | false => {
    const [x, width] = [at, (100 * count) / all];
    at += width;
    return (
      count > 0 && html`<rect class="${name}" x="${x.toFixed(1)}%" width="${width.toFixed(1)}%" height="6" />`
    );
  };
  return html`<svg aria-hidden="true">
      ${piece("fill-green", done)}${piece("fill-red", failed)}${piece("fill-bar", cancelled)}${piece("fill-amber", asking)}${piece("fill-blue", working)}</svg
    ><span class="num">${done} of ${all}</span>`;
}
