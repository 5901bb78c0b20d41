/** The rules of a subagent that examines one area, and its report. */
import { oneLine } from "../../../core/text.ts";
import {
  type CallRecord,
  type Match,
  type OfferedTool,
  type PlannedCall,
  type Step,
  type Turn,
  callsOf,
  failureText,
  parseLines,
  parseMatches,
  parsePaths,
  textArgument,
} from "./conversation.ts";
import {
  type AreaFolder,
  type Assignment,
  compare,
  isExamined,
  nameOf,
  readAssignment,
  relevance,
} from "./survey.ts";

const FILES_TO_READ = 3;
const LINES_TO_READ = 60;
const MATCHES_PER_SEARCH = 100;
/** Files searched one by one when a folder is examined without its subfolders. */
const SINGLE_FILES = 10;

/** The next step of an agent that examines part of the files itself and answers with a report. */
export function nextExamineStep(turn: Turn, tools: ReadonlyMap<string, OfferedTool>): Step {
  const assignment = readAssignment(turn.task, "/workspace/");
  const findings = findingsOf(turn, assignment);
  return (
    listStep(turn, tools, assignment) ??
    searchStep(turn, tools, assignment) ??
    readStep(turn, tools, findings) ?? { text: areaReport(assignment, findings, tools), calls: [] }
  );
}

function listStep(
  turn: Turn,
  tools: ReadonlyMap<string, OfferedTool>,
  { folders }: Assignment,
): Step | undefined {
  if (!tools.has("glob") || callsOf(turn, "glob").length > 0) return undefined;
  const calls = folders.map(({ path, deep }) => ({
    name: "glob",
    args: { pattern: deep ? "**/*" : "*", path },
  }));
  return { text: `Listing ${folders.map(({ path }) => path).join(", ")}.`, calls };
}

function searchStep(
  turn: Turn,
  tools: ReadonlyMap<string, OfferedTool>,
  assignment: Assignment,
): Step | undefined {
  if (!tools.has("grep") || callsOf(turn, "grep").length > 0) return undefined;
  const calls = assignment.folders.flatMap((folder) =>
    folder.deep ? folderSearches(folder, assignment.words) : fileSearches(turn, folder, assignment.words),
  );
  if (calls.length === 0) return undefined;
  const words = assignment.words.map((word) => `"${word}"`).join(", ");
  return {
    text: `Searching${words === "" ? "" : ` for ${words},`} for definitions and for open marks.`,
    calls,
  };
}

function folderSearches({ path }: AreaFolder, words: readonly string[]): PlannedCall[] {
  return [
    ...words.map((word) => search(path, word, { case_sensitive: false })),
    search(path, DEFINITION_PATTERN, { regex: true }),
    search(path, MARK_PATTERN, { regex: true }),
  ];
}

/** One search per file: a search of the folder would go into its subfolders. */
function fileSearches(turn: Turn, { path: folder }: AreaFolder, words: readonly string[]): PlannedCall[] {
  const listing = callsOf(turn, "glob").find((call) => textArgument(call, "path") === folder);
  const files = parsePaths(listing?.result ?? "").paths;
  const findings = findingsOf(turn, {
    goal: "",
    words: [...words],
    folders: [{ path: folder, deep: false }],
  });
  const pattern = [`(?i:${words.map(literal).join("|")})`, DEFINITION_PATTERN, MARK_PATTERN]
    .slice(words.length === 0 ? 1 : 0)
    .join("|");
  return filesToRead(findings, SINGLE_FILES)
    .filter((path) => files.includes(path))
    .map((path) => search(path, pattern, { regex: true }));
}

function search(path: string, pattern: string, options: Record<string, unknown>): PlannedCall {
  return { name: "grep", args: { pattern, path, max_count: MATCHES_PER_SEARCH, ...options } };
}

function literal(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function readStep(turn: Turn, tools: ReadonlyMap<string, OfferedTool>, findings: Findings): Step | undefined {
  if (!tools.has("read_file") || callsOf(turn, "read_file").length > 0) return undefined;
  const files = filesToRead(findings, FILES_TO_READ);
  if (files.length === 0) return undefined;
  const calls = files.map((path) => ({
    name: "read_file",
    args: { file_path: path, offset: startOf(path, findings), limit: LINES_TO_READ },
  }));
  return { text: `Reading ${files.join(", ")}.`, calls };
}

/** From the top, unless the first match is further down than one page. */
function startOf(path: string, { words }: Findings): number {
  const lines = words.flatMap(({ matches }) =>
    matches.filter((match) => match.path === path).map(({ line }) => line),
  );
  const first = lines.length === 0 ? 0 : Math.min(...lines);
  return first > LINES_TO_READ ? first - 15 : 0;
}

/** Names that start a definition or a heading in most languages; RE2 syntax. */
const DEFINITION =
  /^(?:(?:export|public|private|protected|static|abstract|async|default|pub|final) ){0,4}(?:function|class|interface|struct|trait|enum|def|fn|func|module|type) +[A-Za-z_]|^export const [A-Za-z_]|^#{1,3} ./;
const MARK = /\b(?:TODO|FIXME|HACK|XXX)\b/;
const DEFINITION_PATTERN: string = DEFINITION.source;
const MARK_PATTERN: string = MARK.source;

/** Everything an examination has found so far. */
export interface Findings {
  files: string[];
  /** Files that are there but were not listed. */
  more: number;
  words: { word: string; matches: Match[] }[];
  definitions: Match[];
  marks: Match[];
  read: { path: string; lines: { line: number; text: string }[] }[];
  problems: string[];
}

function findingsOf(turn: Turn, { folders, words }: Assignment): Findings {
  const listed = callsOf(turn, "glob").filter(({ failed }) => !failed);
  const pages = listed.map(({ result }) => parsePaths(result));
  const inside = (path: string) => folders.some((folder) => belongs(path, folder));
  const matches = unique(
    callsOf(turn, "grep").flatMap((call) => (call.failed ? [] : parseMatches(call.result))),
  ).filter(({ path }) => inside(path));
  const marks = matches.filter(({ text }) => MARK.test(text));
  return {
    files: [...new Set(pages.flatMap(({ paths }) => paths))].filter(inside).sort(),
    more: pages.reduce((sum, { more }) => sum + more, 0),
    words: words.map((word) => ({ word, matches: matches.filter(({ text }) => contains(text, word)) })),
    definitions: matches.filter(isDefinition),
    marks,
    read: callsOf(turn, "read_file")
      .filter(({ failed }) => !failed)
      .map(readFile),
    problems: turn.calls.filter(isProblem).map((call) => `${call.name}: ${failureText(call)}`),
  };
}

/** The files worth reading, best first: with matches, named like the task, or telling what the rest is. */
function filesToRead({ files, words, definitions }: Findings, count: number): string[] {
  const score = new Map<string, number>();
  const add = (path: string, points: number) => score.set(path, (score.get(path) ?? 0) + points);
  for (const { word, matches } of words) {
    for (const { path } of matches.slice(0, 100)) add(path, 2);
    for (const path of files) add(path, 6 * relevance(nameOf(path), [word]));
  }
  for (const { path } of definitions.slice(0, 200)) add(path, 0.5);
  for (const path of files) {
    if (TELLING.test(nameOf(path))) add(path, 5);
    if (DULL.test(nameOf(path))) add(path, -5);
  }
  return files
    .filter((path) => !NOT_TEXT.test(path))
    .sort((a, b) => (score.get(b) ?? 0) - (score.get(a) ?? 0) || a.length - b.length || (a < b ? -1 : 1))
    .slice(0, count);
}

function belongs(path: string, { path: folder, deep }: AreaFolder): boolean {
  if (!path.startsWith(folder) || !isExamined(path, folder)) return false;
  return deep || !path.slice(folder.length).includes("/");
}

/** A line that starts with `#` is a heading in Markdown and a comment elsewhere. */
function isDefinition({ path, text }: Match): boolean {
  return DEFINITION.test(text) && (!text.startsWith("#") || MARKDOWN.test(path));
}

function contains(text: string, word: string): boolean {
  return text.toLowerCase().includes(word.toLowerCase());
}

function unique(matches: readonly Match[]): Match[] {
  const byPlace = new Map(matches.map((match) => [`${match.path}\n${match.line}`, match]));
  return [...byPlace.values()];
}

function readFile(call: CallRecord): Findings["read"][number] {
  return {
    path: textArgument(call, "file_path") || textArgument(call, "path"),
    lines: parseLines(call.result),
  };
}

/** A call that failed for another reason than that nothing was there. */
function isProblem(call: CallRecord): boolean {
  return call.failed && !/is binary|not valid UTF-8/.test(call.result);
}

const MARKDOWN = /\.(?:md|mdx|markdown)$/i;
const DULL = /^(?:licen[cs]e.*|\..*|.*\.(?:lock|snap))$/i;
const TELLING =
  /^(?:readme(?:\..*)?|index\.\w+|main\.\w+|mod\.rs|lib\.rs|__init__\.py|package\.json|pyproject\.toml|cargo\.toml|go\.mod|skill\.md|agents\.md)$/i;
const NOT_TEXT =
  /\.(?:png|jpe?g|gif|webp|ico|bmp|svg|pdf|zip|t?gz|bz2|xz|7z|jar|war|class|o|so|a|dll|dylib|exe|bin|wasm|woff2?|ttf|otf|eot|mp[34]|wav|ogg|mov|avi|mkv|sqlite3?|db|lock|map|min\.js|pyc|parquet|npy)$/i;

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
function areaReport(
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
