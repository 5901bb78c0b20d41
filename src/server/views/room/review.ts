/** The review of open approvals: the agent and its reason, the exact call, and the decision. */
import { displayName, oneLine } from "../../../core/text.ts";
import { type Approval, DEADLINE, type PersonDecision, type RunView, agentName } from "../../../runs/run.ts";
import { editableArguments } from "../../page/decision.ts";
import {
  type ApprovalViewer,
  type Viewer,
  callPath,
  linesPath,
  mayDecide,
  runPath,
} from "../../page/sessions.ts";
import { agentTypes, deadlineText } from "../approval-form.ts";
import { renderDiff } from "../content/diff.ts";
import { languageOf } from "../content/texts.ts";
import { type Html, html, textArea } from "../html.ts";
import { pendingApprovals } from "../run-report.ts";
import { type ShownCall, decisionsFor, shownCall } from "../shown-call.ts";
import { elapsed, timeOf } from "./figures.ts";
import { icon } from "./icons.ts";
import { diffLooks, mainOf, shownPath } from "./pieces.ts";
import { RUN_STATES, type State, approvalIcon } from "./states.ts";

/** One that waits, with what its agent said before it asked. */
export interface Request {
  approval: Approval;
  why: string | undefined;
  /** Task of the run, if requests of several runs are shown. */
  task?: string | undefined;
}

/** A form that was refused; it is shown again with the text that the person typed. */
export interface Complaint {
  approvalId: string;
  problem: string;
  form: URLSearchParams;
}

const MAX = { line: 200, why: 600, decided: 100 };

/** Names a request in the page's addresses. */
export const anchorOf = ({ id }: Pick<Approval, "id">): string =>
  `a-${Buffer.from(id).toString("base64url")}`;

type Headed = Pick<Approval, "preview" | "tool" | "args">;

/** Names the act and its object: a command, a file, or a tool of another kind. */
function doing({ preview: { kind, summary, detail }, tool, args }: Headed): [verb: string, thing: string] {
  if (kind === "command") return ["Run", oneLine(displayName(detail), MAX.line)];
  const [path, verb] = [pathOf(args), summary.split(" ", 1)[0] ?? ""];
  return path === "" || !FILE_VERBS.has(verb) ? ["Call", displayName(tool)] : [verb, path];
}

/** Summaries of the tools that change files begin with one of these. */
const FILE_VERBS = new Set(["Change", "Create", "Delete", "Edit", "Overwrite", "Write"]);

/** Such as `Run node --test test/`, or `Edit src/alarms.ts`. */
export function headline(approval: Headed): Html {
  const [verb, thing] = doing(approval);
  const isPath = verb !== "Run" && verb !== "Call";
  return html`<span class="headline"
    >${verb} ${isPath ? shownPath(thing) : html`<code class="cut">${thing}</code>`}</span
  >`;
}

/** The same as text. */
export const headlineText = (approval: Headed): string => doing(approval).join(" ");

/** The call as a review shows it. */
const onPage = (approval: Pick<Approval, "preview">): ShownCall => shownCall(approval, Infinity);

/** True if a review shows all of the call; else its own screen does. */
export const isWholeOnPage = (approval: Approval): boolean => onPage(approval).isWhole;

export interface ReviewScreen {
  requests: readonly Request[];
  /** How many more wait. Default: none. */
  rest?: number;
  viewer: ApprovalViewer;
  now: number;
  complaint?: Complaint | undefined;
  /** The run they belong to; absent where those of all runs are shown. */
  view?: RunView | undefined;
}

/** One after the other, without what is around them. */
export const renderRequests = (screen: ReviewScreen): Html =>
  html`${screen.requests.map((request, index) => renderRequest(request, index, screen))}`;

export function renderReview(screen: ReviewScreen): Html {
  const { requests, rest = 0, view, viewer, now, complaint } = screen;
  const waiting = requests.length + rest;
  const gone =
    complaint !== undefined && !requests.some(({ approval }) => approval.id === complaint.approvalId)
      ? html`<p class="notice red" role="alert">${complaint.problem}</p>`
      : undefined;
  const queue = requests.map(
    ({ approval, task }) =>
      html`<li id="q-${anchorOf(approval)}">
        <a href="#${anchorOf(approval)}" data-row
          >${icon(approvalIcon(approval), "amber")}${headline(approval)}<small class="cut"
            >${who(approval)} ·
            ${elapsed(approval.requestedAt, undefined, now)}${task === undefined ? undefined : html` · ${oneLine(task, 80)}`}</small
          ></a
        >
      </li>`,
  );
  const content = html`<aside class="queue" aria-label="Decisions">
      <section>
        <h2>Waiting<span class="count${waiting > 0 ? " amber" : ""}">${waiting}</span></h2>
        <ol class="list">
          ${queue}
        </ol>
      </section>
      ${view === undefined ? undefined : decided(view)}
    </aside>
    <div id="requests">
      ${gone}${renderRequests(screen)} ${requests.length === 0 ? NOTHING_WAITS : undefined}
      ${rest === 0 ? undefined : html`<p class="note pad">${rest} more come when these are decided.</p>`}
    </div>`;
  return mainOf(viewer.session, "review", content);
}

const NOTHING_WAITS = html`<div class="panel empty">
  ${icon("done")}
  <h3>Nothing waits for you</h3>
  <p>What an agent may not do by itself comes here.</p>
</div>`;

export const who = ({ agent }: Approval): string => {
  const last = agent.at(-1);
  return last === undefined ? "Main agent" : displayName(oneLine(last.task ?? agentName(last), 80));
};

const DECISIONS: Readonly<Record<string, State>> = {
  approved: { ...RUN_STATES.completed, word: "Approved" },
  edited: { ...RUN_STATES.completed, word: "Approved with changes" },
  rejected: { ...RUN_STATES.failed, word: "Rejected" },
  withdrawn: { ...RUN_STATES.cancelled, word: "No longer needed" },
};

/** Ways that a person decides, by the channel of the decision. */
const CHANNELS: Readonly<Record<string, string>> = {
  page: "on the page",
  terminal: "in a terminal",
  elicitation: "in the client",
  input_required: "in the client",
  "tasks/update": "in the client",
  answer_deep_agent: "by the client’s model",
  [DEADLINE]: "because nobody decided in time",
};

function decisionText({ status, decidedBy }: Approval, { word }: State): string {
  if (decidedBy === undefined || status === "withdrawn") return word;
  return `${word} ${CHANNELS[decidedBy] ?? `(${oneLine(decidedBy.replaceAll("_", " "), 40)})`}`;
}

function decided({ approvals }: RunView): Html | undefined {
  const past = approvals.filter(({ status }) => status !== "pending").toReversed();
  if (past.length === 0) return undefined;
  const items = past.slice(0, MAX.decided).map((approval) => {
    const state = DECISIONS[approval.status] ?? RUN_STATES.cancelled;
    const at = approval.decidedAt === undefined ? undefined : html`, ${timeOf(approval.decidedAt)}`;
    return html`<li>
      <span class="past"
        >${icon(state.icon, state.tone)}${headline(approval)}<small
          >${decisionText(approval, state)}${at}</small
        ></span
      >
    </li>`;
  });
  return html`<section class="past-box">
    <h2>Decided<span class="count">${past.length}</span></h2>
    <ul>
      ${items}
    </ul>
  </section>`;
}

const TITLES: Readonly<Record<Approval["preview"]["kind"], string>> = {
  diff: "Change a file",
  command: "Run a command",
  arguments: "Call a tool",
};

function renderRequest(request: Request, index: number, { requests, viewer, complaint }: ReviewScreen): Html {
  const { approval, why, task } = request;
  const anchor = anchorOf(approval);
  const { preview } = approval;
  const call = onPage(approval);
  const own = complaint?.approvalId === approval.id ? complaint : undefined;
  return html`<article
    class="panel ask"
    id="${anchor}"
    data-approval="${approval.id}"
    aria-labelledby="${anchor}-h"
    tabindex="-1"
  >
    <div class="ask-head">
      <div class="ask-kicker">
        ${icon(approvalIcon(approval), "amber")}<span class="cut">${who(approval)}</span
        ><span class="tag">${displayName(approval.tool)}</span
        ><span class="end num"
          >${index + 1} of ${requests.length}<span class="desk">
            · asked ${timeOf(approval.requestedAt)}</span
          ></span
        >
      </div>
      <h2 id="${anchor}-h">${preview.kind === "command" ? TITLES.command : headline(approval)}</h2>
      ${call.destination.map((line) => html`<p class="ask-to">${line}</p>`)}
      ${task === undefined ? undefined : html`<p class="note">In <a class="link" href="${runPath(approval.runId)}">${oneLine(task, 160)}</a></p>`}
      ${why === undefined ? undefined : html`<blockquote class="ask-why" aria-label="What the agent said before">${oneLine(why, MAX.why)}</blockquote>`}
    </div>
    ${detail(approval, call, viewer.session)} ${facts(approval, call)} ${END}
    ${foot(approval, viewer, { complaint: own, isOfAll: task !== undefined, isWhole: call.isWhole })}
  </article>`;
}

const pathOf = (args: Approval["args"]): string =>
  typeof args["file_path"] === "string" ? args["file_path"] : "";

/** When a person has seen this, they have seen the call. */
const END = html`<span data-end></span>`;

function detail(
  { id, runId, preview, args }: Approval,
  { detail: text, isWhole }: ShownCall,
  viewer: Viewer,
): Html {
  const more = isWhole ? undefined : partOnly(callPath(runId, id), viewer);
  if (preview.kind === "diff") {
    const path = pathOf(args);
    const lines = viewer === "app" || path === "" ? undefined : linesPath(runId, { approval: id });
    const diff = renderDiff(text, { label: "What would change", path, lines, isUnfolded: true });
    return html`${diffLooks(viewer)}${diff}${more}`;
  }
  if (preview.kind === "command") {
    return html`<div class="command" tabindex="0" role="region" aria-label="The command">
        <span class="prompt" aria-hidden="true">$</span><code>${text}</code>
      </div>
      ${more}`;
  }
  return html`<pre class="json" tabindex="0" role="region" aria-label="Arguments">${text}</pre>
    ${more}`;
}

/** Says that there is more, and leads to it. */
const partOnly = (address: string, viewer: Viewer): Html =>
  html`<p class="notice amber part-only">
    ${
      viewer === "app"
        ? "This is only a part of the call. The page and the terminal show all of it."
        : html`This is only a part of the call, so it cannot be approved here.
            <a class="link" href="${address}">Show the whole call</a>`
    }
  </p>`;

interface WholeCall {
  approval: Approval;
  /** All arguments. */
  parts: readonly Html[];
  viewer: ApprovalViewer;
  /** Says that the form stands below the whole call. */
  proof: string;
}

/** All of a call that waits, with its decision. */
export function renderWholeCall({ approval, parts, viewer, proof }: WholeCall): Html {
  const call = onPage(approval);
  return html`<article class="panel ask whole-call" data-approval="${approval.id}" tabindex="-1">
    <div class="ask-head">
      <h2>${call.summary}</h2>
      ${call.destination.map((line) => html`<p class="ask-to">${line}</p>`)}
    </div>
    ${parts} ${END} ${foot(approval, viewer, { isOfAll: false, isWhole: true, proof })}
  </article>`;
}

function facts(approval: Approval, { summary }: ShownCall): Html | undefined {
  const { preview, agent } = approval;
  const rows = [
    ...(preview.kind === "diff" ? [] : [["What", html`${summary}`] as const]),
    ...(agent.length > 1 ? [["Agent", html`${agentTypes(agent)}`] as const] : []),
    ...deadlineText(approval).map((line) => ["Deadline", html`${line}`] as const),
  ];
  if (rows.length === 0) return undefined;
  return html`<dl class="kv">
    ${rows.map(
      ([name, text]) =>
        html`<dt>${name}</dt>
          <dd>${text}</dd>`,
    )}
  </dl>`;
}

/** The form of one request. */
interface FormLook {
  complaint?: Complaint | undefined;
  /** Decided among the requests of all runs. */
  isOfAll: boolean;
  /** All of the call stands above it. */
  isWhole: boolean;
  proof?: string;
}

function foot(approval: Approval, { session, openCommand }: ApprovalViewer, look: FormLook): Html {
  if (session !== "app" && mayDecide(session)) return decisionForm(approval, look);
  const why = whyNot(session);
  return html`<p class="ask-foot note">
    ${icon("eye")} ${why} ${openCommand && html`or run <code>${openCommand}</code> in a terminal`}.
  </p>`;
}

/** A host could press anything in a page that it frames, so the app has no buttons. */
const BESIDE_APP = "Nothing is decided in this view. Answer the form of your client";
/** A session that came from a tool result only looks on: the model that read the link could have opened it. */
const ONLY_LOOKS =
  "This page was opened from a link that the calling model knows, so it only shows the run. To decide, use a client that shows forms";

const LACKS_SCOPE = "Your token only looks. To decide, log in with one that has the scope approve";

function whyNot(viewer: Viewer): string {
  if (viewer === "app") return BESIDE_APP;
  return viewer.isLoggedIn ? LACKS_SCOPE : ONLY_LOOKS;
}

function decisionForm(approval: Approval, { complaint, isOfAll, isWhole, proof }: FormLook): Html {
  const offered = decisionsFor(approval, { isWhole });
  const may = (decision: PersonDecision["type"]) => offered.includes(decision);
  const text = complaint && html`<p class="notice red" role="alert">${complaint.problem}</p>`;
  return html`<form
    class="ask-foot"
    method="post"
    action="${runPath(approval.runId)}/decide"
    autocomplete="off"
  >
    <input type="hidden" name="approval" value="${approval.id}" />
    <input type="hidden" name="back" value="${isOfAll ? "all" : "run"}" />
    ${proof && html`<input type="hidden" name="whole" value="${proof}" />`} ${NO_DEFAULT} ${text}
    <div class="decide">
      ${may("approve") ? button("approve", "ok", html`Approve<kbd aria-hidden="true">A</kbd>`) : undefined}
      ${may("approve_same") ? button("approve_same", "wide", html`Approve the same for this run`) : undefined}
      ${may("edit") ? editor(approval, complaint) : undefined}
      ${may("reject") ? rejection(approval, complaint) : undefined}
      ${may("approve_same") ? html`<span class="note">The same: every further ${displayName(approval.same?.text ?? "")}, until the run ends.</span>` : undefined}
    </div>
  </form>`;
}

/** The return key in a field presses a form's first button: this one, which does nothing. */
const NO_DEFAULT = html`<button disabled hidden></button>`;

const button = (decision: string, look: string, label: Html): Html =>
  html`<button name="decision" value="${decision}" class="btn ${look}">${label}</button>`;

/** Opened and closed by the person, one at a time; stays as it is when the page is brought up to date. */
const fold = (name: string, { id }: Approval, isOpen: boolean, title: Html, body: Html): Html =>
  html`<details class="fold" name="decide ${id}" data-fold="${name}" ${isOpen ? html` open` : undefined}>
    <summary class="btn">${title}</summary>
    <div class="more-form">${body}</div>
  </details>`;

function editor(approval: Approval, complaint: Complaint | undefined): Html {
  const { text, json } = editableArguments(approval);
  const typed = complaint?.form.get("edited_args") ?? undefined;
  const typedText = complaint?.form.get("edited_text") ?? undefined;
  const isBare = text !== undefined && json === "{}";
  const language = text?.name === "command" ? "shell" : languageOf(pathOf(approval.args));
  const fields = html`${text && area("edited_text", text.name, typedText ?? text.value, { rows: 14, language })}
    ${isBare ? html`<input type="hidden" name="edited_args" value="{}" />` : area("edited_args", text === undefined ? "Arguments (JSON)" : "Other arguments (JSON)", typed ?? json, { rows: 6, language: "json" })}
    ${text?.hasMarks === true ? html`<p class="note">A mark such as ⟨U+200D⟩ is one character that is not visible. Delete it like any other.</p>` : undefined}
    <p>
      ${button("edit", "ok", html`Approve with changes`)}
      <span class="note">The agent is told what ran instead.</span>
    </p>`;
  return fold("edit", approval, typed !== undefined, html`Edit<kbd aria-hidden="true">E</kbd>`, fields);
}

interface AreaLook {
  rows: number;
  language: string | undefined;
}

/**
 * A field that the script puts an editor over. Parsers drop a line break right after the tag: this one, and not the
 * first of the text.
 */
const area = (name: string, label: string, text: string, { rows, language = "" }: AreaLook): Html =>
  html`<div data-code data-language="${language}">
    <label
      ><span class="label">${label}</span>
      ${textArea(html`class="field mono" name="${name}" rows="${rows}" spellcheck="false"`, text)}
    </label>
  </div>`;

function rejection(approval: Approval, complaint: Complaint | undefined): Html {
  const typed = complaint?.form.get("message") ?? "";
  const fields = html`<label
      ><span class="label">Message to the agent, which reads it and goes on without the call</span>
      ${textArea(html`class="field" name="message" rows="2" maxlength="2000"`, typed)}
    </label>
    <p>${button("reject", "no", html`Reject`)}</p>`;
  return fold("reject", approval, typed !== "", html`Reject<kbd aria-hidden="true">X</kbd>`, fields);
}

/** The requests of one run. */
export const requestsOf = (view: RunView, why: ReadonlyMap<string, string>): Request[] =>
  pendingApprovals(view).map((approval) => ({ approval, why: why.get(approval.id) }));
