/** One approval in a review: the exact call, and the decision. */
import { offeredDecisions, offeredRules, ruleName } from "../../../tools/call-request.ts";
import { capital, displayName, displayText } from "../../../core/text.ts";
import { answerText } from "../../../tools/check-answer.ts";
import { timeOf } from "./figures.ts";
import { askedCall } from "../../../runs/asked-words.ts";
import type { Approval } from "../../../runs/run.ts";
import type { PersonDecision } from "../../../tools/request.ts";
import { editableArguments } from "./editable-arguments.ts";
import { type ApprovalViewer, type Viewer, callPath, linesPath, mayDecide } from "../../contracts/viewer.ts";
import { agentTypes, deadlineText, heldBackText } from "../request-words.ts";
import { renderDiff } from "../content/diff.ts";
import { languageOf } from "../content/texts.ts";
import { type Html, html, icon, textArea } from "../html.ts";
import { type ShownCall, shownCall } from "../shown-call.ts";
import { choiceInput, diffLooks, labelled, shownPath, terms } from "./pieces.ts";
import { type CardParts, type Complaint, type RequestLook, fold, onlyLooks, requestForm } from "./request.ts";

/** Such as `Run node --test test/`, or `Edit src/alarms.ts`. */
export function callHeadline(approval: Pick<Approval, "preview" | "tool" | "args">): Html {
  const { act, object, kind } = askedCall(approval);
  return html`<span class="headline"
    >${act} ${kind === "file" ? shownPath(object) : html`<code class="cut">${object}</code>`}</span
  >`;
}

const onPage = (approval: Pick<Approval, "preview">): ShownCall => shownCall(approval, Infinity);

/** True if a review shows all of the call; else its own screen does. */
export const isWholeOnPage = (approval: Approval): boolean => onPage(approval).isWhole;

export function approvalCard(approval: Approval, look: RequestLook): CardParts {
  const call = onPage(approval);
  return {
    tag: displayName(approval.tool),
    title: approval.preview.kind === "command" ? html`Run a command` : callHeadline(approval),
    more: html`${renderDestination(approval)}
    ${saysInHead(approval) && html`<p class="${approval.preview.again ? "notice amber" : "note"}">${call.summary}</p>`}`,
    content: html`${detail(approval, call, look.viewer.session)} ${facts(approval, call)} ${END}
    ${foot(approval, { ...look, isWhole: call.isWhole })}`,
  };
}

/** The path that is touched, where the title does not show all of it. */
const renderDestination = ({ preview: { destination = "" }, args }: Approval): Html | false =>
  destination !== "" &&
  (destination !== args["file_path"] || destination.length > 60) &&
  html`<p class="ask-to">Full path: ${displayName(destination)}</p>`;

const filePath = (args: Approval["args"]): string =>
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
    const path = filePath(args);
    const lines = viewer === "app" || path === "" ? undefined : linesPath(runId, { approval: id });
    const diff = renderDiff(text, { label: "What would change", path, lines, isUnfolded: true });
    return html`${diffLooks(viewer)}${diff}${more}`;
  }
  if (preview.kind === "command") {
    return html`<div class="command" tabindex="0" role="group" aria-label="The command">
        <span class="prompt" aria-hidden="true">$</span><code>${text}</code>
      </div>
      ${more}`;
  }
  const label = preview.lost === undefined ? "Arguments" : "What is deleted";
  return html`<pre class="json" tabindex="0" role="group" aria-label="${label}">${preview.lost ?? text}</pre>
    ${more}`;
}

/** Says that there is more, and leads to it. */
const partOnly = (address: string, viewer: Viewer): Html =>
  html`<p class="notice amber part-only">
    ${
      viewer === "app"
        ? "This call is too long to show here. The page and the terminal show all of it."
        : html`This call is too long to show here. <a class="link" href="${address}">Open it in full</a> to
            approve it.`
    }
  </p>`;

/**
 * All of a call that waits, with its decision: its whole diff, or else `parts`, all arguments. `proof`: says that the
 * form stands below the whole call.
 */
export function renderWholeCall(
  approval: Approval,
  viewer: ApprovalViewer,
  parts: readonly Html[],
  proof: string,
): Html {
  const call = onPage(approval);
  const { whole } = approval.preview;
  return html`<article class="panel ask whole-call" data-approval="${approval.id}" tabindex="-1">
    <div class="ask-head">
      <h2>${call.summary}</h2>
      ${renderDestination(approval)}
    </div>
    ${(approval.status !== "pending" || whole !== undefined) && detail(approval, { ...call, detail: whole ?? call.detail, isWhole: true }, viewer.session)}
    ${whole === undefined && parts} ${END} ${foot(approval, { viewer, isOfAll: false, isWhole: true, proof })}
  </article>`;
}

/** True if the summary stands above the call, because it says more than the title or has to be read first. */
const saysInHead = ({ preview }: Approval): boolean => preview.kind === "diff" || preview.again === true;

function facts(approval: Approval, { summary }: ShownCall): Html | false {
  const { agent, tool } = approval;
  const { act, object } = askedCall(approval);
  const isSaid =
    saysInHead(approval) || [displayName(tool), `${act} ${displayName(object)}`].includes(summary);
  return terms("kv", [
    ...(isSaid ? [] : [["Action", summary] as const]),
    ...(agent.length > 1 ? [["Agent", agentTypes(agent)] as const] : []),
    ...deadlineText(approval).map((line) => ["Deadline", line] as const),
  ]);
}

/** `isWhole`: all of the call stands above it. */
function foot(
  approval: Approval,
  look: Omit<RequestLook, "now"> & { isWhole: boolean; proof?: string },
): Html {
  const { status, decidedAt = 0, answer } = approval;
  const reason = answer === undefined ? "" : displayText(answerText(answer) ?? "");
  if (status !== "pending")
    return html`<p class="ask-foot note">${capital(status)} at ${timeOf(decidedAt)}. ${reason}</p>`;
  if (!mayDecide(look.viewer.session)) return onlyLooks(look.viewer);
  const { complaint } = look;
  const offered = offeredDecisions(approval, look);
  const may = (decision: PersonDecision["type"]) => offered.includes(decision);
  const buttons = html`<div class="decide">
    ${may("approve") && button("approve", "ok", html`Approve<kbd aria-hidden="true">A</kbd>`)}
    ${may("approve_same") && button("approve_same", "wide", "Approve for this run")}
    ${may("edit") && editor(approval, complaint)} ${may("reject") && rejection(approval, complaint)}
    ${may("approve_same") && html`<span class="note">Also approves ${displayName(approval.same?.text ?? "")} for the rest of the run.</span>`}
    ${may("approve_always") && alwaysAllow(approval, complaint)}
    ${heldBackText(approval).map((text) => html`<span class="note held-back">${text}</span>`)}
  </div>`;
  return requestForm(approval, look, "ask-foot", buttons);
}

const button = (decision: string, look: string, label: Html | string): Html =>
  html`<button name="decision" value="${decision}" class="btn ${look}">${label}</button>`;

function editor(approval: Approval, complaint: Complaint | undefined): Html {
  const { text, json } = editableArguments(approval);
  const typed = (name: string): string | undefined => complaint?.form.get(name) ?? undefined;
  const isBare = text !== undefined && json === "{}";
  const jsonLabel = text === undefined ? "Arguments (JSON)" : "Other arguments (JSON)";
  const language = text?.name === "command" ? "shell" : languageOf(filePath(approval.args));
  const fields = html`${text && area("edited_text", text.name, typed("edited_text") ?? text.value, 14, language)}
    ${isBare ? html`<input type="hidden" name="edited_args" value="{}" />` : area("edited_args", jsonLabel, typed("edited_args") ?? json, 6, "json")}
    ${text?.hasMarks && html`<p class="note">A mark such as ⟨U+200D⟩ is one character that is not visible. Delete it like any other.</p>`}
    <p>
      ${button("edit", "ok", "Approve with changes")}
      <span class="note">The agent will see your version.</span>
    </p>`;
  const isOpen = typed("edited_args") !== undefined;
  return fold("edit", approval, isOpen, html`Edit<kbd aria-hidden="true">E</kbd>`, fields);
}

/**
 * A field that the script puts an editor over. Parsers drop a line break right after the tag: this one, and not the
 * first of the text.
 */
const area = (name: string, label: string, text: string, rows: number, language: string): Html =>
  html`<div data-code data-language="${language}">
    ${labelled(label, textArea(html`class="field mono" name="${name}" rows="${rows}" spellcheck="false"`, text))}
  </div>`;

/** The rules that can be saved. None is chosen at first. */
function alwaysAllow(approval: Approval, complaint: Complaint | undefined): Html {
  const chosen = complaint?.form.get("rule");
  const isOpen =
    chosen !== undefined && (chosen !== null || complaint?.form.get("decision") === "approve_always");
  const choices = offeredRules(approval).map((offer) => {
    const name = ruleName(offer);
    const examples = offer.examples.map((example) => html`<code>${displayName(example)}</code>`);
    const more = html`<span>${displayName(offer.sentence)}</span>
      ${examples.length > 0 && html`<span class="dim">Such as ${examples}</span>`}`;
    return choiceInput("rule", name, name, name === chosen, { look: "mono", more });
  });
  const fields = html`<fieldset class="choices rule-choices">
      <legend>From now on, without asking:</legend>
      ${choices}
    </fieldset>
    <p>${button("approve_always", "ok", "Approve and always allow")}</p>`;
  return fold("always", approval, isOpen, html`Always allow…${icon("down")}`, fields);
}

function rejection(approval: Approval, complaint: Complaint | undefined): Html {
  const typed = complaint?.form.get("message") ?? "";
  const label = html`Reason (the agent sees this and continues without the call)`;
  const field = textArea(html`class="field" name="message" rows="2" maxlength="2000"`, typed);
  const fields = html`${labelled(label, field)}
    <p>${button("reject", "no", "Reject")}</p>`;
  return fold("reject", approval, typed !== "", html`Reject<kbd aria-hidden="true">X</kbd>`, fields);
}
