/** One search over runs, files, memories and commands: a box over every screen, and a screen of its own. */
import { grouped } from "../cost-words.ts";
import type { GrepMatch } from "../../../backends/backend.ts";
import { defined } from "../../../core/unknown.ts";
import { capital, displayText, oneLine } from "../../../core/text.ts";
import type { RunSummary } from "../../../runs/run.ts";
import type { MemoryHit } from "../../../runs/service.ts";
import { type PageSession, filePath, filesPath, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, type IconName, type Tone, icon } from "../html.ts";
import { dayAndTime, elapsed } from "./figures.ts";
import { lineAddress } from "./files.ts";
import { choice, mainOf, marked } from "./pieces.ts";
import { standingInList } from "./states.ts";

export const KINDS = ["runs", "files", "memories", "commands"] as const;
export type Kind = (typeof KINDS)[number];

/** Results of one kind in the list of all. */
const SHOWN = 5;
const MAX = { query: 200, title: 300, around: 60, line: 240 };

type FoundRun = RunSummary & { folder: string | undefined };
/** A file whose name has the text, or a line that has it. */
type FoundFile = { path: string } | GrepMatch;

export interface Command {
  name: string;
  address: string;
  icon: IconName;
  key?: string;
}

export interface SearchScreen {
  session: PageSession;
  query: string;
  /** The only kind to show; absent: all of them. */
  kind: Kind | undefined;
  /** Those whose names have the text come first. */
  found: {
    runs: readonly FoundRun[];
    files: readonly FoundFile[];
    memories: readonly MemoryHit[];
    commands: readonly Command[];
  };
  /** Kinds that have more results than were read. */
  cut: ReadonlySet<Kind>;
  /** Contents are not searched yet. */
  isPart: boolean;
  places: string;
  /** Sentences about parts that were not searched. */
  notes: readonly string[];
  now: number;
}

/** Leads to the search; a script opens it over the screen. */
export const SEARCH_LINK = html`<a class="find" href="/search" data-find
  >${icon("find")}<span>Search everything</span><kbd class="mac" aria-hidden="true">⌘K</kbd
  ><kbd class="not-mac" aria-hidden="true">Ctrl K</kbd></a
>`;

const form = (query: string, hasHits: boolean, close?: Html): Html =>
  html`<form class="finder-box" method="get" action="/search" role="search">
      ${icon("find", "faint")}
      <label class="hide" for="query">Search runs, files, memories and commands</label>
      <input
        id="query"
        name="q"
        type="search"
        role="combobox"
        aria-expanded="${String(hasHits)}"
        aria-autocomplete="list"
        aria-controls="hits"
        maxlength="${MAX.query}"
        placeholder="Search runs, files, memories, commands"
        value="${query}"
        autocomplete="off"
        spellcheck="false"
        ${close === undefined && html`autofocus`}
      />
      ${close}
    </form>
    <p class="hide" role="status"></p>`;

const FOOT = html`<p class="finder-foot desk">
  <span><kbd>↑</kbd><kbd>↓</kbd>choose</span><span><kbd>Enter</kbd>open</span
  ><span><kbd class="mac">⌘</kbd><kbd class="not-mac">Ctrl</kbd><kbd>Enter</kbd>new tab</span
  ><span><kbd>Tab</kbd>next category</span><span class="end">Names, then contents</span>
</p>`;

/** The box over a screen, without results yet. */
export const FINDER = html`<dialog class="finder" id="finder" aria-label="Search">
  ${form("", false, html`<button class="btn bare small" type="button" data-close>Close<kbd>Esc</kbd></button>`)}
  <div class="finder-found"></div>
  ${FOOT}
</dialog>`;

export function renderSearch(screen: SearchScreen): Html {
  const hasHits = hitCount(screen) > 0;
  const content = html`<h1 class="hide">Search</h1>
    <div class="panel finder">${form(screen.query, hasHits)} ${results(screen)} ${FOOT}</div>`;
  return mainOf(screen.session, "search-page", content);
}

const hitCount = ({ found }: Pick<SearchScreen, "found">): number =>
  KINDS.reduce((sum, kind) => sum + found[kind].length, 0);

const formatCount = (count: number, isCut: boolean): string => `${grouped(count)}${isCut ? "+" : ""}`;

function results(screen: SearchScreen): Html {
  const { query, kind, found, cut, isPart, notes } = screen;
  const count = hitCount(screen);
  const address = (only?: Kind): string =>
    `/search?${new URLSearchParams({ q: query, ...defined({ kind: only }) }).toString()}`;
  // Without words only runs and commands are listed. Contents come after names.
  const hasMore = (one: Kind): boolean => cut.has(one) || (isPart && one !== "commands");
  const named = (name: string, isListed: boolean, own: string): string =>
    query !== "" || isListed ? `${name} ${own}` : name;
  const kinds = KINDS.map((one) => {
    const own = formatCount(found[one].length, hasMore(one));
    return choice(named(capital(one), found[one].length > 0, own), address(one), kind === one);
  });
  const total = formatCount(count, KINDS.some(hasMore));
  const all = choice(named("All", false, total), address(), kind === undefined);
  const shown = KINDS.filter((one) => found[one].length > 0 && (kind ?? one) === one);
  const groups = shown.map((one) => {
    const hits = renderHits(screen, one);
    const isMore = kind === undefined && hits.length > SHOWN;
    const more = html`<a
      class="hit more"
      id="more-${one}"
      role="option"
      aria-selected="false"
      href="${address(one)}"
      >${icon("down", "faint")}<span>Show all ${formatCount(hits.length, hasMore(one))}</span></a
    >`;
    return html`<section role="group" aria-label="${capital(one)}">
      <h2 role="presentation" aria-hidden="true">${capital(one)}</h2>
      ${isMore ? [...hits.slice(0, SHOWN), more] : hits}
    </section>`;
  });
  const told = count === 0 ? "No results" : `${total} results`;
  return html`<div class="finder-found" data-part data-kind="${kind ?? ""}" data-told="${isPart ? "" : told}">
    <div class="finder-kinds"><nav class="seg" aria-label="Search in">${all}${kinds}</nav></div>
    <div class="finder-list">
      ${groups.length === 0 ? none(screen) : html`<div id="hits" role="listbox" aria-label="Results">${groups}</div>`}
      ${notes.map((note) => html`<p class="note pad">${oneLine(note, 500)}</p>`)}
    </div>
  </div>`;
}

function none({ session, query, kind, found, isPart, places }: SearchScreen): Html {
  if (isPart) return html`<p class="note pad">Searching contents …</p>`;
  if (query === "") return html`<p class="note pad">Type what to look for.</p>`;
  const isElsewhere = kind !== undefined && hitCount({ found }) > 0;
  const shown = oneLine(displayText(query), MAX.query);
  const subject = kind === undefined ? "Nothing" : `No ${kind}`;
  return html`<div class="empty">
    ${icon("find")}
    <h3 class="anywhere">${subject} found for “${shown}”</h3>
    <p>${isElsewhere ? "Other categories have results." : places}</p>
    ${mayRun(session) && query && html`<p class="start"><a class="btn small" href="${startAddress(query)}">${icon("up")}Start a run with these words</a></p>`}
  </div>`;
}

export const startAddress = (task: string): string =>
  task === "" ? "/#task" : `/?${new URLSearchParams({ task }).toString()}#task`;

interface Hit {
  id: string;
  address: string;
  icon: IconName;
  tone?: Tone;
  /** Word for screen readers before the name. */
  word?: string;
  name: string;
  end?: Html | string | undefined;
  line?: Html | false;
}

function renderHits({ query, found, now }: SearchScreen, kind: Kind): Html[] {
  const hits: Readonly<Record<Kind, () => Hit[]>> = {
    runs: () => found.runs.map((run) => runHit(run, query, now)),
    files: () => found.files.map((file, at) => fileHit(file, at, query)),
    memories: () =>
      found.memories.map(({ path, snippet }, at) => ({
        id: `memory-${at}`,
        icon: "mind",
        address: filePath(filesPath(), path),
        name: shownPath(path).replace(/^\/memories\//, ""),
        line: !has(path, query) && html`“${marked(oneLine(displayText(snippet), MAX.line), query)}”`,
      })),
    commands: () =>
      found.commands.map(({ key, ...command }, at) => ({
        ...command,
        id: `command-${at}`,
        end: key && html`<kbd>${key}</kbd>`,
      })),
  };
  return hits[kind]().map(
    ({ id, address, icon: sign, tone = "faint", word, name, end, line }) =>
      html`<a class="hit" id="hit-${id}" role="option" aria-selected="false" href="${address}"
        >${icon(sign, tone)}${word !== undefined && html`<span class="hide">${word}: </span>`}<span
          class="cut"
          title="${name}"
          >${marked(name, query)}</span
        >${end && html`<span class="end">${end}</span>`}${line && html`<small class="cut">${line}</small>`}</a
      >`,
  );
}

export const has = (text: string, query: string): boolean => text.toLowerCase().includes(query.toLowerCase());

/** The text around the first place of the searched words, on one line. */
function around(text: string, query: string): Html {
  const line = oneLine(text, text.length);
  const from = Math.max(0, line.toLowerCase().indexOf(query.toLowerCase()) - MAX.around / 2);
  const part = oneLine(displayText(line.slice(from, from + MAX.line)).toWellFormed(), MAX.line);
  return html`“${from > 0 ? "…" : ""}${marked(part, query)}”`;
}

function runHit(run: FoundRun, query: string, now: number): Hit {
  const { id, task, outcome = "", folder, createdAt, endedAt } = run;
  const [state] = standingInList(run).states;
  const { icon: sign, tone, word } = state ?? { icon: "list", tone: "faint", word: "Run" };
  const facts = html`${word} · ${folder !== undefined && `${oneLine(folder, 40)} · `}${dayAndTime(createdAt)}`;
  const isLate = has(task.slice(MAX.around), query) && !has(task.slice(0, MAX.around + query.length), query);
  const inside = has(outcome, query) ? html`In its answer: ${around(outcome, query)}` : html`In its answer`;
  return {
    id,
    address: runPath(id),
    icon: sign,
    tone,
    word,
    name: oneLine(displayText(task.slice(0, 2000)), MAX.title),
    end: elapsed(createdAt, endedAt, now),
    line: query === "" || has(task, query) ? (isLate ? around(task, query) : facts) : inside,
  };
}

const shownPath = (path: string): string => oneLine(displayText(path), MAX.title);

function fileHit(file: FoundFile, at: number, query: string): Hit {
  const { path } = file;
  const name = shownPath(path).replace(/^\/workspace\//, "");
  const hit = { id: `file-${at}`, icon: "file" as const, name };
  if (!("line" in file)) return { ...hit, address: filePath(filesPath(), path) };
  const address = lineAddress(filesPath(), file);
  return { ...hit, address, end: `line ${grouped(file.line)}`, line: around(file.text, query) };
}
