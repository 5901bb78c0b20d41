import { writeAssignment } from "./assignment.ts";
import {
  callsOf,
  type OfferedTool,
  type PlannedCall,
  type Step,
  textArgument,
  type Turn,
} from "./conversation.ts";
import { answerText, type Outcome } from "./answer.ts";
import { memoryEntry, newNotes, NOTES_ANCHOR } from "./notes.ts";
import { reportText } from "./report.ts";
import { isTaken, MEMORY_FILE, mountsOf, surveyOf, type Survey, writeOutcome } from "./survey.ts";

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
