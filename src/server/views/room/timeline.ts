/** The agents of a run over time: one row for each, with a bar of its activity. */
import { tokens } from "../cost-words.ts";
import { groupBy } from "../../../core/group-by.ts";
import { duration, firstSentence, oneLine } from "../../../core/text.ts";
import type { AgentPath, RunRequest, RunView, Span, SubagentView } from "../../../runs/run.ts";
import { isFinal, isWithin } from "../../../runs/run.ts";
import { GENERAL_PURPOSE } from "../../../tools/tool.ts";
import { waitsIn } from "../waits.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { elapsed, money, roundedParts, timeOf } from "./figures.ts";
import { current } from "./pieces.ts";
import {
  AGENT_STATES,
  AGENT_ASKS,
  RETRYING,
  RUN_STATES,
  type State,
  WAITS,
  WORKING,
  agentState,
  standingOf,
  stateIcon,
} from "./states.ts";
import { MIN_FOLDED } from "./steps.ts";

export interface AgentRow {
  /** Names it in addresses; empty for the main agent. */
  key: string;
  depth: number;
  name: string;
  /** Its kind, if that adds something to the name. */
  type: string | undefined;
  state: State;
  work: RunView["mainAgent"];
  /** Its cost in the column of all agents, as far as it is known. */
  cost: number;
  asked: readonly RunRequest[];
  waitsSince: number | undefined;
  subagent: SubagentView | undefined;
}

export const keyOf = (agent: AgentPath): string =>
  agent.length === 0
    ? ""
    : Buffer.from(JSON.stringify(agent.map(({ callId }) => callId))).toString("base64url");

/** The main agent, then the others, each before those that it started. */
export function agentRows(view: RunView): AgentRow[] {
  const asked = groupBy(view.requests, ({ agent }) => keyOf(agent));
  const [standing = WORKING] = standingOf(view).states;
  const waits = waitsIn(view);
  const works = [view.mainAgent, ...view.subagents];
  const costs = roundedParts(works.map(({ costUsd = 0 }) => costUsd));
  const costOf = new Map(works.map((work, at) => [work, costs[at]]));
  const around = (agent: AgentPath, work: AgentRow["work"]) => ({
    asked: asked.get(keyOf(agent)) ?? [],
    waitsSince: waits.ofAgent(agent),
    cost: costOf.get(work) ?? 0,
  });
  const own = around([], view.mainAgent);
  const main: AgentRow = {
    ...own,
    key: "",
    depth: 0,
    name: "Main agent",
    type: undefined,
    state: agentState(standing, view.mainAgent, own),
    work: view.mainAgent,
    subagent: undefined,
  };
  const branches = (parent: AgentPath): AgentRow[] =>
    view.subagents
      .filter(({ agent }) => agent.length === parent.length + 1 && isWithin(parent, agent))
      .flatMap((subagent) => [
        toRow(subagent, around(subagent.agent, subagent)),
        ...branches(subagent.agent),
      ]);
  return [main, ...branches([])];
}

function toRow(subagent: SubagentView, around: Pick<AgentRow, "asked" | "waitsSince" | "cost">): AgentRow {
  const { agent, name, description } = subagent;
  return {
    ...around,
    key: keyOf(agent),
    depth: agent.length,
    name: firstSentence(description, MAX.name).replace(/\.$/, "") || oneLine(name, MAX.name),
    type: name === GENERAL_PURPOSE ? undefined : oneLine(name, 40),
    state: agentState(AGENT_STATES[subagent.status], subagent, around),
    work: subagent,
    subagent,
  };
}

/** Up to so many agents stand in the order in which they were started. Of more, those that need something come first. */
const FEW = 8;

const ORDER: readonly (readonly State[])[] = [
  [AGENT_ASKS],
  [RUN_STATES.failed, RETRYING],
  [WORKING, WAITS],
  [AGENT_STATES.queued],
  [AGENT_STATES.cancelled],
];

/**
 * Keeps each agent below the one that started it. `folded`: those that are finished, behind one row that opens them.
 * The `selected` one is never folded.
 */
export function inOrder(
  rows: readonly AgentRow[],
  selected: string,
): { shown: readonly AgentRow[]; folded: readonly AgentRow[] } {
  const [main, ...others] = rows;
  if (main === undefined || others.length <= FEW) return { shown: rows, folded: [] };
  const branches: AgentRow[][] = [];
  for (const row of others) {
    if (row.depth === 1) branches.push([row]);
    else branches.at(-1)?.push(row);
  }
  const ranked = branches.toSorted((one, other) => branchRank(one) - branchRank(other));
  const isFolded = (branch: readonly AgentRow[]): boolean =>
    branchRank(branch) === ORDER.length && branch.every(({ key }) => key !== selected);
  const folded = ranked.filter(isFolded).flat();
  if (folded.length < MIN_FOLDED) return { shown: [main, ...ranked.flat()], folded: [] };
  return { shown: [main, ...ranked.filter((branch) => !isFolded(branch)).flat()], folded };
}

/** By what any agent in it needs; when its first has finished, it needs nothing any more. */
function branchRank(branch: readonly AgentRow[]): number {
  const ranks = branch.map(({ state }) => {
    const rank = ORDER.findIndex((states) => states.includes(state));
    return rank === -1 ? ORDER.length : rank;
  });
  return ranks[0] === ORDER.length ? ORDER.length : Math.min(...ranks);
}

interface Axis {
  start: number;
  end: number;
  now: number | undefined;
}

const MINUTE = 60_000;

const percent = (share: number): string => `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%`;

/** The narrowest that a piece of a bar is drawn, as a share of the axis. */
const LEAST = 0.003;
/** `withCalls`: up to so many agents their tool calls are drawn too. */
const MAX = { name: 120, marks: 5, rows: 300, withCalls: 40 };

interface Drawing {
  axis: Axis;
  at: (time: number) => string;
  grid: Html;
  now: number;
  withCalls: boolean;
  selected: string;
  link: (key: string) => string | undefined;
}

interface AgentsLook extends Pick<Drawing, "now" | "selected" | "link"> {
  /** Lets a person choose between times and a list. */
  looks: Html | false;
  isList: boolean;
}

/** The agents over time or as a list. `selected`: key of the agent whose steps are shown. */
export function renderAgents(view: RunView, rows: readonly AgentRow[], look: AgentsLook): Html {
  const isOrdered = rows.length > FEW + 1;
  const order = isOrdered ? ", those that need something first" : " in the order in which they were started";
  const times = look.isList ? renderList(rows, order, look) : renderTimes(view, rows, order, look);
  return html`<section class="panel" aria-labelledby="tl-h">
    <div class="panel-head">
      <h2 id="tl-h">Agents</h2>
      <span class="count">${rows.length - 1}</span>
      <span class="end">${!look.isList && legend(times)} ${look.looks}</span>
    </div>
    ${times}
    ${rows.length > MAX.rows && html`<p class="note pad">${rows.length - MAX.rows} more agents are not shown.</p>`}
  </section>`;
}

function renderList(rows: readonly AgentRow[], order: string, { now, selected, link }: AgentsLook): Html {
  const { shown, folded } = inOrder(rows, selected);
  const cells = [...shown, ...folded].slice(0, MAX.rows).map((row) => {
    const { key, depth, name, state, work } = row;
    const used = work.usage.inputTokens + work.usage.outputTokens;
    return html`<tr id="agent-${key}" ${current(key === selected)}>
      <th scope="row">
        <a class="tl-name d${Math.min(depth, 4)}" data-row href="${link(key)}" ${current(key === selected)}
          >${icon(state.icon, state.tone)}<span class="cut" title="${name}">${name}</span></a
        >
      </th>
      <td>${state.word}</td>
      <td class="num">${work.startedAt === undefined ? "–" : timeOf(work.startedAt)}</td>
      <td class="num">${timeText(row, now)}</td>
      <td class="num">${work.toolCalls}</td>
      <td class="num">${used === 0 ? "–" : tokens(used)}</td>
      <td class="num">${money(row.cost, row.work.costUsd)}</td>
    </tr>`;
  });
  const heads = ["Started", "Time", "Tool calls", "Tokens", "Cost"];
  return html`<div class="tl-list" tabindex="0" role="group" aria-label="Agents${order}">
    <table>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">State</th>
          ${heads.map((name) => html`<th scope="col" class="num">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${cells}
      </tbody>
    </table>
  </div>`;
}

function renderTimes(
  view: RunView,
  rows: readonly AgentRow[],
  order: string,
  { now, selected, link }: AgentsLook,
): Html {
  const { createdAt: start, endedAt } = view.run;
  const length = Math.max(1000, (endedAt ?? now) - start);
  // The axis grows by quarters of these, and the line of now moves by sixtieths: bars do not creep.
  const minutes =
    [0.25, 0.5, 1, 3, 5, 10, 15, 30, 60, 120, 240, 720, 1440, 7200, 43_200].find(
      (each) => length / (each * MINUTE) <= MAX.marks,
    ) ?? 43_200;
  const step = minutes * MINUTE;
  const nowOn = endedAt === undefined ? start + Math.floor(length / (step / 60)) * (step / 60) : undefined;
  // Leaves some room at the right for the future.
  const end = endedAt ?? start + Math.ceil((length * 1.05) / (step / 4)) * (step / 4);
  const axis: Axis = { start, end: Math.max(end, start + 1000), now: nowOn };
  const at = (time: number): string => percent((time - axis.start) / (axis.end - axis.start));
  const marks = Array.from(
    { length: Math.floor((axis.end - start) / step) },
    (_, at) => start + (at + 1) * step,
  );
  const line = (time: number, look = ""): Html =>
    html`<line class="${look}" x1="${at(time)}" x2="${at(time)}" y1="0" y2="32" />`;
  const grid = html`${marks.map((time) => line(time))}${axis.now && line(axis.now, "nowline")}`;
  const drawing: Drawing = { axis, at, grid, now, withCalls: rows.length <= MAX.withCalls, selected, link };
  const { shown, folded } = inOrder(rows, selected);
  const rest = Math.max(0, MAX.rows - shown.length);
  return html`${axisRow(axis, marks, at)}
    <ol class="tl-body" tabindex="0" aria-label="Agents${order}">
      ${shown.slice(0, MAX.rows).map((row) => agentRow(row, drawing))}
      ${folded.length > 0 && foldedRows(folded, folded.slice(0, rest), drawing, isFinal(view.run.status))}
    </ol>
    <p class="tl-more" hidden><button type="button" class="btn bare small"></button></p>`;
}

function axisRow(axis: Axis, marks: readonly number[], at: (time: number) => string): Html {
  const length = axis.end - axis.start;
  const isFree = (time: number): boolean => axis.now === undefined || Math.abs(time - axis.now) > length / 12;
  const markText = (milliseconds: number): string =>
    milliseconds < MINUTE ? `${milliseconds / 1000}s` : duration(milliseconds).replace(/ 0+[ms]$/, "");
  const text = (time: number, words: string): Html =>
    html`<text x="${at(time)}" y="20" text-anchor="middle">${words}</text>`;
  return html`<div class="tl-row tl-axis" aria-hidden="true">
    <span>Agent</span>
    <span class="lane-cell"
      ><svg class="lane">
        <text x="0%" y="20" text-anchor="start">0m</text>
        ${marks.filter(isFree).map((time) => text(time, markText(time - axis.start)))}
        ${axis.now && text(axis.now, "now")}
      </svg></span
    >
    <span class="num">Time</span><span class="num">Cost</span>
  </div>`;
}

const lane = (content: Html): Html =>
  html`<span class="lane-cell"
    ><svg class="lane" aria-hidden="true"><g>${content}</g></svg></span
  >`;

function agentRow(row: AgentRow, drawing: Drawing): Html {
  const { grid, now, selected, link } = drawing;
  const address = link(row.key);
  const cells = html`<span class="tl-name d${Math.min(row.depth, 4)}"
      >${stateIcon(row.state)}<span class="cut" title="${row.name}">${row.name}</span
      >${row.type !== undefined && html`<span class="tag">${row.type}</span>`}</span
    >${lane(html`${grid}${bar(row, drawing)}`)}<span class="num">${timeText(row, now)}</span
    ><span class="num">${money(row.cost, row.work.costUsd)}</span>`;
  return address === undefined
    ? html`<li class="tl-row" id="agent-${row.key}">${cells}</li>`
    : html`<li id="agent-${row.key}">
        <a class="tl-row" data-row href="${address}" ${current(row.key === selected)}>${cells}</a>
      </li>`;
}

/** `all` of them in one row, which opens the `rows` of those that there is room for. */
function foldedRows(all: readonly AgentRow[], rows: readonly AgentRow[], drawing: Drawing, isOpen: boolean) {
  const { axis, at } = drawing;
  const bars = all.map(({ work: { startedAt, endedAt } }) => {
    if (startedAt === undefined || endedAt === undefined) return undefined;
    const width = percent(Math.max(LEAST, (endedAt - startedAt) / (axis.end - axis.start)));
    return html`<rect class="whole some" x="${at(startedAt)}" width="${width}" y="13" height="6" rx="3" />`;
  });
  const isPriced = all.every(({ work }) => work.costUsd !== undefined);
  const exact = all.reduce((sum, { work }) => sum + (work.costUsd ?? 0), 0);
  const cost = isPriced ? all.reduce((sum, row) => sum + row.cost, 0) : undefined;
  return html`<li id="finished">
    <details class="tl-fold" id="finished-fold" data-kept ${isOpen && html` open`}>
      <summary class="tl-row" data-row>
        <span class="tl-name d1"
          >${icon("done", "green")}<span class="cut">${all.length} finished</span
          >${icon("chev", "faint")}</span
        >${lane(html`${drawing.grid}${bars}`)}<span class="num"></span
        ><span class="num">${money(cost, exact)}</span>
      </summary>
      <ol aria-label="Finished agents">
        ${rows.map((row) => agentRow(row, drawing))}
      </ol>
    </details>
  </li>`;
}

function timeText({ work, state }: AgentRow, now: number): Html | string {
  if (work.startedAt === undefined)
    return state === AGENT_STATES.queued ? "queued" : state === AGENT_STATES.cancelled ? "not started" : "–";
  return elapsed(work.startedAt, work.endedAt, now);
}

/** Times in which at least one of the requests waited for a person; those that still wait do so `until` then. */
export function waitsOf(asked: readonly RunRequest[], until: number): Span[] {
  const waits: [number, number][] = [];
  const ordered = asked.toSorted((one, other) => one.requestedAt - other.requestedAt);
  for (const { requestedAt, decidedAt = until } of ordered) {
    const last = waits.at(-1);
    if (last !== undefined && requestedAt <= last[1]) last[1] = Math.max(last[1], decidedAt);
    else waits.push([requestedAt, decidedAt]);
  }
  return waits;
}

function bar({ work, state, asked, depth, waitsSince: since }: AgentRow, { axis, at, withCalls }: Drawing) {
  const length = axis.end - axis.start;
  const share = (start: number, end: number): number => (end - start) / length;
  const width = (start: number, end: number): string => percent(Math.max(LEAST, share(start, end)));
  const piece = (name: string, start: number, end: number, round = 3): Html =>
    html`<rect
      class="${name}"
      x="${at(start)}"
      width="${width(start, end)}"
      y="11"
      height="10"
      rx="${round}"
    />`;
  if (work.startedAt === undefined)
    return axis.now === undefined || state !== AGENT_STATES.queued
      ? undefined
      : piece("waits", axis.now + length * 0.005, axis.end - length * 0.003);
  const end = work.endedAt ?? axis.now ?? axis.end;
  const until = state === WAITS ? (since ?? end) : end;
  if (state === AGENT_STATES.failed) return piece("broke", work.startedAt, until);
  const isOpen = work.endedAt === undefined && axis.now !== undefined;
  const busy: readonly Span[] =
    isOpen && work.busySince !== undefined ? [...work.busy, [work.busySince, until]] : work.busy;
  const calls =
    (withCalls || depth === 0) && busy.map((span) => piece(isOpen ? "at-work-tick" : "tick", ...span, 1));
  const waits = waitsOf(asked, until)
    .filter(([start, end]) => end === until || share(start, end) >= LEAST)
    .map(([start, end]) => piece(isOpen && end === until ? "asks" : "asks past", start, end));
  const idle = until < end && piece("waits", until, end);
  const edge = html`<rect class="edge" x="${at(until)}" width="3" y="8" height="16" rx="1.5" />`;
  return html`${piece(isOpen ? "at-work" : "whole", work.startedAt, until)}${calls}${waits}${idle}${isOpen && state !== AGENT_ASKS && state !== WAITS && edge}`;
}

/** Explains the pieces that are drawn in `times`. */
function legend({ text }: Html): Html {
  const shown = Object.entries(words.barPieces).filter(([name]) => text.includes(`class="${name}`));
  return html`<div class="legend desk">
    ${shown.map(
      ([name, meaning]) =>
        html`<span
          ><svg aria-hidden="true" class="lane">
            <rect class="${name}" x=".5" y=".5" width="17" height="9" rx="2.5" /></svg
          >${meaning}</span
        > `,
    )}
  </div>`;
}
