import { z } from "zod";
import { carriedAnswers } from "../delivery/carried.ts";
import { deliver } from "../delivery/deliver.ts";
import { unknownRun } from "../outcome.ts";
import { RunReport } from "../run-report.ts";
import { runId, waitSeconds } from "./arguments.ts";
import { defineTool } from "./tool.ts";

export const checkDeepAgent = defineTool({
  name: "check_deep_agent",
  title: "Check a deep agent run",
  kind: "read",
  scopes: [],
  description:
    "Status, progress, open approvals and answer of a run. Waits for news and returns as soon as something " +
    "changes. Call it until the status is completed, failed or cancelled.",
  input: z.strictObject({ run_id: runId, wait_seconds: waitSeconds }),
  output: RunReport,
  handle: async (args, call) => {
    const carried = await carriedAnswers(call);
    if (!carried.ok) return carried.outcome;
    const view = await call.runs.view(call.principal, args.run_id);
    if (view === undefined) return unknownRun(args.run_id);
    const { answers } = carried;
    return deliver(call, view, { waitSeconds: args.wait_seconds, untilChange: true, answers });
  },
});
