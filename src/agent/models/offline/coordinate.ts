/** Coordinates subagents for the offline model: plan, delegate, put reports together. `rules.json` has the steps. */
import { cutMiddle, oneLine } from "../../../core/text.ts";
import { counted } from "../../../tools/format.ts";
import type { CallRecord, DueCalls, OfflineStep, Tools, OfflineTurn } from "./conversation.ts";
import { callFor, callPath, callsNamed, failureText, nextStep, parseLines } from "./conversation.ts";
import rules from "./rules.json" with { type: "json" };
import { MEMORY_FILE, countFiles, readSurvey, writeAssignment } from "./survey.ts";

/** The tools without which an agent examines the files itself. */
export const COORDINATOR_TOOLS = ["ls", "glob", "task"] as const;

/** The next step of an agent that plans, delegates to subagents and puts their reports together. */
export function nextCoordinatorStep(turn: OfflineTurn, tools: Tools): OfflineStep {
  const work = readCoordination(turn);
  return nextStep(rules.coordinate, { turn, tools, due: dueCalls(work, tools) }, () => finalAnswer(work));
}

type Coordination = ReturnType<typeof readCoordination>;

/** The knowledge of the main agent, and the results of its subagents and writes. */
function readCoordination(turn: OfflineTurn) {
  const survey = readSurvey(turn);
  const tasks = callsNamed(turn, "task");
  const writes = turn.calls.filter(({ name }) => name === "write_file" || name === "edit_file");
  const report = writes.findLast((call) => callPath(call) !== MEMORY_FILE);
  const note = writes.findLast((call) => callPath(call) === MEMORY_FILE);
  return {
    ...survey,
    turn,
    /** True if the task, or a later message, forbids changes: the report becomes the answer. */
    isReadOnly: [turn.task, ...turn.remarks].some((text) =>
      /\bread[- ]?only\b|\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:writ|chang|modif|edit|touch|creat|sav)/i.test(
        text,
      ),
    ),
    report: report && readWrite(report),
    note: note && readWrite(note),
    /** The areas with the reports of their subagents, in the order they were delegated. */
    examined: survey.areas.map((area, index) => {
      const call = tasks[index];
      const report = call?.failed ? failureText(call) : call?.result.trim();
      return { ...area, report: report ?? "not examined", failed: call?.failed ?? true };
    }),
  };
}

/** A write: the written path, or the reason why nothing was written, such as `was rejected (not now)`. */
function readWrite(call: CallRecord) {
  const path = callPath(call);
  // A person may have changed the call before approving it; the result names the written file.
  if (!call.failed) return { path, written: /'(\/[^']+)'/.exec(call.result)?.[1] ?? path };
  const isOfTool = /^(?:Error: |$|Tool call was cancelled)/.test(call.result);
  const reason = failureText(call);
  return {
    path,
    failure: `${isOfTool ? "failed" : "was rejected"} (${oneLine(reason, 200)})`,
    isTaken: isOfTool && /already exists|changed since it was read/.test(reason),
  };
}

/** The line below which notes are added, the newest first. */
const NOTES_ANCHOR = "## Tasks worked on";

function dueCalls(work: Coordination, tools: Tools): DueCalls {
  const { turn, base, entries, folders, areas, words, report, hasNotes } = work;
  const types = [...(tools.get("task") ?? "").matchAll(/^- ([\w-]+):/gm)].map(([, name]) => name);
  const general = "general-purpose";
  const subagent_type = types.includes(general) ? general : (types[0] ?? general);

  const mayWrite = areas.length > 0 && !work.isReadOnly;
  const tried = callsNamed(turn, "write_file").map(callPath);
  const isReportDue = report === undefined || (report.isTaken && tried.length < 5);
  // The first name that is not taken: an earlier report is kept, not overwritten.
  const taken = new Set([...entries, ...tried]);
  let path = `${base}deepagent-report.md`;
  for (let number = 2; taken.has(path); number += 1) path = `${base}deepagent-report-${number}.md`;

  const isNoteDue = mayWrite && work.remembers && work.note === undefined;
  const where = areas.map(({ title }) => oneLine(title, 60)).join("; ");
  const kept = report?.written === undefined ? "no report file" : `report in ${report.written}`;
  const entry = `- "${oneLine(turn.task, 160)}": ${countFiles(areas)} files in ${base} (${where}); ${kept}.`;
  const note = `${NOTES_ANCHOR}\n${entry}`;
  return {
    root: [{ path: "/" }],
    mounts: callsNamed(turn, "ls").length > 1 ? [] : work.places.map((path) => ({ path })),
    notes: hasNotes ? [{ file_path: MEMORY_FILE, limit: 100 }] : [],
    folders: folders.map((path) => ({ pattern: "**/*", path })),
    areas: areas.map((area) => ({ description: writeAssignment(area, turn.task, words), subagent_type })),
    report: mayWrite && isReportDue ? [{ file_path: path, content: reportText(work) }] : [],
    addedNote:
      isNoteDue && hasNotes ? [{ file_path: MEMORY_FILE, old_string: NOTES_ANCHOR, new_string: note }] : [],
    firstNote:
      isNoteDue && !hasNotes
        ? [{ file_path: MEMORY_FILE, content: `# Notes of the offline model\n\n${note}\n` }]
        : [],
  };
}

/** The final answer: complete by itself, and it claims only what happened. */
function finalAnswer(work: Coordination): string {
  const { turn, base, areas, report, note } = work;
  if (areas.length === 0) {
    const why =
      base === "/"
        ? "no folder is mounted at /workspace/. Choose one with --workspace."
        : `${base} has no files that I could examine.`;
    return `${rules.introduction} There is nothing to examine: ${why} I wrote nothing and remember nothing of this task.`;
  }
  const failed = work.examined
    .filter(({ failed }) => failed)
    .map(({ title, report }) => `${title} (${oneLine(report, 160)})`);
  // The newest entries of the notes, as they were read before this task was added.
  const notes = callFor(turn, "read_file", MEMORY_FILE);
  const earlier = parseLines(notes?.failed ? "" : (notes?.result ?? ""), MEMORY_FILE)
    .map(({ text }) => text)
    .filter((text) => text.startsWith("- "))
    .slice(0, 3);
  const remarks = turn.remarks.map((text) => `"${oneLine(text, 160)}"`).join(", ");
  const noFile = work.isReadOnly
    ? "The task forbids changes, so I wrote no file; the report follows here."
    : "No file can be written here; the report follows here.";
  const unwritten = report
    ? `Writing ${report.path} ${report.failure}; no report file was written. The report follows here.`
    : noFile;
  return [
    `${rules.introduction} I searched the files for the words of the task; I did not understand or judge them. Configure a provider's key for an answer that does.`,
    `I examined ${counted(countFiles(areas), "file")} in ${counted(areas.length, "area")} of ${base}, each with its own subagent: ${areas.map(({ title }) => title).join("; ")}.`,
    citations(work),
    failed.length > 0 && `Not examined: ${failed.join("; ")}.`,
    report?.written === undefined ? unwritten : `The full report is in ${report.written}.`,
    note &&
      (note.written === undefined
        ? `No note was kept: writing ${note.path} ${note.failure}.`
        : `Noted for later conversations in ${note.written}.`),
    remarks &&
      `While I worked you said ${remarks}: I heed only a wish that nothing be changed, and continued with the task.`,
    earlier.length > 0 && `From my notes, earlier tasks here:\n${earlier.join("\n")}`,
    report?.written === undefined && `---\n\n${reportText(work)}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

const CITATIONS_SHOWN = 8;

/** The most telling kind of citations that the subagents reported, some of each report. */
function citations({ words, examined }: Coordination): string {
  const what = words.map((word) => `"${word}"`).join(", ") || "definitions and open marks";
  const wantsMarks = words.some((word) => /^(?:todo|fixme|hack|xxx)/i.test(word));
  // How parts of a report begin, and their title here.
  const marks = ["Open marks", "Some of the open marks"] as const;
  const others = [
    ["`", "Some of the matches"],
    ["Read,", "How the files that seem to matter most begin"],
  ] as const;
  for (const [begin, title] of wantsMarks ? [marks, ...others] : [...others, marks]) {
    const found = examined
      .map(({ report }) => report.split("\n\n").filter((part) => part.startsWith(begin)))
      .map((parts) =>
        parts
          .join("\n")
          .split("\n")
          .filter((row) => /^- \/.*:\d+ /.test(row)),
      )
      .filter((rows) => rows.length > 0);
    if (found.length === 0) continue;
    const share = Math.max(2, Math.ceil(CITATIONS_SHOWN / found.length));
    const isReadme = (row: string): number => Number(/\/readme(?:\.\w+)?:\d+ /i.test(row));
    const lines = [...new Set(found.flatMap((rows) => rows.slice(0, share)))]
      .sort((a, b) => isReadme(b) - isReadme(a))
      .slice(0, CITATIONS_SHOWN);
    return `Searched for ${what}. ${title}:\n${lines.join("\n")}`;
  }
  return `Searched for ${what}: nothing was found that could be cited.`;
}

const reportText = ({ turn, words, examined }: Coordination): string =>
  `${[
    `# Report: ${oneLine(turn.task, 100)}`,
    "Written by the offline model of deepagent-mcp. It is not a language model: it follows fixed rules, lists and searches files, and understands neither the task nor the text. Every line below was read from the files; what it means is for you to judge.",
    `**Task.** ${oneLine(turn.task, 2000)}`,
    `**Searched for.** ${words.join(", ") || "no word of the task was specific enough"}`,
    `## Areas\n\n${examined.map(({ title, files, failed }) => `- ${title}: ${counted(files, "file")}${failed ? " (not examined)" : ""}`).join("\n")}`,
    ...examined.map(
      ({ title, report, failed }) =>
        `## ${title}\n\n${failed ? `This area could not be examined: ${report}` : cutMiddle(report, 12_000)}`,
    ),
  ].join("\n\n")}\n`;
