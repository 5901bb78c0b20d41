/** The screen of rules that a person saved with approvals, by which later calls run without a question. */
import { displayName, displayText } from "../../../core/text.ts";
import type { ApprovalRule } from "../../../rules/call.ts";
import { counted } from "../../../tools/format.ts";
import { type PageSession, mayDecide, rulesPath, runPath } from "../../contracts/viewer.ts";
import { type Html, html } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { dayAndTime } from "./figures.ts";
import { buttonForm, emptyPanel, mainOf } from "./pieces.ts";
import { describeChannel } from "./review.ts";

export function renderRules(session: PageSession, rules: readonly ApprovalRule[]): Html {
  const rows = rules.map((rule) => row(rule, mayDecide(session)));
  const content = html`<div class="home-head">
      <h1>Approval rules</h1>
      <span class="dim">${counted(rules.length, "rule")}</span>
    </div>
    ${rules.length === 0 ? emptyPanel("tick", words.empty.rules) : html`<section class="panel" aria-label="Approval rules">${rows}</section>`}`;
  return mainOf(session, "home", content);
}

function row(saved: ApprovalRule, mayRemove: boolean): Html {
  const { id, folder, rule, isUnsandboxed, createdAt, createdBy, runId, uses, lastUsedAt } = saved;
  const place = isUnsandboxed ? ", outside any sandbox" : rule.startsWith("Bash(") ? ", in the sandbox" : "";
  return html`<article class="server" data-row tabindex="-1" id="${id}">
    <div class="server-what">
      <h2 class="anywhere"><code>${displayName(rule)}</code></h2>
      <p class="small anywhere">In ${displayText(folder)}${place}</p>
      <p class="small dim anywhere">
        Saved ${dayAndTime(createdAt)} ${describeChannel(createdBy)}.
        ${lastUsedAt === undefined ? "Not used yet." : html`Used ${counted(uses, "time")}, last ${dayAndTime(lastUsedAt)}.`}
      </p>
    </div>
    <div class="server-acts">
      <a class="btn small" href="${runPath(runId)}">Show the run</a>
      ${mayRemove && buttonForm(`${rulesPath()}/remove`, ["rule", id], "Remove", "small no")}
    </div>
  </article>`;
}
