/**
 * Renders a unified diff as a table: numbers of both files, sign, code with its changed words marked. It is complete
 * without scripts, because people approve the diff that they see; the page's script only adds colours.
 */
import { type DiffCounts, type DiffLine, diffLines, displayDiff } from "../../../core/diff.ts";
import { displayText } from "../../../core/text.ts";
import { Html, html } from "../html.ts";
import { copyButton } from "../room/pieces.ts";
import { type Range, changedWords } from "./changed-words.ts";
import { languageOf } from "./texts.ts";

export interface DiffView {
  /** For readers of the screen, such as "What would change in src/alarms.js". */
  label: string;
  /** Its suffix determines the language. */
  path: string;
  /** Shows all lines at once. Default: a long diff is folded. */
  isUnfolded?: boolean;
  /** One place of a file, whose counts and lines stand above it already. */
  isPlace?: boolean;
  /** Lines that the whole change adds and removes. Default: those of a diff that was not cut. */
  counts?: DiffCounts | undefined;
  /** Remark beside the counts, such as the name of the other side. */
  remark?: string | undefined;
  /** Address of unchanged lines by `old`, `new` and `count`; absent where they are not known. */
  lines?: string | undefined;
}

/** Unchanged lines that are not shown. */
export interface Gap {
  /** Numbers of the first in both files. */
  old: number;
  new: number;
  /** Number of lines; 0: all to the end. */
  count: number;
}

/**
 * Rows of one unified diff, as `.diff` in the page's style has them. A run of removed and added lines is a `tbody` by
 * itself, so that a style may put its two sides beside each other. A long diff is folded, a huge one stays text.
 */
export function renderDiff(diff: string, view: DiffView): Html {
  const { label, lines: address, isUnfolded, isPlace } = view;
  const lines = diffLines(displayDiff(diff));
  if (lines.length > MAX.lines) return html`${bar(diff, view)}${asText(diff, lines.length, label)}`;
  const groups = groupLines(lines.filter(({ kind }) => kind !== "file"));
  if (isPlace && groups[0]?.remark !== undefined) groups.shift();
  if (address !== undefined) groups.push(...endGap(groups));
  markChangedWords(groups);
  const isFolded = isUnfolded !== true && lines.length > MAX.unfolded;
  const [shown, rest] = divided(groups, isFolded ? MAX.folded : MAX.lines);
  const more = html`<details class="rest">
    <summary>Show ${rest.reduce((sum, group) => sum + groupSize(group), 0)} more lines</summary>
    ${table(rest, address)}
  </details>`;
  return html`${bar(diff, view)}${element(html`${table(shown, address)}${rest.length > 0 && more}`, view)}`;
}

/** Counts the lines that a diff shows as changed; of a diff that was cut these are fewer than really changed. */
export function diffCounts(diff: string): DiffCounts {
  const kinds = diffLines(diff).map(({ kind }) => kind);
  const count = (kind: DiffLine["kind"]): number => kinds.filter((each) => each === kind).length;
  return { added: count("add"), removed: count("del") };
}

/** Stands above a diff: how much changes, and a button that copies it. */
const bar = (
  diff: string,
  { counts = /^\[diff cut: /m.test(diff) ? undefined : diffCounts(diff), remark, isPlace }: DiffView,
): Html | false =>
  !isPlace &&
  html`<p class="diff-bar">
    ${counts && renderDiffCounts(counts)} ${remark && html`<span class="small dim">${remark}</span>`}
    ${copyButton("Copy diff", { text: diff })}
  </p>`;

/** Unchanged lines to put in the place of a gap, `lines` of them; with another gap for those that are left. */
export function renderGap({ old, new: now, count }: Gap, lines: readonly string[], view: DiffView): Html {
  const rows = lines.map((line, index): Row => {
    const numbers = { oldLine: old + index, newLine: now + index };
    return { kind: "context", ...numbers, code: displayText(line), changed: [] };
  });
  const groups: Group[] = rows.length === 0 ? [] : [{ isChange: false, rows }];
  const left = count - lines.length;
  if (left > 0) groups.push(gapGroup({ old: old + lines.length, new: now + lines.length, count: left }));
  if (rows.length === 0) groups.push({ remark: "The file ends here" });
  return element(table(groups, view.lines), view, html` data-part`);
}

const element = (content: Html, { label, path }: DiffView, attribute?: Html): Html =>
  html`<diff-text
    class="diff"
    data-language="${languageOf(path)}"
    tabindex="0"
    role="group"
    aria-label="${label}"
    ${attribute}
  >
    ${content}
  </diff-text>`;

export const renderDiffCounts = ({ added, removed }: DiffCounts): Html =>
  html`<span class="num small"
    ><span class="plus">+${added}</span> <span class="minus">−${removed}</span></span
  >`;

/** Lines of diffs, and characters whose words are compared in one. */
const MAX = { lines: 5000, unfolded: 400, folded: 200, compared: 20_000 };

const asText = (diff: string, lines: number, label: string): Html =>
  html`<details class="diff rest">
    <summary>Show this change of ${lines} lines as text</summary>
    <pre class="json" tabindex="0" aria-label="${label}">${displayDiff(diff)}</pre>
  </details>`;

interface Row {
  kind: "add" | "del" | "context";
  oldLine?: number | undefined;
  newLine?: number | undefined;
  code: string;
  changed: readonly Range[];
  /** The file ends here without a line break. */
  isUnended?: true;
}

/** Rows that belong together: unchanged ones, a run of changed ones, or a remark between rows. */
type Group =
  | { remark: string; gap?: Gap | undefined }
  | { remark?: undefined; isChange: boolean; rows: Row[] };

function groupLines(lines: readonly DiffLine[]): Group[] {
  const groups: Group[] = [];
  let nextOld = 1;
  for (const [index, { kind, text, oldLine, newLine }] of lines.entries()) {
    const last = groups.at(-1);
    if (kind === "add" || kind === "del" || kind === "context") {
      if (oldLine !== undefined) nextOld = oldLine + 1;
      const isChange = kind !== "context";
      const row: Row = { kind, oldLine, newLine, code: text.slice(1), changed: [] };
      // Added lines end a run: removed ones behind them begin the next.
      const isNext = kind === "del" && last?.remark === undefined && last?.rows.at(-1)?.kind === "add";
      if (last?.remark === undefined && last?.isChange === isChange && !isNext) last.rows.push(row);
      else groups.push({ isChange, rows: [row] });
    } else if (text.startsWith("\\")) {
      const row = last?.remark === undefined ? last?.rows.at(-1) : undefined;
      if (row !== undefined) row.isUnended = true;
    } else {
      const group =
        kind === "hunk" ? hunkGroup(text, nextOld, lines[index + 1]) : { remark: noteRemark(text) };
      if (group !== undefined) groups.push(group);
    }
  }
  return groups;
}

/** The unchanged lines between the previous hunk and this one. */
function hunkGroup(header: string, from: number, next: DiffLine | undefined): Group | undefined {
  const range = /^@@ -(\d+)(?:,(\d+))?(?: \+(\d+)(?:,(\d+))?)?/.exec(header);
  if (range === null) {
    const remark = header.replace(/^@@ ?/, "").replace(/ ?@@$/, "");
    return remark === "" ? undefined : { remark };
  }
  const [, oldStart, oldLines, newStart, newLines] = range;
  const start = next?.oldLine ?? Number(oldStart) + (oldLines === "0" ? 1 : 0);
  const now = Number(newStart) + (newLines === "0" ? 1 : 0);
  const count = start - from;
  return count < 1 ? undefined : gapGroup({ old: from, new: now - count, count });
}

function gapGroup(gap: Gap): Group {
  const { old, count } = gap;
  const remark = count === 1 ? `Line ${old} is unchanged` : `Lines ${old}–${old + count - 1} are unchanged`;
  return { remark, ...(gap.new > 0 ? { gap } : {}) };
}

/** The unchanged lines after the last hunk; none if the file ends there or the diff was cut. */
function endGap(groups: readonly Group[]): Group[] {
  const last = groups.at(-1);
  if (last === undefined || last.remark !== undefined || last.rows.some(({ isUnended }) => isUnended))
    return [];
  // The rows behind the last remark follow each other in the file.
  const rows = groups
    .slice(groups.findLastIndex(({ remark }) => remark !== undefined) + 1)
    .flatMap((group) => (group.remark === undefined ? group.rows : []));
  const old = rows.findLast(({ oldLine }) => oldLine !== undefined)?.oldLine;
  const now = rows.findLast(({ newLine }) => newLine !== undefined)?.newLine;
  if (old === undefined || now === undefined) return [];
  return [{ remark: "What follows is unchanged", gap: { old: old + 1, new: now + 1, count: 0 } }];
}

function noteRemark(note: string): string {
  const cut = /^\[diff cut: (\d+) lines? more not shown\]$/.exec(note);
  if (cut !== null) return cut[1] === "1" ? "1 more line is not shown" : `${cut[1]} more lines are not shown`;
  return note.replace(/^\[(.*)\]$/, "$1");
}

function markChangedWords(groups: readonly Group[]): void {
  let left = MAX.compared;
  for (const group of groups) {
    if (group.remark !== undefined || !group.isChange || left < 0) continue;
    const removed = group.rows.filter(({ kind }) => kind === "del");
    const added = group.rows.filter(({ kind }) => kind === "add");
    const changed = changedWords(codeLines(removed), codeLines(added));
    for (const [index, row] of removed.entries()) row.changed = changed?.removed[index] ?? [];
    for (const [index, row] of added.entries()) row.changed = changed?.added[index] ?? [];
    left -= changed === undefined ? 0 : group.rows.reduce((sum, { code }) => sum + code.length, 0);
  }
}

const codeLines = (rows: readonly Row[]): string[] => rows.map(({ code }) => code);

const groupSize = (group: Group): number => (group.remark === undefined ? group.rows.length : 1);

/** The first groups, with `most` rows together, and the others. A group may have a part in both. */
function divided(groups: readonly Group[], most: number): [Group[], Group[]] {
  const [first, others]: [Group[], Group[]] = [[], []];
  let free = most;
  for (const group of groups) {
    if (free <= 0) others.push(group);
    else if (group.remark !== undefined || group.rows.length <= free) first.push(group);
    else {
      first.push({ ...group, rows: group.rows.slice(0, free) });
      others.push({ ...group, rows: group.rows.slice(free) });
    }
    free -= groupSize(group);
  }
  return [first, others];
}

const table = (groups: readonly Group[], address: string | undefined): Html =>
  html`<table>
    <colgroup>
      <col class="c1" />
      <col class="c2" />
      <col class="c3" />
      <col />
    </colgroup>
    ${groups.map((group) => renderGroup(group, address))}
  </table>`;

function renderGroup(group: Group, address: string | undefined): Html {
  if (group.remark === undefined)
    return html`<tbody>
      ${group.rows.map(renderRow)}
    </tbody>`;
  let said: Html | string = group.remark;
  if (group.gap !== undefined && address !== undefined) {
    const { old, new: now, count } = group.gap;
    const name = count === 0 ? "what follows" : count === 1 ? "1 unchanged line" : `${count} unchanged lines`;
    const to = `${address}&old=${old}&new=${now}&count=${count}`;
    said = html`<a class="link" data-lines href="${to}">Show ${name}</a>`;
  }
  return html`<tbody>
    <tr class="gap">
      <td class="ln"></td>
      <td class="ln"></td>
      <td class="sg"></td>
      <td>${said}</td>
    </tr>
  </tbody>`;
}

const LOOKS = { add: ["a", "+"], del: ["d", "−"], context: ["c", ""] } as const;

function renderRow(row: Row): Html {
  const [look, sign] = LOOKS[row.kind];
  const parts: (Html | string)[] = [];
  let at = 0;
  for (const { start, end } of row.changed) {
    parts.push(...codePart(row, at, start), html`<mark>${codePart(row, start, end)}</mark>`);
    at = end;
  }
  parts.push(...(row.code === "" ? [" "] : codePart(row, at, row.code.length)));
  if (row.isUnended) parts.push(html`<span class="ws"> no line break at the end</span>`);
  const cell = html`<td class="cd">${parts}</td>`;
  return html`<tr class="${look}">
    <td class="ln">${row.oldLine}</td>
    <td class="ln">${row.newLine}</td>
    <td class="sg">${sign}</td>
    ${cell}
  </tr>`;
}

/** A part of a line. Blanks at its end and tabs of changed lines are marked. */
function codePart({ code, kind }: Row, start: number, end: number): (Html | string)[] {
  if (kind === "context") return [code.slice(start, end)];
  let last = code.length;
  while (last > 0 && (code[last - 1] === "·" || code[last - 1] === "→")) last -= 1;
  const inkEnd = Math.min(Math.max(last, start), end);
  const ink = code.slice(start, inkEnd).split(/(\t)/);
  const blank = html`<span class="ws">·</span>`;
  const marks = Array.from(code.slice(inkEnd, end), (mark) => (mark === "→" ? TAB : blank));
  return [...ink.map((each) => (each === "\t" ? TAB : each)), ...marks];
}

const TAB = html`<span class="ws">→</span>${"\t"}`;
