import type { FlagValues } from "../../config/load.ts";
import type { PrunePlan } from "../../runs/prune.ts";
import type { Retention } from "../../runs/retention.ts";
import type { ExitCode } from "../command.ts";
import { retentionOf } from "../compose/retention.ts";
import { complain, type LocalRuns } from "../terminal/local-runs.ts";

/** Forgets runs that are over, as the configuration says; a server does the same every hour. */
export async function pruneRuns({ runs, config }: LocalRuns, flags: FlagValues): Promise<ExitCode> {
  const deletesOrphans = flags["orphans"] === true;
  const retention = retentionOf(config);
  if (Object.keys(retention).length === 0 && !deletesOrphans) {
    return complain("Nothing says which runs to forget: set --retention-days or --retention-megabytes.", 2);
  }
  if (flags["dry-run"] === true) {
    say(planLines(retention, await runs.planPrune(retention), deletesOrphans));
    return 0;
  }
  const report = await runs.prune(retention, deletesOrphans ? "delete" : "count");
  const { orphans = 0 } = report;
  say([
    `Forgot ${report.runs} runs and ${report.threads} threads.`,
    ...(report.memories === 0 ? [] : [`Deleted ${report.memories} memories whose time was over.`]),
    ...(orphans === 0 ? [] : [orphansLine(orphans, deletesOrphans ? "deleted" : "kept")]),
    ...(report.freedBytes === 0 ? [] : [`The files are ${megabytes(report.freedBytes)} smaller.`]),
  ]);
  return 0;
}

function planLines({ maxAgeMs, maxBytes }: Retention, plan: PrunePlan, deletesOrphans: boolean): string[] {
  const stored = `${megabytes(plan.storedBytes)} are stored, memories included`;
  return [
    ...(maxAgeMs === undefined
      ? []
      : [`Would forget ${plan.runs} runs that ended more than ${maxAgeMs / 86_400_000} days ago.`]),
    ...(maxBytes === undefined
      ? []
      : plan.storedBytes <= maxBytes
        ? [`${stored}, within the limit of ${megabytes(maxBytes)}.`]
        : [
            `${stored}; the limit is ${megabytes(maxBytes)}. Would forget as many as it takes of ${plan.runsForSize}${plan.runs > 0 ? " more" : ""} runs that ended more than a day ago, the oldest first.`,
          ]),
    ...(plan.orphans === 0 ? [] : [orphansLine(plan.orphans, deletesOrphans ? "would be deleted" : "kept")]),
    `${plan.unfinished} runs are not over and stay, as memories do. Nothing was changed.`,
  ];
}

function orphansLine(count: number, fate: "kept" | "deleted" | "would be deleted"): string {
  if (fate === "kept") return `${count} threads belong to no run; --orphans deletes them.`;
  return fate === "deleted"
    ? `Deleted ${count} threads that belonged to no run.`
    : `Would delete ${count} threads that belong to no run.`;
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

const say = (lines: readonly string[]): void =>
  void process.stdout.write(lines.map((line) => `${line}\n`).join(""));
