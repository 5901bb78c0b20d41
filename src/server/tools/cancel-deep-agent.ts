import { z } from "zod";
import { refused, unknownRun, withNotes } from "../protocol/outcome.ts";
import { defineTool, runId } from "../protocol/tool.ts";
import { RunChange } from "../views/run-report.ts";

export const cancelDeepAgent = defineTool({
  name: "cancel_deep_agent",
  title: "Cancel a deep agent run",
  kind: "cancel",
  scopes: ["run"],
  description: "Ends a run for good. What it has done stays; its thread can be continued.",
  input: z.strictObject({ run_id: runId, reason: z.string().max(500).optional() }),
  output: RunChange,
  handle: async ({ run_id, reason = "cancelled by the client" }, { runs, principal }) => {
    const outcome = await runs.cancel(principal, run_id, reason);
    if (!outcome.ok) return outcome.code === "not_found" ? unknownRun(run_id) : refused(outcome.message);
    const view = await runs.view(principal, run_id);
    if (view === undefined) return unknownRun(run_id);
    return withNotes({ kind: "run", view }, outcome.alreadyEnded ? ["It had ended before."] : []);
  },
});
