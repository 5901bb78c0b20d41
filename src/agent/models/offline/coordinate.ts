/** The rules of the main agent: plan, delegate, collect the reports, and answer. */
import { oneLine } from "../../../core/text.ts";
import {
  type OfferedTool,
  type PlannedCall,
  type Step,
  type Turn,
  callsOf,
  failureText,
  parseLines,
  textArgument,
} from "./conversation.ts";
import { citationsIn } from "./examine.ts";
import {
  type Area,
  MEMORY_FILE,
  type Survey,
  type WriteOutcome,
  isTaken,
  mountsOf,
  surveyOf,
  writeAssignment,
  writeOutcome,
} from "./survey.ts";

type Tools = ReadonlyMap<string, OfferedTool>;

const REPORT_NAME = /\/deepagent-report(?:-\d+)?\.md$/;
const MOST_ATTEMPTS = 5;
/** A task that forbids changes gets its report as the answer. */
const READ_ONLY_TASK =
  /\bread[- ]?only\b|\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:writ|chang|modif|edit|touch|creat|sav)/i;

/** The next step of an agent that plans, delegates to subagents and puts their reports together. */
export function nextCoordinatorStep(turn: Turn, tools: Tools): Step {
  const survey = surveyOf(turn);
  return (
    planStep(turn, tools) ??
    lookStep(turn, tools) ??
    listStep(turn, tools, survey) ??
    delegateStep(turn, tools, survey) ??
    reportStep(turn, tools, survey) ??
    memoryStep(turn, tools, survey) ??
    closeStep(turn, tools) ?? { text: answerText(turn, survey, outcomeOf(turn, survey)), calls: [] }
  );
}

function planStep(turn: Turn, tools: Tools): Step | undefined {
  if (turn.calls.length > 0 || !tools.has("write_todos")) return undefined;
  return {
    text: "I am the offline model: no language model, fixed rules. I map the files, search them for the words of the task, and report what I find with its place.",
    calls: todos(tools, 0),
  };
}

function lookStep(turn: Turn, tools: Tools): Step | undefined {
  if (callsOf(turn, "task").length > 0) return undefined;
  if (!tools.has("ls")) return globStep(turn, tools);
  const looked = new Set(callsOf(turn, "ls").map((call) => textArgument(call, "path")));
  const paths = (looked.has("/") ? mountsOf(turn) : ["/"]).filter((path) => !looked.has(path));
  if (paths.length === 0) return undefined;
  return {
    text: `Looking into ${paths.join(" and ")}.`,
    calls: paths.map((path) => ({ name: "ls", args: { path } })),
  };
}

function globStep(turn: Turn, tools: Tools): Step | undefined {
  if (!tools.has("glob") || callsOf(turn, "glob").length > 0) return undefined;
  const args = { pattern: "**/*", path: "/workspace/" };
  return { text: "Listing /workspace/.", calls: [{ name: "glob", args }] };
}

function listStep(turn: Turn, tools: Tools, survey: Survey): Step | undefined {
  if (callsOf(turn, "task").length > 0) return undefined;
  const listed = new Set(callsOf(turn, "glob").map((call) => textArgument(call, "path")));
  const known = listed.has(survey.base) || !tools.has("glob");
  const folders = known ? [] : survey.folders.filter((folder) => !listed.has(folder));
  const calls: PlannedCall[] = folders.map((path) => ({ name: "glob", args: { pattern: "**/*", path } }));
  if (survey.hasNotes && tools.has("read_file") && callsOf(turn, "read_file").length === 0) {
    calls.push({ name: "read_file", args: { file_path: MEMORY_FILE, limit: 100 } });
  }
  if (calls.length === 0) return undefined;
  return { text: `Mapping ${survey.base}.`, calls };
}

function delegateStep(turn: Turn, tools: Tools, survey: Survey): Step | undefined {
  if (callsOf(turn, "task").length > 0 || survey.areas.length === 0) return undefined;
  const type = subagentType(tools.get("task"));
  const calls = survey.areas.map((area) => ({
    name: "task",
    args: { description: writeAssignment(area, turn.task, survey.words), subagent_type: type },
  }));
  return {
    text: `One subagent for each of ${survey.areas.length} areas: ${survey.areas.map(({ title }) => title).join("; ")}.`,
    calls: [...todos(tools, 1), ...calls],
  };
}

/** `general-purpose` where it is offered, else the first type the tool lists. */
function subagentType(tool: OfferedTool | undefined): string {
  const listed = [...(tool?.description ?? "").matchAll(/^- ([\w-]+):/gm)].map(([, name]) => name ?? "");
  return listed.includes("general-purpose") ? "general-purpose" : (listed[0] ?? "general-purpose");
}

function reportStep(turn: Turn, tools: Tools, survey: Survey): Step | undefined {
  if (!tools.has("write_file") || survey.areas.length === 0 || isReadOnly(turn)) return undefined;
  const outcome = writeOutcome(turn, isReport);
  const attempts = callsOf(turn, "write_file").filter((call) => isReport(textArgument(call, "file_path")));
  const again = isTaken(outcome) && attempts.length < MOST_ATTEMPTS;
  if (outcome.kind !== "none" && !again) return undefined;
  const path = freePath(
    survey,
    attempts.map((call) => textArgument(call, "file_path")),
  );
  return {
    text: `Writing the report to ${path}.`,
    calls: [
      ...(again ? [] : todos(tools, 2)),
      { name: "write_file", args: { file_path: path, content: reportText(turn, survey) } },
    ],
  };
}

/** The first report name that is not taken: an earlier report is kept, not overwritten. */
function freePath({ base, entries }: Survey, tried: readonly string[]): string {
  const taken = new Set([...entries.map(({ path }) => path), ...tried]);
  for (let number = 1; ; number += 1) {
    const path = `${base}deepagent-report${number === 1 ? "" : `-${number}`}.md`;
    if (!taken.has(path)) return path;
  }
}

function memoryStep(turn: Turn, tools: Tools, survey: Survey): Step | undefined {
  if (!survey.remembers || survey.areas.length === 0 || isReadOnly(turn)) return undefined;
  const outcome = writeOutcome(turn, isMemory);
  const created = callsOf(turn, "write_file").some((call) => isMemory(textArgument(call, "file_path")));
  const appends = survey.hasNotes || (created && isTaken(outcome));
  if (outcome.kind !== "none" && !(isTaken(outcome) && !edited(turn))) return undefined;
  if (!tools.has(appends ? "edit_file" : "write_file")) return undefined;
  const entry = memoryEntry(turn, survey, writeOutcome(turn, isReport));
  const call = appends
    ? {
        name: "edit_file",
        args: { file_path: MEMORY_FILE, old_string: NOTES_ANCHOR, new_string: `${NOTES_ANCHOR}\n${entry}` },
      }
    : { name: "write_file", args: { file_path: MEMORY_FILE, content: newNotes(entry) } };
  return {
    text: "Noting for later conversations what was examined.",
    calls: [...(created ? [] : todos(tools, 3)), call],
  };
}

function edited(turn: Turn): boolean {
  return callsOf(turn, "edit_file").some((call) => isMemory(textArgument(call, "file_path")));
}

function closeStep(turn: Turn, tools: Tools): Step | undefined {
  const calls = todos(tools, PLAN.length);
  const last = callsOf(turn, "write_todos").at(-1);
  if (calls.length === 0 || last === undefined || isClosed(last.args["todos"])) return undefined;
  return { text: "All steps are done.", calls };
}

function isClosed(list: unknown): boolean {
  return (
    Array.isArray(list) && list.every((item: { status?: unknown } | null) => item?.status === "completed")
  );
}

function outcomeOf(turn: Turn, survey: Survey): Outcome {
  return {
    report: writeOutcome(turn, isReport),
    memory: writeOutcome(turn, isMemory),
    readOnly: isReadOnly(turn),
    reportText: survey.areas.length === 0 ? "" : reportText(turn, survey),
  };
}

const isReport = (path: string): boolean => REPORT_NAME.test(path);
const isMemory = (path: string): boolean => path === MEMORY_FILE;
const isReadOnly = ({ task, told }: Turn): boolean =>
  [task, ...told].some((text) => READ_ONLY_TASK.test(text));

const PLAN = [
  "Map the files",
  "Examine every area with a subagent of its own",
  "Write the report",
  "Keep a note for later and answer",
];

/** The plan with everything before `current` done; nothing without the tool. */
function todos(tools: Tools, current: number): PlannedCall[] {
  if (!tools.has("write_todos")) return [];
  const list = PLAN.map((content, index) => ({
    content,
    status: index < current ? "completed" : index === current ? "in_progress" : "pending",
  }));
  return [{ name: "write_todos", args: { todos: list } }];
}

/** What became of the report and the note. */
export interface Outcome {
  report: WriteOutcome;
  memory: WriteOutcome;
  /** The task forbids changes. */
  readOnly: boolean;
  reportText: string;
}

const CITATIONS_SHOWN = 8;
const NOTES_SHOWN = 3;

/** The final answer: complete by itself, and it claims only what happened. */
function answerText(turn: Turn, survey: Survey, outcome: Outcome): string {
  if (survey.areas.length === 0) return nothingToExamine(survey);
  const examined = examinedAreas(turn, survey);
  const failed = examined.filter(({ failed }) => failed);
  const files = survey.areas.reduce((sum, area) => sum + area.files, 0);
  return [
    "I am the offline model: no language model, fixed rules. I searched the files for the words of the task; I did not understand or judge them. Configure a provider's key for an answer that does.",
    `I examined ${files} files in ${examined.length} ${examined.length === 1 ? "area" : "areas"} of ${survey.base}, each with its own subagent: ${survey.areas.map(({ title }) => title).join("; ")}.`,
    searched(survey, examined),
    failed.length === 0
      ? ""
      : `Not examined: ${failed.map(({ area, report }) => `${area.title} (${oneLine(report, 160)})`).join("; ")}.`,
    reportLine(outcome),
    memoryLine(outcome.memory),
    toldLine(turn),
    notesLine(survey),
    outcome.report.kind === "written" ? "" : `---\n\n${outcome.reportText}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function nothingToExamine({ base }: Survey): string {
  const why =
    base === "/"
      ? "no folder is mounted at /workspace/. Start the server with a workspace, or name one with --workspace."
      : "/workspace/ has no files that I could examine.";
  return `I am the offline model: no language model, fixed rules. There is nothing to examine: ${why} I wrote nothing and remember nothing of this task.`;
}

function searched({ words }: Survey, examined: readonly ExaminedArea[]): string {
  const what =
    words.length === 0 ? "definitions and open marks" : words.map((word) => `"${word}"`).join(", ");
  const found = examined.filter(({ failed }) => !failed).map(({ report }) => citationsIn(report));
  const kinds = words.some((word) => /^(?:todo|fixme|hack|xxx)/i.test(word)) ? MARKS_FIRST : BY_WORDS;
  const kind = kinds.find((kind) => found.some((area) => area[kind].length > 0));
  if (kind === undefined) return `Searched for ${what}: nothing was found that could be cited.`;
  const share = Math.max(
    2,
    Math.ceil(CITATIONS_SHOWN / found.filter((area) => area[kind].length > 0).length),
  );
  const lines = [...new Set(found.flatMap((area) => area[kind].slice(0, share)))]
    .sort((a, b) => Number(README.test(b)) - Number(README.test(a)))
    .slice(0, CITATIONS_SHOWN);
  return `Searched for ${what}. ${SHOWN[kind]}:\n${lines.join("\n")}`;
}

const BY_WORDS = ["words", "read", "marks"] as const;
const MARKS_FIRST = ["marks", "words", "read"] as const;
const README = /\/readme(?:\.\w+)?:\d+ /i;

const SHOWN = {
  words: "Some of the matches",
  marks: "Some of the open marks",
  read: "How the files that seem to matter most begin",
};

function reportLine({ report, readOnly }: Outcome): string {
  if (report.kind === "written") return `The full report is in ${report.path}.`;
  if (readOnly) return "The task forbids changes, so I wrote no file; the report follows here.";
  if (report.kind === "none") return "No file can be written here; the report follows here.";
  const how = report.rejected
    ? `Writing ${report.path} was rejected (${oneLine(report.reason, 200)})`
    : `Writing ${report.path} failed (${oneLine(report.reason, 200)})`;
  return `${how}; no report file was written. The report follows here.`;
}

function memoryLine(memory: WriteOutcome): string {
  if (memory.kind === "written") return `Noted for later conversations in ${memory.path}.`;
  if (memory.kind === "none") return "";
  return `No note was kept: ${oneLine(memory.reason, 200)}.`;
}

function toldLine({ told }: Turn): string {
  if (told.length === 0) return "";
  const texts = told.map((text) => `"${oneLine(text, 160)}"`).join(", ");
  return `While I worked you said ${texts}: I heed only a wish that nothing be changed, and went on with the task.`;
}

function notesLine({ notes }: Survey): string {
  const earlier = earlierTasks(notes).slice(0, NOTES_SHOWN);
  return earlier.length === 0 ? "" : `From my notes, earlier tasks here:\n${earlier.join("\n")}`;
}

/** The line below which notes are added, the newest first. */
const NOTES_ANCHOR = "## Tasks worked on";

/** One line about this task for later conversations. */
function memoryEntry(turn: Turn, { areas, base }: Survey, report: WriteOutcome): string {
  const files = areas.reduce((sum, area) => sum + area.files, 0);
  const where = areas.map(({ title }) => oneLine(title, 60)).join("; ");
  const kept = report.kind === "written" ? `report in ${report.path}` : "no report file";
  return `- "${oneLine(turn.task, 160)}": ${files} files in ${base} (${where}); ${kept}.`;
}

function newNotes(entry: string): string {
  return `# Notes of the offline model\n\n${NOTES_ANCHOR}\n${entry}\n`;
}

/** What earlier tasks noted, newest first, out of the notes file as `read_file` shows it. */
function earlierTasks(notes: string): string[] {
  return parseLines(notes)
    .map(({ text }) => text)
    .filter((text) => text.startsWith("- "));
}

const TASK_LIMIT = 2000;
const SECTION_LIMIT = 12_000;

export interface ExaminedArea {
  area: Area;
  report: string;
  failed: boolean;
}

/** The areas with what their subagents reported, in the order they were delegated. */
function examinedAreas(turn: Turn, { areas }: Survey): ExaminedArea[] {
  const calls = callsOf(turn, "task");
  return areas.map((area, index) => {
    const call = calls[index];
    if (call === undefined) return { area, report: "not examined", failed: true };
    return { area, report: call.failed ? failureText(call) : call.result.trim(), failed: call.failed };
  });
}

/** The whole report as Markdown. */
function reportText(turn: Turn, survey: Survey): string {
  const examined = examinedAreas(turn, survey);
  return `${[
    `# Report: ${oneLine(turn.task, 100)}`,
    METHOD,
    `**Task.** ${oneLine(turn.task, TASK_LIMIT)}`,
    `**Searched for.** ${survey.words.length === 0 ? "no word of the task was specific enough" : survey.words.join(", ")}`,
    `## Areas\n\n${examined.map(areaLine).join("\n")}`,
    ...examined.map(areaSection),
  ].join("\n\n")}\n`;
}

const METHOD =
  "Written by the offline model of deepagent-mcp. It is no language model: it follows fixed rules, lists and searches files, and understands neither the task nor the text. Every line below was read from the files; what it means is for you to judge.";

function areaLine({ area: { title, files }, failed }: ExaminedArea): string {
  return `- ${title}: ${files} ${files === 1 ? "file" : "files"}${failed ? " (not examined)" : ""}`;
}

function areaSection({ area, report, failed }: ExaminedArea): string {
  const body = failed ? `This area could not be examined: ${report}` : cutLines(report, SECTION_LIMIT);
  return `## ${area.title}\n\n${body.replace(/^(#{1,4}) /gm, "##$1 ")}`;
}

/** The first lines of a text that fit, with a note of how many are missing. */
function cutLines(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const lines = text.split("\n");
  const kept: string[] = [];
  let used = 0;
  for (const line of lines) {
    used += line.length + 1;
    if (used > limit) break;
    kept.push(line);
  }
  return `${kept.join("\n")}\n\n(${lines.length - kept.length} more lines are not shown)`;
}
