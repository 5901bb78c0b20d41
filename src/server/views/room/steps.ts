/** The steps of one agent: its texts and calls. Consecutive calls of one kind are one row. */
import { capital, displayText, duration, headOf, oneLine } from "../../../core/text.ts";
import { decidedText, objectText } from "../../../runs/asked-words.ts";
import { type RunEvent, stepOf } from "../../../runs/events.ts";
import { type RunView, isFinal } from "../../../runs/run.ts";
import { waitsIn } from "../waits.ts";
import { type Viewer, isShared, stepPath } from "../../contracts/viewer.ts";
import { type ToldCall, callWords, isPlainResult, manyCalls } from "../call-words.ts";
import { type Html, html, type IconName, icon } from "../html.ts";
import { timeOf } from "./figures.ts";
import { counted } from "./states.ts";

export interface ShownSteps {
  view: RunView;
  viewer: Viewer;
  /** Newest first. */
  steps: readonly RunEvent[];
  now: number;
}

type Finished = Extract<RunEvent, { kind: "tool_finished" }>;

interface Call {
  event: Extract<RunEvent, { kind: "tool_started" }>;
  end: Finished | undefined;
}

/** Fewer calls in a row are not worth a fold. */
export const MIN_FOLDED = 3;

/** Entries of the same kind that follow each other, in lists of their own. */
export function inRuns<T>(entries: readonly T[], kindOf: (entry: T) => string | undefined): T[][] {
  const runs: T[][] = [];
  let last: string | undefined;
  for (const entry of entries) {
    const kind = kindOf(entry);
    if (kind !== undefined && kind === last) runs.at(-1)?.push(entry);
    else runs.push([entry]);
    last = kind;
  }
  return runs;
}

export function stepRows(shown: ShownSteps): Html[] {
  const ended = new Map<string, Finished>();
  const rows: (Call | Html)[] = [];
  const say = ({ seq, time }: RunEvent, sign: IconName, line: Html | string): void => {
    const when = html`<span class="num">${timeOf(time)}</span>`;
    rows.push(html`<li class="say" id="step-${seq}">${icon(sign)}<span>${line}</span>${when}</li>`);
  };
  let laterAttempt = 0;
  for (const event of shown.steps) {
    if (event.kind === "model_retry") {
      const { message, attempt, pauseMs } = event.data;
      const [failure] = message.split(/ (?=Attempt \d+ in )/);
      const next = event.time + pauseMs;
      const isNext = event.seq === shown.steps[0]?.seq && !isFinal(shown.view.run.status);
      const more = isNext
        ? html`Attempt ${attempt + 1} in <span data-until="${next}">${duration(next - shown.now)}</span>`
        : `${attempt} ${attempt === 1 ? "retry" : "retries"}`;
      // The newest attempt stands for all of its call.
      if (attempt >= laterAttempt) say(event, "again", html`${failure} ${more}.`);
      laterAttempt = attempt;
    } else if (event.kind === "tool_finished") ended.set(event.data.callId, event);
    else if (event.kind === "tool_started") rows.push({ event, end: ended.get(event.data.callId) });
    else {
      const line = event.kind === "model_called" ? event.data.text : stepOf(event);
      if (line === undefined || line === "") continue;
      const isRequest = event.kind === "approval_requested" || event.kind === "question_asked";
      say(event, isRequest ? "ask" : "say", shownLine(event, line, shown.viewer));
    }
  }
  // Calls of a program stay apart from those around it.
  const kindOf = (row: Call | Html): string | undefined =>
    "event" in row ? `${row.event.data.tool} ${row.event.data.within ?? ""}` : undefined;
  return inRuns(rows, kindOf).flatMap((run) => {
    const calls = run.filter((row) => "event" in row);
    return calls.length < MIN_FOLDED
      ? run.map((row) => ("event" in row ? callRow(row, shown) : row))
      : [manyRow(calls, shown)];
  });
}

/** The words of an event. Those of a question stand as they were asked, and a call with its object as code. */
export function shownLine(event: RunEvent, text: string, viewer: Viewer): Html | string {
  const { kind, data } = event;
  if (kind === "question_asked" || kind === "question_answered")
    return capital(oneLine(displayText(text), MAX_LINE));
  const call = kind === "approval_requested" || kind === "approval_decided" ? data.call : undefined;
  const plain = oneLine(withoutMarks(text), MAX_LINE);
  if (call === undefined) return kind === "model_called" ? plain : capital(plain);
  // Pages are shown to the owner of a run, unless they are shared.
  const owner = isShared(viewer) ? "The owner" : "You";
  const person = "by" in data && data.by === "answer_deep_agent" ? "The client’s model" : owner;
  const line = capital(kind === "approval_decided" ? decidedText(data, person) : text);
  const [object, quoted] = [objectText(call), call.kind === "command" ? 1 : 0];
  const at = line.lastIndexOf(object);
  return html`${line.slice(0, at - quoted)}<code>${object}</code>${line.slice(at + object.length + quoted)}`;
}

const MAX_LINE = 600;

/** Markdown without its marks, for lines of plain text. */
export const withoutMarks = (markdown: string): string =>
  headOf(markdown, 2000)
    .replace(/^(?:[ \t]*(?:(?:`{3}|~{3}).*|[-*_]{3,})|(?=.*-{3})[|: \t-]+)$/gm, "")
    .replace(/^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ x]\][ \t]+)?)/gm, "")
    .replace(/!?\[([^\][]*)\]\([^()\s]*\)/g, "$1")
    .replace(/(?<!\w)(?:\*\*|~~)(?=\S)|(?<=\S)(?:\*\*|~~)(?!\w)/g, "")
    .replace(/(?<=^|[\s(])\*(?=\w)|(?<=[\w.!?)])\*(?=$|[\s).,;:!?])/gm, "")
    .replace(/`+/g, "")
    .replace(/[ \t]+/g, " ")
    .replace(/^ ?\| ?| ?\| ?$/gm, "")
    .replace(/ \| /g, " · ");

const TOOL_ICONS: readonly [RegExp, IconName][] = [
  [/^(grep|glob|ls|search)/, "find"],
  [/^(write_file|edit_file|delete)/, "diff"],
  [/^read_/, "file"],
  [/^(execute|run_program)/, "term"],
  [/^task/, "fork"],
  [/memor/, "mind"],
];

const toolIcon = (tool: string): IconName => TOOL_ICONS.find(([names]) => names.test(tool))?.[1] ?? "plug";

export function callLine(call: ToldCall, isOver: boolean): Html {
  const { verb, about } = callWords(call, isOver);
  if (about === "") return html`${verb}`;
  return call.tool === "task" ? html`${verb} ${about}` : html`${verb} <code>${about}</code>`;
}

function callRow({ event, end }: Call, { view, viewer }: ShownSteps): Html {
  const { tool } = event.data;
  const isOver = end !== undefined || isFinal(view.run.status);
  const isBad = end?.data.status === "error";
  const time = end === undefined ? 0 : end.time - event.time;
  const took = end === undefined ? [] : [time < 10_000 ? `${(time / 1000).toFixed(1)}s` : duration(time)];
  const result = end === undefined ? [callState({ event, end }, view)] : resultLines(end.data, isBad);
  const isInner = event.data.within !== undefined;
  const marks = [isBad && "bad", isInner && "inner"].filter(Boolean).join(" ");
  // The thread has the messages of the program only, not those of its calls.
  const hasTexts = !isInner && viewer !== "app" && !isShared(viewer);
  return html`<li id="step-${event.seq}" class="${marks}" ${isOver && html` data-ended`}>
    ${icon(toolIcon(tool))}<span class="anywhere">${callLine(event.data, isOver)}</span
    ><span class="num">${timeOf(event.time)}</span>
    <span class="result anywhere">${[...result, ...took].join(" · ")}</span>
    ${hasTexts && showAll(stepPath(view.run.id, event.seq), event.data)}
  </li>`;
}

function callState({ event: { agent, data } }: Call, view: RunView): string {
  if (isFinal(view.run.status)) return "did not finish";
  return waitsIn(view).ofCall(agent, data) === undefined ? "at work" : "waiting";
}

function resultLines({ tool, summary }: Finished["data"], isBad: boolean): string[] {
  if (summary === "" || (!isBad && isPlainResult(tool))) return isBad ? ["Failed"] : [];
  // A read line begins with its number.
  const line = withoutMarks(tool === "read_file" ? summary.replace(/^\d+ /, "") : summary).trim();
  const failed = line.startsWith("Error: ") ? line.slice("Error: ".length) : `Failed: ${line}`;
  return [isBad ? failed : line];
}

/** `calls`: newest first, all of one tool. */
function manyRow(calls: readonly Call[], shown: ShownSteps): Html {
  const [newest, oldest] = [calls.at(0), calls.at(-1)];
  if (newest === undefined || oldest === undefined) return html``;
  const { tool } = newest.event.data;
  const failed = calls.filter(({ end }) => end?.data.status === "error").length;
  const open: Record<string, number> = {};
  for (const call of calls.filter(({ end }) => end === undefined)) {
    const word = callState(call, shown.view);
    open[word] = (open[word] ?? 0) + 1;
  }
  const facts = counted({ ...open, failed }).join(", ");
  const id = `steps-${oldest.event.seq}`;
  return html`<li class="${newest.event.data.within === undefined ? "many" : "many inner"}" id="${id}">
    <details id="${id}-fold" data-kept>
      <summary class="${failed > 0 && "bad"}">
        ${icon(toolIcon(tool))}<span>${manyCalls(tool, calls.length)}${icon("chev")}</span
        ><span class="num">${timeOf(newest.event.time)}</span>
        ${facts !== "" && html`<span class="result">${facts}</span>`}
      </summary>
      <ol>
        ${calls.map((call) => callRow(call, shown))}
      </ol>
    </details>
  </li>`;
}

/** The script replaces this element with the loaded content. */
function showAll(address: string, call: ToldCall): Html {
  const { verb, about } = callWords(call, true);
  return html`<div class="show-all">
    <a class="link" data-inline href="${address}"
      >Show all<span class="hide"> of ${oneLine(`${verb} ${about}`, 100)}</span></a
    >
  </div>`;
}
