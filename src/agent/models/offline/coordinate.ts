/** The rules of the main agent: plan, delegate, collect the reports, and answer. */
import { cutMiddle, oneLine } from "../../../core/text.ts";
import { counted } from "../../../tools/format.ts";
import type { CallRecord, StepRow, OfflineStep, Tools, OfflineTurn } from "./conversation.ts";
import { callsNamed, failureText, nextStep, parseLines, callPath } from "./conversation.ts";
import {
  type Area,
  MEMORIES,
  MEMORY_FILE,
  WORKSPACE_FOLDER,
  isMounted,
  rootFolder,
  readSurvey,
  writeAssignment,
} from "./survey.ts";

/** The tools without which an agent examines the files itself. */
export const COORDINATOR_TOOLS = ["ls", "glob", "task"] as const;

const INTRODUCTION = "I'm the offline model. I follow fixed rules and am not a language model.";

type Coordination = ReturnType<typeof readCoordination>;

const COORDINATOR_STEPS: readonly StepRow<Coordination>[] = [
  {
    todo: "Map the files",
    tool: "ls",
    text: `${INTRODUCTION} I map the files, search them for the words of the task, and report what I find with its place.`,
    args: () => [{ path: "/" }],
  },
  {
    tool: "ls",
    text: "Looking into the folders of interest.",
    repeats: true,
    args: ({ turn }) => {
      if (callsNamed(turn, "ls").length > 1) return [];
      const root = rootFolder(turn);
      const places = [root ?? WORKSPACE_FOLDER, MEMORIES];
      return places.filter((path) => path === root || isMounted(turn, path)).map((path) => ({ path }));
    },
  },
  {
    tool: "read_file",
    text: "Reading the notes of earlier tasks.",
    args: ({ hasNotes }) => (hasNotes ? [{ file_path: MEMORY_FILE, limit: 100 }] : []),
  },
  {
    tool: "glob",
    text: "Mapping the folders.",
    args: ({ folders }) => folders.map((path) => ({ pattern: "**/*", path })),
  },
  {
    todo: "Examine every area with a subagent of its own",
    tool: "task",
    text: "One subagent for each area.",
    args: ({ turn, tools, areas, words }) => {
      const types = [...(tools.get("task") ?? "").matchAll(/^- ([\w-]+):/gm)].map(([, name]) => name);
      const general = "general-purpose";
      const subagent_type = types.includes(general) ? general : (types[0] ?? general);
      return areas.map((area) => ({ description: writeAssignment(area, turn.task, words), subagent_type }));
    },
  },
  {
    todo: "Write the report",
    tool: "write_file",
    text: "Writing the report.",
    repeats: true,
    args: (work) => {
      const { turn, base, entries, areas, isReadOnly, report } = work;
      const tried = callsNamed(turn, "write_file").map(callPath);
      const isDone = report !== undefined && !(report.isTaken && tried.length < 5);
      if (areas.length === 0 || isReadOnly || isDone) return [];
      // The first name that is not taken: an earlier report is kept, not overwritten.
      const taken = new Set([...entries.map(({ path }) => path), ...tried]);
      let path = `${base}deepagent-report.md`;
      for (let number = 2; taken.has(path); number += 1) path = `${base}deepagent-report-${number}.md`;
      return [{ file_path: path, content: reportText(work) }];
    },
  },
  {
    todo: "Keep a note for later and answer",
    tool: "edit_file",
    text: "Adding this task to the notes.",
    args: (work) =>
      noteToKeep(work, work.hasNotes).map((note) => ({
        file_path: MEMORY_FILE,
        old_string: NOTES_ANCHOR,
        new_string: note,
      })),
  },
  {
    tool: "write_file",
    text: "Noting for later conversations what was examined.",
    repeats: true,
    args: (work) =>
      noteToKeep(work, !work.hasNotes).map((note) => ({
        file_path: MEMORY_FILE,
        content: `# Notes of the offline model\n\n${note}\n`,
      })),
  },
];

/** The next step of an agent that plans, delegates to subagents and puts their reports together. */
export const nextCoordinatorStep = (turn: OfflineTurn, tools: Tools): OfflineStep =>
  nextStep(COORDINATOR_STEPS, readCoordination(turn, tools), finalAnswer);

function readCoordination(turn: OfflineTurn, tools: Tools) {
  const writes = turn.calls.filter(({ name }) => name === "write_file" || name === "edit_file");
  const report = writes.findLast((call) => callPath(call) !== MEMORY_FILE);
  const note = writes.findLast((call) => callPath(call) === MEMORY_FILE);
  return {
    ...readSurvey(turn),
    turn,
    tools,
    /** True if the task, or a later message, forbids changes. */
    isReadOnly: [turn.task, ...turn.remarks].some((text) => READ_ONLY.test(text)),
    report: report && readWrite(report),
    note: note && readWrite(note),
  };
}

/** A task that forbids changes gets its report as the answer. */
const READ_ONLY =
  /\bread[- ]?only\b|\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:writ|chang|modif|edit|touch|creat|sav)/i;

/** The place of a written file, or the reason why nothing was written, such as `was rejected (not now)`. */
function readWrite(call: CallRecord) {
  // A person may have changed the call before approving it; the result names the written file.
  if (!call.failed) return { path: /'(\/[^']+)'/.exec(call.result)?.[1] ?? callPath(call), isTaken: false };
  const isOfTool = /^(?:Error: |$|Tool call was cancelled)/.test(call.result);
  const reason = failureText(call);
  return {
    path: callPath(call),
    failure: `${isOfTool ? "failed" : "was rejected"} (${oneLine(reason, 200)})`,
    isTaken: isOfTool && /already exists|changed since it was read/.test(reason),
  };
}

/** The line below which notes are added, the newest first. */
const NOTES_ANCHOR = "## Tasks worked on";

/** One line about this task for later conversations, below the line where notes are added. */
function noteToKeep(work: Coordination, isDue: boolean): string[] {
  const { turn, base, areas, remembers, isReadOnly, report, note } = work;
  if (!isDue || !remembers || areas.length === 0 || isReadOnly || note !== undefined) return [];
  const where = areas.map(({ title }) => oneLine(title, 60)).join("; ");
  const path = writtenPath(report);
  const kept = path === undefined ? "no report file" : `report in ${path}`;
  const entry = `- "${oneLine(turn.task, 160)}": ${fileCount(areas)} files in ${base} (${where}); ${kept}.`;
  return [`${NOTES_ANCHOR}\n${entry}`];
}

const writtenPath = (write: ReturnType<typeof readWrite> | undefined): string | undefined =>
  write?.failure === undefined ? write?.path : undefined;

const fileCount = (areas: readonly Area[]): number => areas.reduce((sum, { files }) => sum + files, 0);

/** The final answer: complete by itself, and it claims only what happened. */
function finalAnswer(work: Coordination): string {
  const { turn, base, areas, report, note } = work;
  if (areas.length === 0) {
    const why =
      base === "/"
        ? "no folder is mounted at /workspace/. Choose one with --workspace."
        : `${base} has no files that I could examine.`;
    return `${INTRODUCTION} There is nothing to examine: ${why} I wrote nothing and remember nothing of this task.`;
  }
  const failed = examinedAreas(work).flatMap(({ area, report, failed }) =>
    failed ? [`${area.title} (${oneLine(report, 160)})`] : [],
  );
  // The newest entries of the notes, as they were read before this task was added.
  const notes = callsNamed(turn, "read_file").find((call) => !call.failed && callPath(call) === MEMORY_FILE);
  const entries = parseLines(notes?.result ?? "", MEMORY_FILE).filter(({ text }) => text.startsWith("- "));
  const earlier = entries.slice(0, 3).map(({ text }) => text);
  const remarks = turn.remarks.map((text) => `"${oneLine(text, 160)}"`).join(", ");
  return [
    `${INTRODUCTION} I searched the files for the words of the task; I did not understand or judge them. Configure a provider's key for an answer that does.`,
    `I examined ${counted(fileCount(areas), "file")} in ${counted(areas.length, "area")} of ${base}, each with its own subagent: ${areas.map(({ title }) => title).join("; ")}.`,
    searched(work),
    failed.length > 0 && `Not examined: ${failed.join("; ")}.`,
    reportLine(work),
    note &&
      (note.failure === undefined
        ? `Noted for later conversations in ${note.path}.`
        : `No note was kept: writing ${note.path} ${note.failure}.`),
    remarks &&
      `While I worked you said ${remarks}: I heed only a wish that nothing be changed, and continued with the task.`,
    earlier.length > 0 && `From my notes, earlier tasks here:\n${earlier.join("\n")}`,
    writtenPath(report) === undefined && `---\n\n${reportText(work)}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

const CITATIONS_SHOWN = 8;

/** Sources of an answer's citations: the beginning of a report's part, and its title here. */
const MATCHES = ["`", "Some of the matches"] as const;
const OPEN_MARKS = ["Open marks", "Some of the open marks"] as const;
const BEGINNINGS = ["Read,", "How the files that seem to matter most begin"] as const;

function searched(work: Coordination): string {
  const { words } = work;
  const what = words.map((word) => `"${word}"`).join(", ") || "definitions and open marks";
  const reports = examinedAreas(work).filter(({ failed }) => !failed);
  const wantsMarks = words.some((word) => /^(?:todo|fixme|hack|xxx)/i.test(word));
  for (const [begin, title] of wantsMarks
    ? [OPEN_MARKS, MATCHES, BEGINNINGS]
    : [MATCHES, BEGINNINGS, OPEN_MARKS]) {
    const found = reports
      .map(({ report }) => {
        const parts = report.split("\n\n").filter((part) => part.startsWith(begin));
        return parts.flatMap((part) => part.split("\n").filter((row) => /^- \/.*:\d+ /.test(row)));
      })
      .filter((rows) => rows.length > 0);
    if (found.length === 0) continue;
    const share = Math.max(2, Math.ceil(CITATIONS_SHOWN / found.length));
    const lines = [...new Set(found.flatMap((rows) => rows.slice(0, share)))]
      .sort((a, b) => Number(README.test(b)) - Number(README.test(a)))
      .slice(0, CITATIONS_SHOWN);
    return `Searched for ${what}. ${title}:\n${lines.join("\n")}`;
  }
  return `Searched for ${what}: nothing was found that could be cited.`;
}

const README = /\/readme(?:\.\w+)?:\d+ /i;

function reportLine({ report, isReadOnly }: Coordination): string {
  if (report === undefined) {
    const why = isReadOnly ? "The task forbids changes, so I wrote no file" : "No file can be written here";
    return `${why}; the report follows here.`;
  }
  if (report.failure === undefined) return `The full report is in ${report.path}.`;
  return `Writing ${report.path} ${report.failure}; no report file was written. The report follows here.`;
}

/** The areas with the reports of their subagents, in the order they were delegated. */
function examinedAreas({ turn, areas }: Coordination): { area: Area; report: string; failed: boolean }[] {
  const calls = callsNamed(turn, "task");
  return areas.map((area, index) => {
    const call = calls[index];
    const report = call?.failed === false ? call.result.trim() : call && failureText(call);
    return { area, report: report ?? "not examined", failed: call?.failed ?? true };
  });
}

function reportText(work: Coordination): string {
  const examined = examinedAreas(work);
  const list = examined.map(
    ({ area, failed }) => `- ${area.title}: ${counted(area.files, "file")}${failed ? " (not examined)" : ""}`,
  );
  return `${[
    `# Report: ${oneLine(work.turn.task, 100)}`,
    "Written by the offline model of deepagent-mcp. It is not a language model: it follows fixed rules, lists and searches files, and understands neither the task nor the text. Every line below was read from the files; what it means is for you to judge.",
    `**Task.** ${oneLine(work.turn.task, 2000)}`,
    `**Searched for.** ${work.words.join(", ") || "no word of the task was specific enough"}`,
    `## Areas\n\n${list.join("\n")}`,
    ...examined.map(
      ({ area, report, failed }) =>
        `## ${area.title}\n\n${failed ? `This area could not be examined: ${report}` : cutMiddle(report, 12_000)}`,
    ),
  ].join("\n\n")}\n`;
}
