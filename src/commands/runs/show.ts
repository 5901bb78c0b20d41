import type { FlagValues } from "../../config/load.ts";
import { displayName, displayText, oneLine, stripControl } from "../../core/text.ts";
import type { Approval } from "../../runs/run.ts";
import { agentLabel, deadlineText } from "../../server/approval-form.ts";
import { runDocument } from "../../server/resources/run-document.ts";
import { pendingApprovals } from "../../server/run-report.ts";
import { colorsFor } from "../colors.ts";
import type { ExitCode } from "../command.ts";
import { LOCAL, unknownRun, type LocalRuns } from "../terminal/local-runs.ts";
import { pictureOf, runEnd } from "../terminal/run-end.ts";
import { renderTree } from "../terminal/tree.ts";

/** A run as it stands: task, todos, agents, open approvals with what they would do, answer. */
export async function showRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const view = await local.runs.view(LOCAL, runId);
  if (view === undefined) return unknownRun(local, runId);
  if (flags["json"] === true) {
    process.stdout.write(`${JSON.stringify(runDocument(view), null, 2)}\n`);
    return 0;
  }
  const colors = colorsFor(process.stdout, process.env);
  const lines = [
    colors.cyan(stripControl(view.run.task.trim())),
    colors.dim(`thread ${view.run.threadId}`),
    "",
    ...renderTree(pictureOf(view), { colors, width: process.stdout.columns ?? 120, frame: 0 }),
  ];
  for (const approval of pendingApprovals(view)) {
    lines.push(
      "",
      colors.yellow(`? Approval ${approval.id}`),
      `${agentLabel(approval.agent)} wants to run ${oneLine(displayName(approval.tool), 64)}: ${oneLine(displayText(approval.preview.summary), 300)}`,
      displayText(approval.preview.detail).replace(/^/gm, "    "),
      ...deadlineText(approval),
    );
  }
  for (const { text, grantedBy } of view.grants) {
    lines.push(
      "",
      `${colors.green("✔")} Approved for this run (${grantedBy}): every further ${stripControl(text)}`,
    );
  }
  const decided = view.approvals.filter(({ status }) => status !== "pending").map(decidedLine);
  if (decided.length > 0) lines.push("", ...decided);
  process.stdout.write(`${lines.join("\n")}\n${runEnd(view, colors)}`);
  return 0;
}

/** Who decided what: `approved (page) write_file: Create /workspace/a.md`. */
function decidedLine({ status, decidedBy, tool, preview }: Approval): string {
  const by = decidedBy === undefined ? "" : ` (${decidedBy})`;
  return `  ${status}${by} ${oneLine(displayName(tool), 64)}: ${oneLine(displayText(preview.summary), 200)}`;
}
