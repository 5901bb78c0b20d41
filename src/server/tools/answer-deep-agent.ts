import { z } from "zod";
import { type Decision, alreadyDecided } from "../../runs/run.ts";
import { refused, unknownRun, withNotes } from "../protocol/outcome.ts";
import { defineTool, runId } from "../protocol/tool.ts";
import { RunChange } from "../views/run-report.ts";

const input = z.strictObject({
  run_id: runId,
  approval_id: z.string().min(1).max(200),
  decision: z.enum(["approve", "edit", "reject"]),
  edited_args: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("All arguments of the call; only for edit"),
  message: z.string().max(2000).optional().describe("To the agent; only for reject"),
});

export const answerDeepAgent = defineTool({
  name: "answer_deep_agent",
  title: "Answer an approval",
  kind: "decide",
  scopes: ["approve"],
  description:
    "Passes on a person's decision on an approval of a run. Ask them first; never decide yourself.",
  input,
  output: RunChange,
  handle: async (args, { runs, principal }) => {
    const { run_id: id, approval_id: approvalId } = args;
    const decision = decisionOf(args, (await runs.view(principal, id))?.approvals ?? []);
    if (typeof decision === "string") return refused(decision);
    const outcome = await runs.decide(principal, id, approvalId, decision, "answer_deep_agent");
    const view = await runs.view(principal, id);
    if (view === undefined) return unknownRun(id);
    if (!outcome.ok) return refused(outcome.code === "already_decided" ? tooLate(outcome) : outcome.message);
    return withNotes({ kind: "run", view }, outcome.repeated ? [alreadyDecided(outcome.approval)] : []);
  },
});

const tooLate = ({ message }: { message: string }): string =>
  `${message} Your decision was not used; check_deep_agent tells how the run stands.`;

/** The decision, or what is wrong with the arguments. */
function decisionOf(
  args: z.output<typeof input>,
  approvals: readonly { id: string; tool: string }[],
): Decision | string {
  const { decision, edited_args: editedArgs, message } = args;
  if (decision !== "edit" && editedArgs !== undefined) {
    return `edited_args is for the decision edit, not ${decision}; nothing was decided.`;
  }
  if (decision === "approve") return { type: "approve" };
  if (decision === "reject") return { type: "reject", ...(message === undefined ? {} : { message }) };
  if (editedArgs === undefined) return "The decision edit needs edited_args with all arguments of the call.";
  const name = approvals.find(({ id }) => id === args.approval_id)?.tool ?? "";
  return { type: "edit", editedAction: { name, args: editedArgs } };
}
