import { oneLine } from "../../../core/text.ts";
import { citationsIn } from "./area-report.ts";
import type { Turn } from "./conversation.ts";
import { earlierTasks } from "./notes.ts";
import { type ExaminedArea, examinedAreas } from "./report.ts";
import type { Survey, WriteOutcome } from "./survey.ts";

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
export function answerText(turn: Turn, survey: Survey, outcome: Outcome): string {
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
