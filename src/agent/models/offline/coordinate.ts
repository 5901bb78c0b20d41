/** Coordinates subagents for the offline model: plan, delegate, put reports together. `rules.json` has the steps. */
import { cutMiddle, fill, oneLine } from "../../../core/text.ts";
import { counted } from "../../../tools/format.ts";
import type { CallRecord, OfflineTurn, Tools } from "./conversation.ts";
import { callPath, callsNamed, failureText, nextStep, parseLines, resultFor } from "./conversation.ts";
import rules from "./rules.json" with { type: "json" };
import { countFiles, readSurvey, writeAssignment } from "./survey.ts";

/** The next step of an agent that plans, delegates to subagents and puts their reports together. */
export function nextCoordinatorStep(turn: OfflineTurn, tools: Tools) {
  const work = readCoordination(turn);
  return nextStep(rules.coordinate, { turn, tools, due: dueCalls(work, tools) }, () => finalAnswer(work));
}

type Coordination = ReturnType<typeof readCoordination>;

/** The knowledge of the main agent, and the results of its subagents and writes. */
function readCoordination(turn: OfflineTurn) {
  const survey = readSurvey(turn);
  const tasks = callsNamed(turn, "task");
  const writes = turn.calls.filter(({ name }) => name === "write_file" || name === "edit_file");
  const report = writes.findLast((call) => callPath(call) !== rules.places.notes);
  const note = writes.findLast((call) => callPath(call) === rules.places.notes);
  return {
    ...survey,
    turn,
    /** True if the task or a later message forbids changes: the report becomes the answer. */
    isReadOnly: [turn.task, ...turn.remarks].some((text) => READ_ONLY.test(text)),
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

const READ_ONLY =
  /\bread[- ]?only\b|\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:writ|chang|modif|edit|touch|creat|sav)/i;

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

function dueCalls(work: Coordination, tools: Tools) {
  const { turn, base, entries, folders, areas, words, report, hasNotes } = work;
  const file_path = rules.places.notes;
  const types = [...(tools.get("task") ?? "").matchAll(/^- ([\w-]+):/gm)].map(([, name]) => name);
  const general = "general-purpose";
  const subagent_type = types.includes(general) ? general : (types[0] ?? general);

  const mayWrite = areas.length > 0 && !work.isReadOnly;
  const tried = callsNamed(turn, "write_file").map(callPath);
  const isReportDue = report === undefined || (report.isTaken && tried.length < rules.limits.reportNames);
  // The first name that is not taken: an earlier report is kept, not overwritten.
  const taken = new Set([...entries, ...tried]);
  let path = `${base}deepagent-report.md`;
  for (let number = 2; taken.has(path); number += 1) path = `${base}deepagent-report-${number}.md`;

  const isNoteDue = mayWrite && work.remembers && work.note === undefined;
  const where = areas.map(({ title }) => oneLine(title, 60)).join("; ");
  const kept = report?.written === undefined ? "no report file" : `report in ${report.written}`;
  const { tasks, entry, first } = rules.notes;
  const note = fill(entry, tasks, oneLine(turn.task, 160), countFiles(areas), base, where, kept);
  // The newest entry comes first.
  const addition = { file_path, old_string: tasks, new_string: note };
  return {
    root: [{ path: "/" }],
    mounts: callsNamed(turn, "ls").length > 1 ? [] : work.places.map((path) => ({ path })),
    notes: hasNotes ? [{ file_path, limit: 100 }] : [],
    folders: folders.map((path) => ({ pattern: "**/*", path })),
    areas: areas.map((area) => ({ description: writeAssignment(area, turn.task, words), subagent_type })),
    report: mayWrite && isReportDue ? [{ file_path: path, content: reportText(work) }] : [],
    addedNote: isNoteDue && hasNotes ? [addition] : [],
    firstNote: isNoteDue && !hasNotes ? [{ file_path, content: fill(first, note) }] : [],
  };
}

/** The final answer: complete by itself, and it claims only what happened. */
function finalAnswer(work: Coordination): string {
  const { turn, base, areas, report, note } = work;
  const { introduction, answer } = rules;
  if (areas.length === 0)
    return fill(answer.nothing, introduction, base === "/" ? answer.unmounted : fill(answer.empty, base));
  const counts = [counted(countFiles(areas), "file"), counted(areas.length, "area")];
  const failed = work.examined
    .filter(({ failed }) => failed)
    .map(({ title, report }) => `${title} (${oneLine(report, 160)})`);
  // The newest entries of the notes, as they were read before this task was added.
  const earlier = parseLines(resultFor(turn, "read_file", rules.places.notes), "")
    .map(({ text }) => text)
    .filter((text) => text.startsWith("- "))
    .slice(0, 3);
  const noFile = work.isReadOnly ? answer.readOnly : answer.noWriting;
  const isWritten = report?.written !== undefined;
  const remarks = turn.remarks.map((text) => `"${oneLine(text, 160)}"`).join(", ");
  return [
    fill(answer.done, introduction, ...counts, base, areas.map(({ title }) => title).join("; ")),
    citations(work),
    failed.length > 0 && fill(answer.failed, failed.join("; ")),
    isWritten && fill(answer.report, report.written),
    !isWritten && (report ? fill(answer.noReport, report.path, report.failure) : noFile),
    note?.written && fill(answer.note, note.written),
    note?.failure && fill(answer.noNote, note.path, note.failure),
    remarks && fill(answer.remarks, remarks),
    earlier.length > 0 && fill(answer.earlier, earlier.join("\n")),
    !isWritten && `---\n\n${reportText(work)}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** The most telling kind of citations that the subagents reported, some of each report. */
function citations({ words, examined }: Coordination): string {
  const what = words.map((word) => `"${word}"`).join(", ") || "definitions and open marks";
  const wantsMarks = words.some((word) => /^(?:todo|fixme|hack|xxx)/i.test(word));
  const isFirst = (begin: string): number => Number(wantsMarks && begin === "Open marks");
  const isReadme = (row: string): number => Number(/\/readme(?:\.\w+)?:\d+ /i.test(row));
  for (const { begin, title } of rules.citations.toSorted((a, b) => isFirst(b.begin) - isFirst(a.begin))) {
    const found = examined
      .map(({ report }) => report.split("\n\n").filter((part) => part.startsWith(begin)))
      .map((parts) => parts.flatMap((part) => part.split("\n").filter((row) => /^- \/.*:\d+ /.test(row))))
      .filter((rows) => rows.length > 0);
    const share = Math.max(2, Math.ceil(rules.limits.citations / found.length));
    const lines = [...new Set(found.flatMap((rows) => rows.slice(0, share)))]
      .sort((a, b) => isReadme(b) - isReadme(a))
      .slice(0, rules.limits.citations);
    if (lines.length > 0) return fill(rules.answer.found, what, title, lines.join("\n"));
  }
  return fill(rules.answer.notFound, what);
}

function reportText({ turn, words, examined }: Coordination): string {
  const list = examined.map(
    ({ title, files, failed }) => `- ${title}: ${counted(files, "file")}${failed ? " (not examined)" : ""}`,
  );
  const parts = examined.map(({ title, report, failed }) => {
    const text = failed ? `This area could not be examined: ${report}` : cutMiddle(report, 12_000);
    return `## ${title}\n\n${text}`;
  });
  return fill(
    rules.report,
    oneLine(turn.task, 100),
    oneLine(turn.task, 2000),
    words.join(", ") || "no word of the task was specific enough",
    list.join("\n"),
    parts.join("\n\n"),
  );
}
