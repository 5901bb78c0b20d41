import type { FlagValues } from "../../config/load.ts";
import type { ExitCode } from "../command.ts";
import { LOCAL, unknownRun, type LocalRuns } from "../terminal/local-runs.ts";

/** Ends a run for good, whoever works on it. */
export async function cancelRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const { message } = flags;
  const outcome = await local.runs.cancel(
    LOCAL,
    runId,
    typeof message === "string" ? message : "cancelled in the terminal",
  );
  if (!outcome.ok) return unknownRun(local, runId);
  const { status } = outcome.run;
  process.stdout.write(
    outcome.alreadyEnded ? `Run ${runId} had ended before: ${status}.\n` : `Run ${runId} is ${status}.\n`,
  );
  return 0;
}
