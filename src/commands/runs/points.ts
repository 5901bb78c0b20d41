import type { FlagValues } from "../../config/load.ts";
import { isoTime } from "../../core/clock.ts";
import { stripControl } from "../../core/text.ts";
import { pointDocument } from "../../server/resources/run-document.ts";
import { colorsFor } from "../colors.ts";
import type { ExitCode } from "../command.ts";
import { LOCAL, unknownRun, type LocalRuns } from "../terminal/local-runs.ts";
import { fit } from "../terminal/text-width.ts";

/** The points of the run's thread that a new thread can begin from, oldest first. */
export async function listPoints(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const points = await local.runs.points(LOCAL, runId);
  if (points === undefined) return unknownRun(local, runId);
  if (flags["json"] === true) {
    for (const point of points) process.stdout.write(`${JSON.stringify(pointDocument(point))}\n`);
    return 0;
  }
  const colors = colorsFor(process.stdout, process.env);
  const width = process.stdout.columns ?? 120;
  for (const { id, time, summary } of points) {
    const when = isoTime(time).slice(0, 19).replace("T", " ");
    const text = fit(stripControl(summary), Math.max(width - id.length - when.length - 4, 20));
    process.stdout.write(`${id}  ${colors.dim(when)}  ${text}\n`);
  }
  const newest = points.at(-1);
  const view = newest && (await local.runs.view(LOCAL, runId));
  if (newest && view) {
    process.stdout.write(
      `Begin at the newest:\n  ${local.runCommand(view.run, "--thread", newest.id)} "TASK"\n`,
    );
  }
  return 0;
}
