import { alreadyDecided, type Principal, type RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { approvalForm, decisionOf } from "../../server/approval-form.ts";
import { pendingApprovals } from "../../server/run-report.ts";
import { ApprovalForm, askApproval, type Asker } from "./approval.ts";

export interface AskOptions {
  runs: RunService;
  principal: Principal;
  asker: Asker;
}

/** Puts the open approvals of a run to the person at the terminal, one after the other, until each is decided. */
export async function askOpenApprovals(view: RunView, { runs, principal, asker }: AskOptions): Promise<void> {
  const pending = pendingApprovals(view);
  for (const [index, approval] of pending.entries()) {
    const place = { runId: view.run.id, position: index + 1, total: pending.length };
    for (let problem: string | undefined; ;) {
      const form = approvalForm(approval, problem === undefined ? place : { ...place, problem });
      const answer = decisionOf(approval, await askApproval(ApprovalForm.parse(form), asker));
      if (!answer.ok) {
        problem = answer.problem;
        continue;
      }
      const outcome = await runs.decide(principal, view.run.id, approval.id, answer.decision, "terminal");
      if (outcome.ok) {
        if (outcome.repeated) asker.print(alreadyDecided(outcome.approval));
        break;
      }
      if (outcome.code === "already_decided") {
        asker.print(outcome.message);
        break;
      }
      problem = outcome.message;
    }
  }
}
