/** Examines a part of the files for the offline model, and reports. `rules.json` has the steps. */
import { baseName } from "../../../backends/paths.ts";
import { groupBy } from "../../../core/group-by.ts";
import { fill, oneLine } from "../../../core/text.ts";
import { counted } from "../../../tools/format.ts";
import {
  type Match,
  type OfflineTurn,
  type Tools,
  callPath,
  callsNamed,
  failureText,
} from "./conversation.ts";
import { nextStep, parseLines, parseMatches, parsePaths } from "./conversation.ts";
import names from "./file-names.json" with { type: "json" };
import rules from "./rules.json" with { type: "json" };
import { compare, isExamined, isListed, readAssignment, relevance } from "./survey.ts";

/** The next step of an agent that examines part of the files itself and answers with a report. */
export function nextExamineStep(turn: OfflineTurn, tools: Tools) {
  const work = readExamination(turn);
  const { folders, words } = work;
  const searches = [
    ...words.map((pattern) => ({ pattern, case_sensitive: false })),
    ...[DEFINITION, OPEN_MARK].map(({ source }) => ({ pattern: source, regex: true })),
  ];
  const due = {
    files: folders.map(({ path, deep }) => ({ pattern: deep ? "**/*" : "*", path })),
    matches: folders.flatMap(({ path, deep }) =>
      searches.map((search) => ({ ...search, path, max_count: 100, ...(deep ? {} : { glob: "./*" }) })),
    ),
    beginnings: filesToRead(work).map((path) => ({ file_path: path, limit: 60 })),
  };
  const report = tools.has("glob") || tools.has("grep") ? areaReport(work) : fill(rules.noTools, work.places);
  return nextStep(rules.examine, { turn, tools, due }, () => report);
}

type Examination = ReturnType<typeof readExamination>;

/** An examination: its assignment, and everything found so far. */
function readExamination(turn: OfflineTurn) {
  const { folders, words } = readAssignment(turn.task, rules.places.workspace);
  const isInside = (file: string): boolean =>
    folders.some(({ path, deep }) => {
      const isThere = file.startsWith(path) && (deep || !file.slice(path.length).includes("/"));
      return isThere && isExamined(file, path);
    });
  const succeeded = (name: string) => callsNamed(turn, name).filter(({ failed }) => !failed);
  const pages = succeeded("glob").map(({ result }) => parsePaths(result));
  const matches = succeeded("grep").flatMap(({ result }) => parseMatches(result));
  // Several searches find the same line.
  const byPlace = new Map(matches.map((match) => [`${match.path}\n${match.line}`, match]));
  return {
    folders,
    words,
    places: folders.map(({ path }) => path).join(", "),
    files: [...new Set(pages.flatMap(({ paths }) => paths))].filter(isInside).sort(),
    /** Files that exist but were not listed. */
    more: pages.reduce((sum, { more }) => sum + more, 0),
    matches: [...byPlace.values()].filter(({ path }) => isInside(path)),
    pages: succeeded("read_file"),
    problems: turn.calls.filter(({ failed, result }) => failed && !/is binary|not valid UTF-8/.test(result)),
  };
}

/** Names that start a definition or a heading in most languages; RE2 syntax. */
const DEFINITION =
  /^(?:(?:export|public|private|protected|static|abstract|async|default|pub|final) ){0,4}(?:function|class|interface|struct|trait|enum|def|fn|func|module|type) +[A-Za-z_]|^export const [A-Za-z_]|^#{1,3} ./;
const OPEN_MARK = /\b(?:TODO|FIXME|HACK|XXX)\b/;
const MARKDOWN = /\.(?:md|mdx|markdown)$/i;
const TELLING =
  /^(?:readme(?:\..*)?|index\.\w+|main\.\w+|mod\.rs|lib\.rs|__init__\.py|package\.json|pyproject\.toml|cargo\.toml|go\.mod|skill\.md|agents\.md)$/i;

/** The files worth reading, best first: with matches, named like the task, or describing the others. */
function filesToRead({ files, words, matches }: Examination): string[] {
  const found = groupBy(matches, ({ path }) => path);
  const points = (path: string): number => {
    const name = baseName(path);
    return 6 * relevance(name, words) + (TELLING.test(name) ? 5 : 0) + (found.get(path)?.length ?? 0);
  };
  return files
    .filter((path) => !isListed(baseName(path).toLowerCase(), names.unreadable))
    .sort((a, b) => points(b) - points(a) || a.length - b.length)
    .slice(0, rules.limits.filesToRead);
}

function areaReport({ places, files, more, words, matches, pages, problems }: Examination): string {
  const endings = files.map((path) => /.(\.[^.]+)$/.exec(baseName(path))?.[1] ?? "no extension").sort();
  const kinds = [...groupBy(endings, (ending) => ending)]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, 5)
    .map(([ending, { length }]) => `${length} ${ending}`);
  const listed = `${files.length}${more > 0 ? ` listed, ${more} more not listed` : ""} (${kinds.join(", ")})`;
  // A line that starts with `#` is a heading in Markdown and a comment elsewhere.
  const definitions = matches.filter(
    ({ path, text }) => DEFINITION.test(text) && (!text.startsWith("#") || MARKDOWN.test(path)),
  );
  const marks = matches.filter(({ text }) => OPEN_MARK.test(text));
  // The first telling lines of the files that were read, two of a text and one of code.
  const beginnings = pages.flatMap((call) => {
    const path = callPath(call);
    const telling = parseLines(call.result, path).filter(({ text }) => /[\p{L}\p{N}]{3}/u.test(text));
    return telling.slice(0, MARKDOWN.test(path) ? 2 : 1);
  });
  return [
    `Files in ${places}: ${files.length === 0 ? "none" : listed}`,
    ...words.map((word) => {
      const found = matches.filter(({ text }) => text.toLowerCase().includes(word.toLowerCase()));
      return section(code(word), found, 5) || `${code(word)}: no matches`;
    }),
    section("Definitions and headings", definitions, 10),
    section("Open marks", marks, 8),
    section("Read, how it begins", beginnings, 2 * rules.limits.filesToRead),
    ...problems
      .slice(0, 3)
      .map((call) => `Not possible: ${oneLine(`${call.name}: ${failureText(call)}`, rules.limits.line)}`),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** The number of matches, and citations from as many files as possible; nothing when there are none. */
function section(title: string, matches: readonly Match[], shown: number): string {
  if (matches.length === 0) return "";
  const files = groupBy(matches, ({ path }) => path);
  const rank = (match: Match): number => files.get(match.path)?.indexOf(match) ?? 0;
  const lines = matches
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, shown)
    .sort((a, b) => compare(a.path, b.path) || a.line - b.line)
    .map(({ path, line, text }) => `- ${path}:${line} ${code(oneLine(text, rules.limits.line))}`);
  const count = `${counted(matches.length, "line")} in ${counted(files.size, "file")}`;
  return [`${title}: ${count}`, ...lines].join("\n");
}

/** `text` as Markdown code, whatever backticks it has. */
function code(text: string): string {
  const runs = text.match(/`+/g) ?? [];
  const fence = "`".repeat(1 + Math.max(0, ...runs.map(({ length }) => length)));
  return runs.length === 0 ? `\`${text}\`` : `${fence} ${text} ${fence}`;
}
