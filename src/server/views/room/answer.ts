/** The screen of a run that has ended: its answer or outcome, its changes, and ways to continue. */
import { grouped, tokens, totalCost } from "../cost-words.ts";
import { duration, oneLine } from "../../../core/text.ts";
import { type DiffCounts, sumOfCounts } from "../../../core/diff.ts";
import { lowerLimits } from "../../../runs/choices.ts";
import { type RunView, type RunRequest } from "../../../runs/run.ts";
import type { Readiness, RunPoint } from "../../../runs/service.ts";
import { type Viewer, changesPath, isShared, runPath } from "../../contracts/viewer.ts";
import { renderDiffCounts } from "../content/diff.ts";
import { markdownText } from "../content/texts.ts";
import { type Html, html, icon } from "../html.ts";
import { limitWords } from "../limit-words.ts";
import words from "../words.json" with { type: "json" };
import { dayAndTime, money, timeOf } from "./figures.ts";
import { goalSection } from "./goal.ts";
import { renderOutcome } from "./outcome.ts";
import { startChips } from "./start-choices.ts";
import { withoutMarks } from "./steps.ts";
import { counted } from "./states.ts";
import type { Refused } from "./pieces.ts";
import { composeBox, copyButton, cutPath, diffLooks, listSection, mainOf, share, terms } from "./pieces.ts";
import { agentRows, waitsOf } from "./timeline.ts";

const MAX = { files: 100, points: 30, agents: 6 };

export interface ChangedFile {
  path: string;
  /** When it was changed last. */
  time: number;
  changes: number;
  /** Absent where they are not known. */
  counts?: DiffCounts | undefined;
  /** All changes as one, or one by one where they cannot be joined. Absent: they are not for this page. */
  diffs?: readonly Html[] | undefined;
}

/** The file that was changed last and the newest point come first. */
export function renderAnswer({
  view,
  viewer,
  files,
  points,
  refused,
  next,
}: {
  view: RunView;
  viewer: Viewer;
  files: readonly ChangedFile[];
  points: readonly RunPoint[];
  refused?: Refused | undefined;
  /** Choices for a run that continues this one, as fields of a form; absent: this viewer starts none. */
  next?: { readiness: Readiness; chosen: URLSearchParams } | undefined;
}): Html {
  // Its folder and its mode of changes stay.
  const { folders: _folders, changes: _changes, ...rest } = next?.readiness ?? {};
  const names: Readonly<Record<string, string>> = words.stoppedBy;
  const limit = names[view.run.stopReason ?? ""];
  const limits = Object.entries(lowerLimits(rest.limits ?? {}, view.run.limits));
  // Such as `4 model calls`.
  const [reached] = next ? limitWords(Object.fromEntries(limits.filter(([name]) => name === limit))) : [];
  const continuing = html`<section class="section" aria-labelledby="go-h">
    <h2 id="go-h">Continue this conversation</h2>
    <form class="compose" method="post" action="${runPath(view.run.id)}/continue" autocomplete="off">
      ${composeBox({
        id: "more",
        label: "Message",
        placeholder:
          "Ask a question, correct something or give the next task. The agent keeps what it has learned here.",
        send: "Send",
        choices: next && startChips({}, rest, { chosen: next.chosen, ...refused }, "the next run"),
        refused,
        given: reached && "Continue where you stopped.",
      })}
    </form>
  </section>`;
  const content = html`<div>
      ${renderOutcome(view, viewer, reached)}${view.run.status === "completed" && paper(view.run.answer ?? "")}
      ${goalSection(view)} ${changedFiles(view, viewer, files)}
      ${next && [continuing, forking(view, points, refused)]}
    </div>
    <aside class="side" aria-label="Summary">${sums(view, viewer)} ${costs(view)} ${decisions(view)}</aside>`;
  return mainOf(viewer, "done", content);
}

const paper = (text: string): Html =>
  html`<article class="panel paper" id="answer" aria-label="Answer">
    ${text === "" ? html`<p class="note">The agent gave no answer.</p>` : html`${copyButton("Copy answer", { of: "answer" })}${markdownText(text)}`}
  </article>`;

function changedFiles({ run }: RunView, viewer: Viewer, all: readonly ChangedFile[]): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.slice(0, MAX.files).map(
    ({ path, time, changes, counts, diffs }) =>
      html`<details class="file" data-fold="file-${path}">
        <summary>
          ${icon("chev", "faint")}<code class="cut" title="${path}">${cutPath(path, 80)}</code
          ><span class="end small faint"
            >${counts && renderDiffCounts(counts)}
            ${changes > 1 && `${changes} changes, `}${timeOf(time)}</span
          >
        </summary>
        ${diffs ?? html`<p class="note pad"><a href="${changesPath(run.id, path)}">Show this change</a></p>`}
      </details>`,
  );
  const total = sumOfCounts(all.map(({ counts = {} }) => counts));
  return html`<section class="section" aria-labelledby="fc-h">
    <h2 id="fc-h">
      Files changed <span class="count">${all.length}</span> ${total && renderDiffCounts(total)}
    </h2>
    ${diffLooks(viewer)}
    <div class="panel">${items}</div>
  </section>`;
}

function forking({ run }: RunView, points: readonly RunPoint[], refused?: Refused): Html | undefined {
  if (points.length === 0) return undefined;
  const items = points.slice(0, MAX.points).map(
    ({ id, time, summary }) =>
      html`<li>
        <span class="num small faint">${timeOf(time)}</span
        ><span class="cut">${oneLine(withoutMarks(summary.replace(": ", ":\n")), 200)}</span
        ><label class="btn small"
          ><input type="radio" name="point" value="${id}" required />${icon("fork")}From here</label
        >
      </li>`,
  );
  const isOpen = refused?.field === "fork-task";
  return html`<details class="section" id="fork" data-fold="fork" ${isOpen && html` open`}>
    <summary class="btn">${icon("fork")}Start from an earlier step</summary>
    <form method="post" action="${runPath(run.id)}/fork" autocomplete="off">
      <p class="note pad">Start a new conversation from an earlier step. This one is not changed.</p>
      <ol class="panel points">
        ${items}
      </ol>
      <div class="compose start">
        ${composeBox({ id: "fork-task", label: "Task", placeholder: "What should it do from there?", send: "Start", refused })}
      </div>
    </form>
  </details>`;
}

function sums(view: RunView, viewer: Viewer): Html {
  const { run, models, mainAgent, subagents } = view;
  const { inputTokens, outputTokens, cachedInputTokens } = run.usage;
  const calls = models.reduce((sum, used) => sum + used.calls, 0);
  const own = models.reduce((sum, used) => sum + (used.role === "main" ? used.calls : 0), 0);
  const hasReport = run.stopReason === "max_iterations" && own > (run.limits?.modelCalls ?? Infinity);
  const toolCalls = subagents.reduce((sum, one) => sum + one.toolCalls, mainAgent.toolCalls);
  const waits = waitsOf(view.requests, run.endedAt ?? run.updatedAt);
  const waited = waits.reduce((sum, [start, end]) => sum + end - start, 0);
  const cached = inputTokens === 0 ? 0 : Math.round((100 * cachedInputTokens) / inputTokens);
  const rows: readonly [string, Html | string][] = [
    ["Time", duration((run.endedAt ?? run.updatedAt) - run.createdAt)],
    [isShared(viewer) ? "Waiting for the owner" : "Waiting for you", duration(waited)],
    ["Model calls", `${grouped(calls)}${hasReport ? ", with the final report" : ""}`],
    ["Tool calls", grouped(toolCalls)],
    ["Tokens in", tokens(inputTokens)],
    ["Cached", `${cached}%`],
    ["Tokens out", tokens(outputTokens)],
    ["Started", dayAndTime(run.createdAt)],
  ];
  return html`<section>
    <h2>Summary</h2>
    ${terms("sum", rows)}
  </section>`;
}

function costs(view: RunView): Html | undefined {
  const total = totalCost(view.models);
  if (total === undefined || total === 0) return undefined;
  const rows = agentRows(view)
    .filter(({ work }) => (work.costUsd ?? 0) > 0)
    .map(({ name, cost }) => ({ name, cost }))
    .toSorted((one, other) => other.cost - one.cost);
  const others = rows.slice(MAX.agents).reduce((sum, { cost }) => sum + cost, 0);
  const items = rows.slice(0, MAX.agents).map(({ name, cost }) => share(name, cost, total));
  const rest = rows.length > MAX.agents && share(`${rows.length - MAX.agents} more`, others, total);
  return listSection("Cost by agent", money(total), [...items, rest], { list: "cost" });
}

function decisions(view: RunView): Html | undefined {
  const asked = view.requests;
  const count = (of: RunRequest["status"]): number => asked.filter(({ status }) => status === of).length;
  const yes = counted({
    approved: count("approved"),
    "with changes": count("edited"),
    answered: count("answered"),
  });
  const no = counted({ rejected: count("rejected"), "without an answer": count("declined") });
  const all = asked.filter(({ status }) => status !== "pending" && status !== "withdrawn").length;
  if (all === 0) return undefined;
  return listSection("Decisions", all, [
    yes.length > 0 && html`<li>${icon("done", "green")}<span>${yes.join(", ")}</span></li>`,
    no.length > 0 && html`<li>${icon("fail", "red")}<span>${no.join(", ")}</span></li>`,
  ]);
}
