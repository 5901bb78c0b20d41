import type { FlagValues } from "../../config/load.ts";
import type { PrunePlan, Retention } from "../../runs/ports.ts";
import { counted } from "../../tools/format.ts";
import type { ExitCode } from "../command.ts";
import { retentionOf } from "../compose/retention.ts";
import { type LocalRuns, complain } from "../terminal/local-runs.ts";

/** Forgets runs that are over, as the configuration says; a server does the same every hour. */
export async function pruneRuns({ runs: service, config }: LocalRuns, flags: FlagValues): Promise<ExitCode> {
  const deletesOrphans = flags["orphans"] === true;
  const retention = retentionOf(config);
  if (Object.keys(retention).length === 0 && !deletesOrphans) {
    return complain("Nothing says which runs to forget: set --retention-days or --retention-megabytes.", 2);
  }
  if (flags["dry-run"] === true) {
    say(planLines(retention, await service.planPrune(retention), deletesOrphans));
    return 0;
  }
  const report = await service.prune(retention, deletesOrphans ? "delete" : "count");
  const { orphans = 0 } = report;
  say([
    `Forgot ${runs(report.runs)} and ${threads(report.threads)}.`,
    ...(report.memories === 0
      ? []
      : [`Deleted ${counted(report.memories, "memory", "memories")} whose time was over.`]),
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
      : [
          `Would forget ${runs(plan.runs)} that ended more than ${counted(maxAgeMs / 86_400_000, "day", "days")} ago.`,
        ]),
    ...(maxBytes === undefined
      ? []
      : plan.storedBytes <= maxBytes
        ? [`${stored}, within the limit of ${megabytes(maxBytes)}.`]
        : [
            `${stored}; the limit is ${megabytes(maxBytes)}. Would forget as many as it takes of ${plan.runsForSize}${plan.runs > 0 ? " other" : ""} runs that ended more than a day ago, the oldest first.`,
          ]),
    ...(plan.orphans === 0 ? [] : [orphansLine(plan.orphans, deletesOrphans ? "would be deleted" : "kept")]),
    `Runs that are not over (${plan.unfinished}) stay, and so do memories. Nothing was changed.`,
  ];
}

function orphansLine(count: number, fate: "kept" | "deleted" | "would be deleted"): string {
  if (fate === "kept") return `Threads that belong to no run: ${count}. --orphans deletes them.`;
  return fate === "deleted"
    ? `Deleted ${threads(count)} that belonged to no run.`
    : `Would delete ${threads(count)} without a run.`;
}

const runs = (count: number): string => counted(count, "run", "runs");
const threads = (count: number): string => counted(count, "thread", "threads");
const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

const say = (lines: readonly string[]): void =>
  void process.stdout.write(lines.map((line) => `${line}\n`).join(""));
