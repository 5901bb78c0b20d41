import { oneLine } from "../../../core/text.ts";
import { compare, nameOf } from "./areas.ts";
import type { Assignment } from "./assignment.ts";
import type { OfferedTool } from "./conversation.ts";
import { type Findings, MARKDOWN } from "./findings.ts";
import type { Match } from "./tool-output.ts";

/** Titles of the parts of a report. */
const DEFINITIONS_TITLE = "Definitions and headings";
const MARKS_TITLE = "Open marks";
const READ_TITLE = "Read, how it begins";

const MATCHES_SHOWN = 5;
const DEFINITIONS_SHOWN = 10;
const MARKS_SHOWN = 8;
const PROBLEMS_SHOWN = 3;
const LINE_LIMIT = 140;

/** The report on one area: counts and places, nothing that was not found. */
export function areaReport(
  { folders }: Assignment,
  findings: Findings,
  tools: ReadonlyMap<string, OfferedTool>,
): string {
  const place = folders.map(({ path }) => path).join(", ");
  if (!tools.has("glob") && !tools.has("grep")) {
    return `Nothing could be examined in ${place}: neither glob nor grep is available here.`;
  }
  const { words, definitions, marks, problems } = findings;
  return [
    `Files in ${place}: ${filesLine(findings)}`,
    ...words.map(({ word, matches }) => wordLines(word, matches)),
    section(DEFINITIONS_TITLE, definitions, DEFINITIONS_SHOWN),
    section(MARKS_TITLE, marks, MARKS_SHOWN),
    readLines(findings),
    ...problems.slice(0, PROBLEMS_SHOWN).map((problem) => `Not possible: ${oneLine(problem, LINE_LIMIT)}`),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function filesLine({ files, more }: Findings): string {
  if (files.length === 0) return "none";
  const counts = new Map<string, number>();
  for (const path of files) {
    const kind = /.(\.[^.]+)$/.exec(nameOf(path))?.[1] ?? "no extension";
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const kinds = [...counts].sort((a, b) => b[1] - a[1] || compare(a[0], b[0])).slice(0, 5);
  const list = kinds.map(([kind, count]) => `${count} ${kind}`).join(", ");
  return `${files.length}${more > 0 ? ` listed, ${more} more not listed` : ""} (${list})`;
}

function wordLines(word: string, matches: readonly Match[]): string {
  if (matches.length === 0) return `${code(word)}: no matches`;
  const files = new Set(matches.map(({ path }) => path)).size;
  const head = `${code(word)}: ${matches.length} ${matches.length === 1 ? "match" : "matches"} in ${files} ${files === 1 ? "file" : "files"}`;
  return `${head}\n${spread(matches, MATCHES_SHOWN).map(citation).join("\n")}`;
}

function section(title: string, matches: readonly Match[], shown: number): string {
  if (matches.length === 0) return "";
  const count = matches.length > shown ? `${matches.length}, ${shown} shown` : `${matches.length}`;
  return `${title} (${count}):\n${spread(matches, shown).map(citation).join("\n")}`;
}

function readLines({ read }: Findings): string {
  const rows = read.flatMap(({ path, lines }) => {
    const telling = lines.filter(({ text }) => /[\p{L}\p{N}]{3}/u.test(text));
    return telling.slice(0, MARKDOWN.test(path) ? 2 : 1).map((line) => citation({ path, ...line }));
  });
  return rows.length === 0 ? "" : `${READ_TITLE}:\n${rows.join("\n")}`;
}

/** Some of the matches, from as many files as possible. */
function spread(matches: readonly Match[], count: number): Match[] {
  const byFile = new Map<string, Match[]>();
  for (const match of matches) byFile.set(match.path, [...(byFile.get(match.path) ?? []), match]);
  const queues = [...byFile.values()];
  const picked: Match[] = [];
  for (let row = 0; picked.length < Math.min(count, matches.length); row += 1) {
    for (const queue of queues)
      if (queue[row] !== undefined && picked.length < count) picked.push(queue[row] as Match);
  }
  return picked.sort((a, b) => compare(a.path, b.path) || a.line - b.line);
}

/** Citations of a report by what they show; the order of each is the report's. */
export function citationsIn(report: string): { words: string[]; marks: string[]; read: string[] } {
  const found = { words: [] as string[], marks: [] as string[], read: [] as string[] };
  for (const part of report.split("\n\n")) {
    const [title = "", ...rows] = part.split("\n");
    const lines = rows.filter((row) => /^- \/.*:\d+ /.test(row));
    if (title.startsWith(MARKS_TITLE)) found.marks.push(...lines);
    else if (title.startsWith(READ_TITLE)) found.read.push(...lines);
    else if (title.startsWith("`")) found.words.push(...lines);
  }
  return found;
}

function citation({ path, line, text }: Match): string {
  return `- ${path}:${line} ${code(oneLine(text, LINE_LIMIT))}`;
}

/** `text` as Markdown code, whatever backticks it has. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const room = longest > 0 ? " " : "";
  return `${fence}${room}${text}${room}${fence}`;
}
