import type { FlagValues } from "../../config/load.ts";
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
  const report = await runs.prune(retention, deletesOrphans ? "delete" : "count");
  process.stdout.write(`Forgot ${report.runs} runs and ${report.threads} threads.\n`);
  if (report.orphans !== undefined && report.orphans > 0) {
    process.stdout.write(
      deletesOrphans
        ? `Deleted ${report.orphans} threads that belonged to no run.\n`
        : `${report.orphans} threads belong to no run; --orphans deletes them.\n`,
    );
  }
  return 0;
}
