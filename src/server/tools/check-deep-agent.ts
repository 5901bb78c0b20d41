import { z } from "zod";
import { deliver } from "../delivery/deliver.ts";
import { carriedAnswers } from "../delivery/signed-answers.ts";
import { unknownRun } from "../protocol/outcome.ts";
import { defineTool, runId, waitSeconds } from "../protocol/tool.ts";
import { RunList, RunReport, recentRuns } from "../views/run-report.ts";

export const checkDeepAgent = defineTool({
  name: "check_deep_agent",
  title: "Check a deep agent run",
  kind: "read",
  scopes: [],
  description:
    "Status, progress, open approvals and answer of a run, or your recent runs without run_id. Returns as soon " +
    "as something changes. Call it until the status is completed, failed or cancelled.",
  input: z.strictObject({ run_id: runId.optional(), wait_seconds: waitSeconds }),
  // A report of one run, or a list of runs.
  output: RunReport.partial().extend(RunList.partial().shape),
  handle: async (args, call) => {
    const { runs, principal } = call;
    if (args.run_id === undefined) return { kind: "runs", list: await recentRuns(runs, principal) };
    const carried = await carriedAnswers(call);
    if (!carried.ok) return carried.outcome;
    const view = await runs.view(principal, args.run_id);
    if (view === undefined) return unknownRun(args.run_id);
    const { answers } = carried;
    return deliver(call, view, { waitSeconds: args.wait_seconds, untilChange: true, answers });
  },
});
