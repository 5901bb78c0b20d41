import { displayName, displayText, oneLine } from "../../core/text.ts";
import type { Approval, RunView } from "../../runs/run.ts";
import { agentLabel, deadlineText } from "../approval-form.ts";

/** Approvals that are listed by name; the page has all. */
const LISTED = 5;

/** What a person is told before their client opens the page. Nothing but the page decides. */
export function pageMessage(runId: string, approvals: readonly Approval[]): string {
  const lines = approvals
    .slice(0, LISTED)
    .flatMap((approval) => [
      `- ${agentLabel(approval.agent)}, ${oneLine(displayName(approval.tool), 64)}: ${summaryOf(approval)}`,
      ...deadlineText(approval),
    ]);
  const more = approvals.length - LISTED;
  return [
    `Run ${runId} waits for your decision. The page on this machine shows what would be done, and decides:`,
    ...lines,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}

/** Whether none of these waits for a decision any more. */
export const allDecided =
  (approvals: readonly Pick<Approval, "id">[]) =>
  (view: RunView): boolean =>
    !view.approvals.some(
      ({ id, status }) => status === "pending" && approvals.some((open) => open.id === id),
    );

const summaryOf = ({ preview }: Approval): string =>
  oneLine(displayText(preview.summary), 300).replaceAll("](", "] (");
