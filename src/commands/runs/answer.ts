import type { FlagValues } from "../../config/load.ts";
import { alreadyDecided, type Approval, type PersonDecision, type Run } from "../../runs/run.ts";
import { displayText } from "../../core/text.ts";
import { pendingApprovals } from "../../server/run-report.ts";
import { colorsFor } from "../colors.ts";
import type { ExitCode } from "../command.ts";
import { askOpenApprovals } from "../terminal/ask-run.ts";
import { complain, LOCAL, unknownRun, type LocalRuns } from "../terminal/local-runs.ts";
import { terminalAsker } from "../terminal/terminal.ts";

/** Decides on open approvals, by flags or by asking; a server that has the run's workspace goes on with it. */
export async function answerRun(
  local: LocalRuns,
  runId: string,
  approvalId: string | undefined,
  flags: FlagValues,
): Promise<ExitCode> {
  const { runs, interrupt } = local;
  const view = await runs.view(LOCAL, runId);
  if (view === undefined) return unknownRun(local, runId);
  const pending = pendingApprovals(view);
  const chosen = approvalId === undefined ? pending : view.approvals.filter(({ id }) => id === approvalId);
  if (chosen.length === 0) return complain(nothingOpen(local, runId, approvalId));
  const given = ["approve", "approve-same", "reject", "edit"].filter((name) => flags[name] !== undefined);
  if (given.length > 1) return complain("Choose one of --approve, --approve-same, --reject and --edit.", 2);
  if (given.length === 1) return decideAll(local, view.run, chosen, flags);
  const [only] = chosen;
  if (only !== undefined && only.status !== "pending") {
    return complain(`${only.id}: ${alreadyDecided(only)}`);
  }
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    return complain(
      "There is no terminal to ask in: use --approve, --approve-same, --reject or --edit JSON.",
      2,
    );
  }
  const asker = terminalAsker(colorsFor(process.stdout, process.env), () => interrupt.abort());
  try {
    await askOpenApprovals({ ...view, approvals: chosen }, { runs, principal: LOCAL, asker });
    return 0;
  } catch (error) {
    if (interrupt.signal.aborted) return 1;
    throw error;
  }
}

async function decideAll(
  local: LocalRuns,
  run: Run,
  approvals: readonly Approval[],
  flags: FlagValues,
): Promise<ExitCode> {
  if (flags["edit"] !== undefined && approvals.length > 1) {
    return complain(`--edit is for one approval: ${approvals.map(({ id }) => id).join(", ")}.`, 2);
  }
  for (const approval of approvals) {
    const decision = decisionFrom(approval, flags);
    if (decision === undefined) return complain("--edit needs the arguments as a JSON object.", 2);
    const outcome = await local.runs.decide(LOCAL, approval.runId, approval.id, decision, "terminal");
    if (!outcome.ok) return complain(`${approval.id}: ${outcome.message}`);
    process.stdout.write(
      outcome.repeated
        ? `${approval.id}: ${alreadyDecided(outcome.approval)}\n`
        : `${approval.id} ${outcome.approval.status}: ${displayText(approval.preview.summary)}\n`,
    );
  }
  process.stdout.write(`If no server works on it:\n  ${local.runCommand(run, "--resume", run.id)}\n`);
  return 0;
}

function decisionFrom(
  { tool }: Approval,
  { approve, "approve-same": same, reject, edit, message }: FlagValues,
): PersonDecision | undefined {
  if (approve === true) return { type: "approve" };
  if (same === true) return { type: "approve_same" };
  if (reject === true) return { type: "reject", ...(typeof message === "string" ? { message } : {}) };
  const args = parsed(typeof edit === "string" ? edit : "");
  return args === undefined ? undefined : { type: "edit", editedAction: { name: tool, args } };
}

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const nothingOpen = ({ runsCommand }: LocalRuns, runId: string, approvalId: string | undefined): string =>
  approvalId === undefined
    ? `Run ${runId} waits for no decision.`
    : `Run ${runId} has no approval ${approvalId}. ${runsCommand("show", runId)} lists those that are open.`;
