import { type AreaFolder, isExamined, nameOf, relevance } from "./areas.ts";
import type { Assignment } from "./assignment.ts";
import { type CallRecord, callsOf, failureText, textArgument, type Turn } from "./conversation.ts";
import { type Match, parseLines, parseMatches, parsePaths } from "./tool-output.ts";

/** Names that start a definition or a heading in most languages; RE2 syntax. */
const DEFINITION =
  /^(?:(?:export|public|private|protected|static|abstract|async|default|pub|final) ){0,4}(?:function|class|interface|struct|trait|enum|def|fn|func|module|type) +[A-Za-z_]|^export const [A-Za-z_]|^#{1,3} ./;
const MARK = /\b(?:TODO|FIXME|HACK|XXX)\b/;
export const DEFINITION_PATTERN: string = DEFINITION.source;
export const MARK_PATTERN: string = MARK.source;

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

export function findingsOf(turn: Turn, { folders, words }: Assignment): Findings {
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
export function filesToRead({ files, words, definitions }: Findings, count: number): string[] {
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

export const MARKDOWN = /\.(?:md|mdx|markdown)$/i;
const DULL = /^(?:licen[cs]e.*|\..*|.*\.(?:lock|snap))$/i;
const TELLING =
  /^(?:readme(?:\..*)?|index\.\w+|main\.\w+|mod\.rs|lib\.rs|__init__\.py|package\.json|pyproject\.toml|cargo\.toml|go\.mod|skill\.md|agents\.md)$/i;
const NOT_TEXT =
  /\.(?:png|jpe?g|gif|webp|ico|bmp|svg|pdf|zip|t?gz|bz2|xz|7z|jar|war|class|o|so|a|dll|dylib|exe|bin|wasm|woff2?|ttf|otf|eot|mp[34]|wav|ogg|mov|avi|mkv|sqlite3?|db|lock|map|min\.js|pyc|parquet|npy)$/i;
