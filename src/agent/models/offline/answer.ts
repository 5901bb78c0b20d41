import { oneLine } from "../../../core/text.ts";
import type { Turn } from "./conversation.ts";
import { earlierTasks } from "./notes.ts";
import { examinedAreas } from "./report.ts";
import type { Survey, WriteOutcome } from "./survey.ts";

/** What became of the report and the note. */
export interface Outcome {
  report: WriteOutcome;
  memory: WriteOutcome;
  /** The task forbids changes. */
  readOnly: boolean;
  reportText: string;
}

const CITATIONS_SHOWN = 6;
const NOTES_SHOWN = 3;

/** The final answer: complete by itself, and it claims only what happened. */
export function answerText(turn: Turn, survey: Survey, outcome: Outcome): string {
  if (survey.areas.length === 0) return nothingToExamine(survey);
  const examined = examinedAreas(turn, survey);
  const failed = examined.filter(({ failed }) => failed);
  const files = survey.areas.reduce((sum, area) => sum + area.files, 0);
  const places = examined.flatMap(({ report, failed }) => (failed ? [] : citations(report)));
  return [
    "I am the offline model: no language model, fixed rules. I searched the files for the words of the task; I did not understand or judge them. Configure a provider's key for an answer that does.",
    `I examined ${files} files in ${examined.length} ${examined.length === 1 ? "area" : "areas"} of ${survey.base}, each with its own subagent: ${survey.areas.map(({ title }) => title).join("; ")}.`,
    searched(survey, places),
    failed.length === 0
      ? ""
      : `Not examined: ${failed.map(({ area, report }) => `${area.title} (${oneLine(report, 160)})`).join("; ")}.`,
    reportLine(outcome),
    memoryLine(outcome.memory),
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

function searched({ words }: Survey, places: readonly string[]): string {
  const what =
    words.length === 0 ? "definitions and open marks" : words.map((word) => `"${word}"`).join(", ");
  if (places.length === 0) return `Searched for ${what}: nothing was found that could be cited.`;
  return `Searched for ${what}. Some of what was found:\n${places.slice(0, CITATIONS_SHOWN).join("\n")}`;
}

/** The first citations of an area's report. */
function citations(report: string): string[] {
  return report
    .split("\n")
    .filter((line) => /^- \/.*:\d+ /.test(line))
    .slice(0, 2);
}

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

function notesLine({ notes }: Survey): string {
  const earlier = earlierTasks(notes).slice(0, NOTES_SHOWN);
  return earlier.length === 0 ? "" : `From my notes, earlier tasks here:\n${earlier.join("\n")}`;
}
