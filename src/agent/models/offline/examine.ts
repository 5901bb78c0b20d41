import type { AreaFolder } from "./areas.ts";
import { type Assignment, readAssignment } from "./assignment.ts";
import {
  callsOf,
  type OfferedTool,
  type PlannedCall,
  type Step,
  type Turn,
  textArgument,
} from "./conversation.ts";
import { areaReport } from "./area-report.ts";
import { DEFINITION_PATTERN, type Findings, filesToRead, findingsOf, MARK_PATTERN } from "./findings.ts";
import { parsePaths } from "./tool-output.ts";

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
