import type { ExitCode } from "../command.ts";
import { retentionOf } from "../compose/retention.ts";
import { complain, type LocalRuns } from "../terminal/local-runs.ts";

/** Forgets runs that are over, as the configuration says; a server does the same every hour. */
export async function pruneRuns({ runs, config }: LocalRuns): Promise<ExitCode> {
  const retention = retentionOf(config);
  if (Object.keys(retention).length === 0) {
    return complain("Nothing says which runs to forget: set --retention-days or --retention-megabytes.", 2);
  }
  const report = await runs.prune(retention);
  process.stdout.write(`Forgot ${report.runs} runs and ${report.threads} threads.\n`);
  return 0;
}
