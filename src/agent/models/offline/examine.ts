/** The rules of an agent that examines part of the files itself, and its report. */
import { oneLine } from "../../../core/text.ts";
import { counted } from "../../../tools/format.ts";
import type { Match, StepRow, OfflineStep, Tools, OfflineTurn } from "./conversation.ts";
import {
  callsNamed,
  failureText,
  nextStep,
  parseLines,
  parseMatches,
  parsePaths,
  callPath,
} from "./conversation.ts";
import type { AreaFolder } from "./survey.ts";
import { WORKSPACE_FOLDER, compare, isExamined, lastSegment, readAssignment, relevance } from "./survey.ts";

const FILES_TO_READ = 3;

type Examination = ReturnType<typeof readExamination>;

const EXAMINE_STEPS: readonly StepRow<Examination>[] = [
  {
    tool: "glob",
    text: "Listing the files.",
    args: ({ folders }) => folders.map(({ path, deep }) => ({ pattern: deep ? "**/*" : "*", path })),
  },
  {
    tool: "grep",
    text: "Searching for the words, for definitions and for open marks.",
    args: ({ folders, words }) =>
      folders.flatMap(({ path, deep }) => {
        const place = { path, max_count: 100, ...(deep ? {} : { glob: "./*" }) };
        return [
          ...words.map((pattern) => ({ pattern, case_sensitive: false, ...place })),
          ...[DEFINITION, OPEN_MARK].map(({ source }) => ({ pattern: source, regex: true, ...place })),
        ];
      }),
  },
  {
    tool: "read_file",
    text: "Reading the files that seem to matter most.",
    args: (work) => filesToRead(work).map((path) => ({ file_path: path, limit: 60 })),
  },
];

/** The next step of an agent that examines part of the files itself and answers with a report. */
export const nextExamineStep = (turn: OfflineTurn, tools: Tools): OfflineStep =>
  nextStep(EXAMINE_STEPS, readExamination(turn, tools), areaReport);

/** An examination: its assignment, and everything found so far. */
function readExamination(turn: OfflineTurn, tools: Tools) {
  const assignment = readAssignment(turn.task, WORKSPACE_FOLDER);
  const isInside = (path: string): boolean =>
    assignment.folders.some((folder) => {
      if (!path.startsWith(folder.path) || !isExamined(path, folder.path)) return false;
      return folder.deep || !path.slice(folder.path.length).includes("/");
    });
  const pages = succeeded(turn, "glob").map(({ result }) => parsePaths(result));
  const matches = succeeded(turn, "grep").flatMap(({ result }) => parseMatches(result));
  // Several searches find the same line.
  const byPlace = new Map(matches.map((match) => [`${match.path}\n${match.line}`, match]));
  return {
    ...assignment,
    turn,
    tools,
    files: [...new Set(pages.flatMap(({ paths }) => paths))].filter(isInside).sort(),
    /** Files that exist but were not listed. */
    more: pages.reduce((sum, { more }) => sum + more, 0),
    matches: [...byPlace.values()].filter(({ path }) => isInside(path)),
  };
}

const succeeded = (turn: OfflineTurn, name: string) => callsNamed(turn, name).filter(({ failed }) => !failed);

const places = (folders: readonly AreaFolder[]): string => folders.map(({ path }) => path).join(", ");

/** Names that start a definition or a heading in most languages; RE2 syntax. */
const DEFINITION =
  /^(?:(?:export|public|private|protected|static|abstract|async|default|pub|final) ){0,4}(?:function|class|interface|struct|trait|enum|def|fn|func|module|type) +[A-Za-z_]|^export const [A-Za-z_]|^#{1,3} ./;
const OPEN_MARK = /\b(?:TODO|FIXME|HACK|XXX)\b/;

/** The files worth reading, best first: with matches, named like the task, or describing the others. */
function filesToRead({ files, words, matches }: Examination): string[] {
  const points = new Map(
    files.map((path) => [
      path,
      6 * relevance(lastSegment(path), words) + (TELLING.test(lastSegment(path)) ? 5 : 0),
    ]),
  );
  const pointsOf = (path: string): number => points.get(path) ?? 0;
  for (const { path } of matches) points.set(path, pointsOf(path) + 1);
  return files
    .filter((path) => !DULL.test(path))
    .sort((a, b) => pointsOf(b) - pointsOf(a) || a.length - b.length || compare(a, b))
    .slice(0, FILES_TO_READ);
}

const MARKDOWN = /\.(?:md|mdx|markdown)$/i;
const TELLING =
  /^(?:readme(?:\..*)?|index\.\w+|main\.\w+|mod\.rs|lib\.rs|__init__\.py|package\.json|pyproject\.toml|cargo\.toml|go\.mod|skill\.md|agents\.md)$/i;
/** Files that are not text, were generated, or are alike everywhere. */
const DULL =
  /\/(?:licen[cs]e[^/]*|\.[^/]*)$|\.(?:png|jpe?g|gif|webp|ico|bmp|svg|pdf|zip|t?gz|bz2|xz|7z|jar|war|class|o|so|a|dll|dylib|exe|bin|wasm|woff2?|ttf|otf|eot|mp[34]|wav|ogg|mov|avi|mkv|sqlite3?|db|lock|snap|map|min\.js|pyc|parquet|npy)$/i;

const LINE_LIMIT = 140;

function areaReport(work: Examination): string {
  const { turn, tools, folders, words, matches } = work;
  if (!tools.has("glob") && !tools.has("grep"))
    return `Nothing could be examined in ${places(folders)}: neither glob nor grep is available here.`;
  const problems = turn.calls.filter(
    ({ failed, result }) => failed && !/is binary|not valid UTF-8/.test(result),
  );
  // A line that starts with `#` is a heading in Markdown and a comment elsewhere.
  const definitions = matches.filter(
    ({ path, text }) => DEFINITION.test(text) && (!text.startsWith("#") || MARKDOWN.test(path)),
  );
  const marks = matches.filter(({ text }) => OPEN_MARK.test(text));
  // The first telling lines of the files that were read, two of a text and one of code.
  const beginnings = succeeded(turn, "read_file").flatMap((call) => {
    const path = callPath(call);
    const telling = parseLines(call.result, path).filter(({ text }) => /[\p{L}\p{N}]{3}/u.test(text));
    return telling.slice(0, MARKDOWN.test(path) ? 2 : 1);
  });
  return [
    `Files in ${places(folders)}: ${filesLine(work)}`,
    ...words.map((word) => {
      const found = matches.filter(({ text }) => text.toLowerCase().includes(word.toLowerCase()));
      return section(code(word), found, 5) || `${code(word)}: no matches`;
    }),
    section("Definitions and headings", definitions, 10),
    section("Open marks", marks, 8),
    section("Read, how it begins", beginnings, 2 * FILES_TO_READ),
    ...problems
      .slice(0, 3)
      .map((call) => `Not possible: ${oneLine(`${call.name}: ${failureText(call)}`, LINE_LIMIT)}`),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function filesLine({ files, more }: Examination): string {
  if (files.length === 0) return "none";
  const counts = new Map<string, number>();
  for (const path of files) {
    const kind = /.(\.[^.]+)$/.exec(lastSegment(path))?.[1] ?? "no extension";
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const kinds = [...counts].sort((a, b) => b[1] - a[1] || compare(a[0], b[0])).slice(0, 5);
  const list = kinds.map(([kind, count]) => `${count} ${kind}`).join(", ");
  return `${files.length}${more > 0 ? ` listed, ${more} more not listed` : ""} (${list})`;
}

/** The number of matches, and citations from as many files as possible; nothing when there are none. */
function section(title: string, matches: readonly Match[], shown: number): string {
  const counts = new Map<string, number>();
  const ranked = matches.map((match) => {
    const rank = counts.get(match.path) ?? 0;
    counts.set(match.path, rank + 1);
    return { ...match, rank };
  });
  if (ranked.length === 0) return "";
  const lines = ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, shown)
    .sort((a, b) => compare(a.path, b.path) || a.line - b.line)
    .map(({ path, line, text }) => `- ${path}:${line} ${code(oneLine(text, LINE_LIMIT))}`);
  const count = `${counted(matches.length, "line")} in ${counted(counts.size, "file")}`;
  return `${title}: ${count}\n${lines.join("\n")}`;
}

/** `text` as Markdown code, whatever backticks it has. */
function code(text: string): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 0);
  const fence = "`".repeat(longest + 1);
  const room = longest > 0 ? " " : "";
  return `${fence}${room}${text}${room}${fence}`;
}
