import { oneLine } from "../../../core/text.ts";
import type { Turn } from "./conversation.ts";
import type { Survey, WriteOutcome } from "./survey.ts";
import { parseLines } from "./tool-output.ts";

/** The line below which notes are added, the newest first. */
export const NOTES_ANCHOR = "## Tasks worked on";

/** One line about this task for later conversations. */
export function memoryEntry(turn: Turn, { areas, base }: Survey, report: WriteOutcome): string {
  const files = areas.reduce((sum, area) => sum + area.files, 0);
  const where = areas.map(({ title }) => oneLine(title, 60)).join("; ");
  const kept = report.kind === "written" ? `report in ${report.path}` : "no report file";
  return `- "${oneLine(turn.task, 160)}": ${files} files in ${base} (${where}); ${kept}.`;
}

export function newNotes(entry: string): string {
  return `# Notes of the offline model\n\n${NOTES_ANCHOR}\n${entry}\n`;
}

/** What earlier tasks noted, newest first, out of the notes file as `read_file` shows it. */
export function earlierTasks(notes: string): string[] {
  return parseLines(notes)
    .map(({ text }) => text)
    .filter((text) => text.startsWith("- "));
}
