import { oneLine } from "../../../core/text.ts";
import type { Area } from "./areas.ts";
import { callsOf, failureText, type Turn } from "./conversation.ts";
import type { Survey } from "./survey.ts";

const TASK_LIMIT = 2000;
const SECTION_LIMIT = 12_000;

export interface ExaminedArea {
  area: Area;
  report: string;
  failed: boolean;
}

/** The areas with what their subagents reported, in the order they were delegated. */
export function examinedAreas(turn: Turn, { areas }: Survey): ExaminedArea[] {
  const calls = callsOf(turn, "task");
  return areas.map((area, index) => {
    const call = calls[index];
    if (call === undefined) return { area, report: "not examined", failed: true };
    return { area, report: call.failed ? failureText(call) : call.result.trim(), failed: call.failed };
  });
}

/** The whole report as Markdown. */
export function reportText(turn: Turn, survey: Survey): string {
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
