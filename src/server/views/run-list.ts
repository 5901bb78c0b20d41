/** Lists recent runs for a model. */
import { z } from "zod";
import type { Run } from "../../runs/run.ts";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { asText } from "./quoting.ts";
import { RunReport, line } from "./run-report.ts";

/** `newest`: runs among which those of a list are chosen. `task`, `activity`: characters. */
const MAX = { newest: 100, listed: 10, task: 120, activity: 200 };

/** Recent runs, for callers that have lost their run_id. */
export const RunList = z.object({
  message: z.string(),
  runs: z.array(
    RunReport.pick({ run_id: true, thread_id: true, status: true }).extend({
      task: z.string(),
      started_at: z.string(),
      schedule: z.string().optional(),
      /** Newest step of the run, or the reason why it waits; absent once it has ended. */
      activity: z.string().optional(),
    }),
  ),
});
export type RunList = z.output<typeof RunList>;

const URGENCY: Readonly<Record<Run["status"], number>> = {
  input_required: 0,
  working: 1,
  completed: 2,
  failed: 2,
  cancelled: 2,
};

/** Lists the principal's recent runs in `room` bytes: first the runs that wait for a person, then those at work, each newest first. */
export async function recentRuns(service: PrincipalRuns, room: number): Promise<RunList> {
  const newest = await service.read.list({ limit: MAX.newest });
  const chosen = newest.toSorted((a, b) => URGENCY[a.status] - URGENCY[b.status]).slice(0, MAX.listed);
  const runs = await Promise.all(
    chosen.map(async (run): Promise<RunList["runs"][number]> => {
      const view = URGENCY[run.status] < 2 ? await service.read.view(run.id) : undefined;
      return {
        run_id: run.id,
        thread_id: run.threadId,
        status: run.status,
        task: line(run.task, MAX.task),
        started_at: isoTime(run.createdAt),
        ...defined({ schedule: run.schedule && line(run.schedule.name) }),
        ...(view === undefined ? {} : { activity: line(view.activity, MAX.activity) }),
      };
    }),
  );
  while (runs.length > 1 && Buffer.byteLength(JSON.stringify(runs)) > room - 500) runs.pop();
  if (runs.length === 0) return { message: "You have no runs. Start one with run_deep_agent.", runs };
  return {
    message:
      "Your recent runs, first those that wait for a person. Call check_deep_agent with one's run_id: it gives the answer, waits for it, or asks what is open.",
    runs,
  };
}

/** The list for clients that show text only. */
export function runListText({ message, runs }: RunList): string {
  const texts = runs.map(({ schedule, activity, ...run }) => {
    const by = schedule === undefined ? "" : ` by schedule ${asText(schedule)}`;
    const now = activity === undefined ? "" : `\n${asText(activity)}`;
    return `${run.run_id} · ${run.status} · started ${run.started_at}${by}\nTask: ${asText(run.task)}${now}`;
  });
  return [message, ...texts].join("\n\n");
}
