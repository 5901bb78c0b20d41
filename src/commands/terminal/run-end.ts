import { stripControl } from "../../core/text.ts";
import type { RunView } from "../../runs/run.ts";
import { costText } from "../../runs/view.ts";
import { runDocument } from "../../server/resources/run-document.ts";
import type { Colors } from "../colors.ts";
import { RunPicture } from "./picture.ts";

/** The run as the live view draws it. */
export const pictureOf = (view: RunView): RunPicture => RunPicture.parse(runDocument(view));

/** What a run came to, below its tree: answer or failure, changed files, figures. */
export function runEnd(view: RunView, colors: Colors): string {
  const { run, filesChanged, models } = view;
  const { inputTokens, outputTokens } = run.usage;
  const cost = costText(models);
  const heading = (title: string): string => colors.bold(colors.cyan(`── ${title}`));
  const parts: string[] = [];
  if (filesChanged.length > 0) {
    parts.push(heading("Files changed"), filesChanged.map((path) => stripControl(path)).join("\n"));
  }
  if (run.answer !== undefined && run.answer.trim() !== "") {
    parts.push(heading("Answer"), stripControl(run.answer.trim()));
  }
  if (run.failure !== undefined) {
    parts.push(heading("Failed"), colors.red(`${run.failure.reason}: ${stripControl(run.failure.message)}`));
  }
  if (run.cancelReason !== undefined) parts.push(heading("Cancelled"), stripControl(run.cancelReason));
  const mark = MARKS[run.status](colors);
  const figures = [`${inputTokens} tokens in, ${outputTokens} out`, ...(cost === undefined ? [] : [cost])];
  parts.push(`${mark} ${run.id} ${run.status} · ${figures.join(" · ")}`);
  return `\n${parts.join("\n\n")}\n`;
}

const MARKS: Record<RunView["run"]["status"], (colors: Colors) => string> = {
  working: (colors) => colors.cyan("▸"),
  input_required: (colors) => colors.yellow("?"),
  completed: (colors) => colors.green("✔"),
  failed: (colors) => colors.red("✖"),
  cancelled: (colors) => colors.yellow("■"),
};
