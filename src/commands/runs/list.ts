import type { FlagValues } from "../../config/load.ts";
import { isoTime } from "../../core/clock.ts";
import { oneLine, stripControl } from "../../core/text.ts";
import type { RunHead } from "../../runs/run.ts";
import { colorsFor } from "../colors.ts";
import type { ExitCode } from "../command.ts";
import { complain, LOCAL, type LocalRuns } from "../terminal/local-runs.ts";
import { fit } from "../terminal/text-width.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1000;

/** The newest runs, one a line. */
export async function listRuns({ runs }: LocalRuns, flags: FlagValues): Promise<ExitCode> {
  const limit = flags["limit"] === undefined ? DEFAULT_LIMIT : Number(flags["limit"]);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    return complain(`--limit must be a whole number from 1 to ${MAX_LIMIT}.`, 2);
  }
  const found = await runs.list(LOCAL, { limit });
  if (flags["json"] === true) {
    for (const run of found) process.stdout.write(`${JSON.stringify(rowOf(run))}\n`);
    return 0;
  }
  if (found.length === 0) {
    process.stdout.write("There are no runs in this data directory yet.\n");
    return 0;
  }
  const colors = colorsFor(process.stdout, process.env);
  const width = process.stdout.columns ?? 120;
  const now = Date.now();
  for (const run of found) {
    const when = isoTime(run.createdAt).slice(0, 16).replace("T", " ");
    const status = statusOf(run, now).padEnd(14);
    const head = `${run.id}  ${when}  ${status}  `;
    const task = fit(oneLine(stripControl(run.task), 200), Math.max(width - head.length, 20));
    process.stdout.write(`${run.id}  ${colors.dim(when)}  ${status}  ${task}\n`);
  }
  return 0;
}

/** A run that nobody works on, because its process ended or others come first, is waiting. */
const statusOf = ({ status, leasedUntil = 0 }: RunHead, now: number): string =>
  status === "working" && leasedUntil < now ? "waiting" : status;

const rowOf = (run: RunHead): object => ({
  run_id: run.id,
  thread_id: run.threadId,
  status: run.status,
  created_at: isoTime(run.createdAt),
  updated_at: isoTime(run.updatedAt),
  task: run.task,
});
