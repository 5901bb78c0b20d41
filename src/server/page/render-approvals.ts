import { displayName, displayText, oneLine } from "../../core/text.ts";
import { offeredDecisions, type Approval, type PersonDecision, type RunView } from "../../runs/run.ts";
import { agentLabel, deadlineText } from "../approval-form.ts";
import { pendingApprovals } from "../run-report.ts";
import { html, type Html } from "./html.ts";
import { editableArguments } from "./page-decision.ts";
import { runPath, type ApprovalViewer, type PageSession } from "./page-sessions.ts";
import { renderDiff } from "./render-diff.ts";

/** What a person sent that could not be carried out; shown again with their text. */
export interface Complaint {
  approvalId: string;
  problem: string;
  form: URLSearchParams;
}

/** The open approvals. The script keeps the form of one that is still open, with what was typed into it. */
export function renderApprovals(view: RunView, viewer: ApprovalViewer, complaint?: Complaint): Html {
  const pending = pendingApprovals(view);
  const gone =
    complaint !== undefined && !pending.some(({ id }) => id === complaint.approvalId)
      ? html`<p class="problem" role="alert">${complaint.problem}</p>`
      : undefined;
  const items = pending.map((approval, index) => {
    const own = complaint?.approvalId === approval.id ? complaint : undefined;
    return renderApproval(approval, { index, total: pending.length, viewer, complaint: own });
  });
  return html`${gone}${items}`;
}

interface Place {
  index: number;
  total: number;
  viewer: ApprovalViewer;
  complaint: Complaint | undefined;
}

function renderApproval(approval: Approval, { index, total, viewer, complaint }: Place): Html {
  const heading = `approval-${index}-${Buffer.from(approval.id).toString("base64url")}`;
  return html`<section class="approval" data-approval="${approval.id}" aria-labelledby="${heading}">
    <h2 id="${heading}">
      ${agentLabel(approval.agent)} wants to ${EFFECTS[approval.preview.kind]}
      <small>${total > 1 ? `${index + 1} of ${total}` : undefined}</small>
    </h2>
    <p><code>${displayName(approval.tool)}</code> ${oneLine(displayText(approval.preview.summary), 300)}</p>
    ${detail(approval)} ${deadlineText(approval).map((line) => html`<p class="how">${line}</p>`)}
    ${foot(approval, viewer, complaint)}
  </section>`;
}

const EFFECTS: Record<Approval["preview"]["kind"], string> = {
  diff: "change a file",
  command: "run a command",
  arguments: "call a tool",
};

function detail({ preview }: Approval): Html {
  const label = "What would happen";
  if (preview.kind === "diff") return renderDiff(displayText(preview.detail), label);
  return html`<pre class="detail" tabindex="0" aria-label="${label}">${displayText(preview.detail)}</pre>`;
}

function foot(
  approval: Approval,
  { session, openCommand }: ApprovalViewer,
  complaint: Complaint | undefined,
): Html {
  if (session !== "app" && session.purpose === "decide") return decisionForm(approval, session, complaint);
  const why = session === "app" ? BESIDE_APP : ONLY_LOOKS;
  return html`<p class="how">
    ${why} ${openCommand && html`or run <code>${openCommand}</code> in a terminal`}.
  </p>`;
}

/** What a host frames it can also press, so the app has nothing to press. */
const BESIDE_APP = "Nothing is decided in this view. Answer the form of your client";
/** A session that came from a tool result only looks on: the model that read the link could have opened it. */
const ONLY_LOOKS =
  "This page was opened from a link that the calling model knows, so it only shows the run. To decide, use a client that shows forms";

function decisionForm(approval: Approval, session: PageSession, complaint: Complaint | undefined): Html {
  const offered = offeredDecisions(approval);
  const may = (decision: PersonDecision["type"]) => offered.includes(decision);
  return html`<form method="post" action="${runPath(approval.runId)}/decide" autocomplete="off">
    <input type="hidden" name="csrf" value="${session.csrf}" />
    <input type="hidden" name="approval" value="${approval.id}" />
    ${NO_DEFAULT}
    ${complaint === undefined ? undefined : html`<p class="problem" role="alert">${complaint.problem}</p>`}
    ${may("edit") ? editor(approval, complaint) : undefined} ${may("reject") ? reason(complaint) : undefined}
    <p class="buttons">
      ${may("approve") ? button("approve", "Approve") : undefined}
      ${may("approve_same") ? button("approve_same", "Approve the same for this run") : undefined}
      ${may("reject") ? button("reject", "Reject") : undefined}
    </p>
    ${may("approve_same") ? sameHint(approval) : undefined}
  </form>`;
}

const sameHint = ({ same }: Approval): Html =>
  html`<p class="none">The same: every further ${same?.text}, until the run ends.</p>`;

/** The return key in a field presses a form's first button: this one, which does nothing. */
const NO_DEFAULT = html`<button disabled hidden></button>`;

const button = (decision: string, label: string): Html =>
  html`<button name="decision" value="${decision}" class="${decision}">${label}</button>`;

function editor(approval: Approval, complaint: Complaint | undefined): Html {
  const { text, json } = editableArguments(approval);
  const typed = complaint?.form.get("edited_args") ?? undefined;
  const typedText = complaint?.form.get("edited_text") ?? undefined;
  const isBare = text !== undefined && json === "{}";
  const fields = html`<summary>Change the arguments</summary>
    ${text === undefined ? undefined : area("edited_text", text.name, typedText ?? text.value, 14)}
    ${isBare ? html`<input type="hidden" name="edited_args" value="{}" />` : area("edited_args", text === undefined ? "Arguments (JSON)" : "Other arguments (JSON)", typed ?? json, 6)}
    <p class="buttons">${button("edit", "Approve with changes")}</p>`;
  return typed === undefined ? html`<details>${fields}</details>` : html`<details open>${fields}</details>`;
}

/** Parsers drop a line break right after the tag: this one, and not the first of the text. */
const area = (name: string, label: string, text: string, rows: number): Html =>
  html`<label
    ><span>${label}</span>
    <textarea name="${name}" rows="${rows}" spellcheck="false">${"\n"}${text}</textarea>
  </label>`;

function reason(complaint: Complaint | undefined): Html {
  const typed = complaint?.form.get("message") ?? "";
  return html`<label class="message"
    ><span>Message to the agent, when you reject</span>
    <input name="message" maxlength="2000" value="${typed}"
  /></label>`;
}
