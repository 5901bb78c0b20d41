/**
 * The picture of a run in HTML: its status, answer, agents, journal, and the calls that wait for approval.
 */
import { isoTime } from "../../core/clock.ts";
import { cutMiddle, displayName, displayText, firstSentence, oneLine } from "../../core/text.ts";
import { type RunEvent, activityOf } from "../../runs/events.ts";
import {
  type Approval,
  type ModelUsage,
  type PersonDecision,
  type RunView,
  type SubagentView,
  offeredDecisions,
} from "../../runs/run.ts";
import { costText } from "../../runs/view.ts";
import { editableArguments } from "../page/decision.ts";
import {
  type ApprovalViewer,
  type PageSession,
  type Viewer,
  changesPath,
  runPath,
} from "../page/sessions.ts";
import { agentLabel, deadlineText } from "./approval-form.ts";
import { type Html, clockTime, html, renderDiff, renderTime } from "./html.ts";
import { pendingApprovals } from "./run-report.ts";

const MAX = { answer: 100_000, line: 300, tip: 1000, agents: 300, files: 500, todos: 200 };

/** How many events of the journal the page shows, newest first. */
export const SHOWN_EVENTS = 100;

const STATUS: Record<RunView["run"]["status"], string> = {
  working: "Working",
  input_required: "Waits for a decision",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** The part of the page that is replaced as a whole whenever the run changes. */
export function renderRun(view: RunView, events: readonly RunEvent[], viewer: Viewer): Html {
  return html`${summary(view)} ${outcome(view)}
    <div class="columns">
      <div>${grants(view)} ${todos(view)} ${agents(view)}</div>
      <div>${files(view, viewer)} ${journal(events)}</div>
    </div>`;
}

function summary({ run, activity, models }: RunView): Html {
  const { inputTokens, outputTokens, cachedInputTokens } = run.usage;
  const tokens = `${count(inputTokens)} in (${count(cachedInputTokens)} cached), ${count(outputTokens)} out`;
  return html`<div class="summary">
    <p role="status">
      <strong class="badge ${run.status}">${STATUS[run.status]}</strong>
      <span>${oneLine(activity, MAX.line)}</span>
    </p>
    <dl>
      <div>
        <dt>Started</dt>
        <dd>${renderTime(run.createdAt)}</dd>
      </div>
      <div>
        <dt>${run.endedAt === undefined ? "Last change" : "Ended"}</dt>
        <dd>${renderTime(run.endedAt ?? run.updatedAt)}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>${tokens}</dd>
      </div>
      ${cost(models)}
    </dl>
  </div>`;
}

/** Shown where `limits.prices` names what models cost. */
function cost(models: readonly ModelUsage[]): Html | undefined {
  const text = costText(models);
  if (text === undefined) return undefined;
  const byModel = models.map((used) => `${used.model}: ${costText([used]) ?? "unknown"}`).join(", ");
  return html`<div title="${byModel}">
    <dt>Cost</dt>
    <dd>${text}</dd>
  </div>`;
}

function outcome({ run }: RunView): Html | undefined {
  if (run.failure !== undefined) {
    return html`<section>
      <h2>Why it failed</h2>
      <pre>${run.failure.reason}: ${run.failure.message}</pre>
    </section>`;
  }
  if (run.cancelReason !== undefined) {
    return html`<section>
      <h2>Why it was cancelled</h2>
      <pre>${run.cancelReason}</pre>
    </section>`;
  }
  if (run.answer === undefined || run.status !== "completed") return undefined;
  return html`<section>
    <h2>Answer</h2>
    <pre class="answer">${cutMiddle(run.answer, MAX.answer)}</pre>
  </section>`;
}

/** What a person approved for the whole run; nothing to show where there is none. */
function grants({ grants: all }: RunView): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all
    .slice(0, MAX.todos)
    .map(
      ({ text, grantedBy, grantedAt }) =>
        html`<li>${oneLine(text, MAX.line)} <small>${grantedBy}, ${renderTime(grantedAt)}</small></li>`,
    );
  return section(
    "Approved for this run",
    all.length,
    html`<ul>
      ${items}
    </ul>`,
  );
}

function todos({ run }: RunView): Html {
  const items = run.todos.slice(0, MAX.todos).map(({ content, status }) => {
    const label = status.replace("_", " ");
    return html`<li class="${status}">
      <span class="mark" aria-label="${label}"></span>${oneLine(content, MAX.line)}
    </li>`;
  });
  return section(
    "Todos",
    items.length,
    html`<ul class="todos">
      ${items}
    </ul>`,
  );
}

/** Agents nest by their path; each stands before those it started. */
function agents({ subagents }: RunView): Html {
  const shown = subagents.slice(0, MAX.agents);
  return section(
    "Agents",
    shown.length,
    html`<ul class="tree">
      ${branches(shown, "", 1)}
    </ul>`,
  );
}

const MAX_DEPTH = 16;

function branches(all: readonly SubagentView[], parent: string, depth: number): Html[] {
  return all
    .filter(({ agent }) => agent.length === depth && keyOf(agent.slice(0, -1)) === parent)
    .map((subagent) => {
      const inner = depth < MAX_DEPTH ? branches(all, keyOf(subagent.agent), depth + 1) : [];
      const calls = `${subagent.toolCalls} ${subagent.toolCalls === 1 ? "call" : "calls"}`;
      return html`<li>
        <p>
          <span class="mark ${subagent.status}" aria-label="${subagent.status}"></span>
          <strong>${oneLine(subagent.name, 64)}</strong>
          <span title="${oneLine(subagent.description, MAX.tip)}"
            >${firstSentence(subagent.description, MAX.line)}</span
          >
          <small>${calls}</small>
        </p>
        <p class="step">${oneLine(subagent.step, MAX.line)}</p>
        ${
          inner.length === 0
            ? undefined
            : html`<ul>
                ${inner}
              </ul>`
        }
      </li>`;
    });
}

const keyOf = (agent: SubagentView["agent"]): string =>
  agent.length === 0 ? "" : JSON.stringify(agent.map(({ callId }) => callId));

function files({ run, filesChanged }: RunView, viewer: Viewer): Html {
  const items = filesChanged.slice(0, MAX.files).map((path) => {
    const name = html`<code>${path}</code>`;
    return html`<li>
      ${viewer === "app" ? name : html`<a href="${changesPath(run.id, path)}">${name}</a>`}
    </li>`;
  });
  return section(
    "Files changed",
    filesChanged.length,
    html`<ul class="files">
      ${items}
    </ul>`,
  );
}

function journal(events: readonly RunEvent[]): Html {
  const rows = events.flatMap((event) => {
    const line = activityOf(event);
    return line === undefined ? [] : [eventRow(event, line)];
  });
  const list = html`<ol class="events" tabindex="0" aria-label="Events, newest first">
    ${rows.toReversed()}
  </ol>`;
  return section("Events", rows.length, list);
}

function eventRow(event: RunEvent, line: string): Html {
  const label = agentLabel(event.agent);
  return html`<li>
    <time datetime="${isoTime(event.time)}" title="${label}">${clockTime(event.time)}</time> ${line}
  </li>`;
}

function section(title: string, size: number, body: Html): Html {
  const content = size === 0 ? html`<p class="none">None so far.</p>` : body;
  const total = size === 0 ? undefined : html` <small>${size}</small>`;
  return html`<section>
    <h2>${title}${total}</h2>
    ${content}
  </section>`;
}

const count = (value: number): string => value.toLocaleString("en-US");

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

/** A host could press anything in a page that it frames, so the app has no buttons. */
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
