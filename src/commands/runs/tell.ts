import type { ExitCode } from "../command.ts";
import { complain, LOCAL, type LocalRuns, unknownRun } from "../terminal/local-runs.ts";

/** Gives a run at work a message, which its agent reads before it next asks its model. */
export async function tellRun(local: LocalRuns, runId: string, text: string): Promise<ExitCode> {
  if (text.trim() === "") return complain("The message is empty.", 2);
  const outcome = await local.runs.tell(LOCAL, runId, { text });
  if (!outcome.ok) return outcome.code === "not_found" ? unknownRun(local, runId) : complain(outcome.message);
  process.stdout.write(`Run ${runId} reads it at its next step.\n`);
  return 0;
}
