/** The goal of a run on its screens: each criterion with the newest verdict and its evidence. */
import { goalHeading } from "../goal-report.ts";
import { capital, oneLine } from "../../../core/text.ts";
import { VERDICT_WORDS } from "../../../core/criteria.ts";
import { type CriterionFinding, type GoalView } from "../../../runs/goal.ts";
import { type RunView, isFinal } from "../../../runs/run.ts";
import { type Html, html, type IconName, type Tone, icon } from "../html.ts";

/** Characters that a person reads of a criterion and of a finding. */
const MAX = 1000;

const LOOKS: Readonly<Record<CriterionFinding["verdict"], readonly [IconName, Tone]>> = {
  met: ["done", "green"],
  not_met: ["fail", "red"],
  impossible: ["stop", "red"],
  uncertain: ["ask", "amber"],
};

/** In the rail of a run at work. */
export function goalRail({ run, goal }: RunView): Html | undefined {
  if (goal === undefined) return undefined;
  const { judged, criteria: all } = goal;
  const met = judged?.verdicts.filter(({ verdict }) => verdict === "met").length;
  const found =
    judged === undefined ? "" : ` of ${all.length} met, round ${judged.round} of ${judged.rounds}`;
  const counts = `${met ?? all.length}${found}`;
  return html`<section>
    <h2>Goal<span class="end">${counts}</span></h2>
    ${criteria(goal)}
    ${judged === undefined && !isFinal(run.status) && html`<p class="note">A judge checks the answer.</p>`}
  </section>`;
}

/** Below the answer of a run that has ended. */
export function goalSection({ run, goal }: RunView): Html | undefined {
  if (goal === undefined) return undefined;
  return html`<section class="section" aria-labelledby="goal-h">
    <h2 id="goal-h">${oneLine(goalHeading(goal, isFinal(run.status)), MAX)}</h2>
    <div class="panel pad">${criteria(goal)}</div>
  </section>`;
}

const criteria = (goal: GoalView): Html =>
  html`<ul class="goal">
    ${
      goal.judged?.verdicts.map(found) ??
      goal.criteria.map(
        (criterion) =>
          html`<li>
            ${icon("todo", "faint")}<span
              ><span class="hide">Not judged: </span>${oneLine(criterion, MAX)}</span
            >
          </li>`,
      )
    }
  </ul>`;

const found = ({ criterion, verdict, evidence, missing }: CriterionFinding): Html =>
  html`<li>
    ${icon(...LOOKS[verdict])}<span
      ><span class="${verdict === "met" || verdict === "not_met" ? "hide" : "word"}"
        >${capital(VERDICT_WORDS[verdict])}: </span
      >${oneLine(criterion, MAX)}<small>${oneLine(evidence, MAX)}</small>${missing !== undefined && html`<small><b>Missing:</b> ${oneLine(missing, MAX)}</small>`}</span
    >
  </li>`;
