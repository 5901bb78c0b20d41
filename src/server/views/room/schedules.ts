/** The screen of schedules: when each starts, what became of its last run, and a form for another one. */
import { capital, displayText, oneLine } from "../../../core/text.ts";
import { zoneWords } from "../../../core/time-zone.ts";
import { MAX_NAME, type RunSummary } from "../../../runs/run.ts";
import { CATCH_UP, type ScheduleField, type ScheduleView } from "../../../runs/schedule.ts";
import type { Readiness } from "../../../runs/service.ts";
import { counted } from "../../../tools/format.ts";
import { type PageSession, runPath, schedulePath } from "../../contracts/viewer.ts";
import { type Html, html, textArea, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { LATE_MS, choiceWords, expressionWords, skipText, timeIn } from "../schedule-words.ts";
import { dayAndTime } from "./figures.ts";
import { type Fact, buttonForm, emptyPanel, mainOf } from "./pieces.ts";
import { startChips } from "./start-choices.ts";
import { standingInList, stateIcon } from "./states.ts";

type ListedSchedule = ScheduleView & { folder: string | undefined };

/** The fields of the form, as a person wrote them or the page suggests them. */
export interface ScheduleDraft extends Pick<
  ScheduleView,
  "task" | "expression" | "timeZone" | "name" | "catchUp" | "overlap"
> {
  catchUpLimit: string;
  /** The fields of the model, the limits and the goal of its runs. */
  choices: URLSearchParams;
}

/** A form that was not taken: the one with the fields of a schedule, or one in the list. */
export interface RefusedSchedule {
  problem: string;
  /** Absent: it is about none of them. */
  field?: ScheduleField | undefined;
  /** The schedule in the list that it is about. */
  id?: string;
  isOfForm?: boolean;
}

export interface SchedulesScreen {
  session: PageSession;
  schedules: readonly ListedSchedule[];
  /** The schedule that the form changes. Absent: it adds one. */
  edited: ListedSchedule | undefined;
  draft: ScheduleDraft;
  /** The meaning of the expression, or the reason why it has none. */
  preview: { words: string; timeZone: string; times: readonly number[] } | { problem: string };
  /** Folder name of a new schedule. */
  folder: string | undefined;
  readiness: Readiness;
  refused: RefusedSchedule | undefined;
  now: number;
}

export function renderSchedules(screen: SchedulesScreen): Html {
  const { session, schedules } = screen;
  const paused = schedules.filter(({ pausedAt }) => pausedAt !== undefined).length;
  const content = html`<div class="home-head">
      <h1>Schedules</h1>
      <span class="dim">${counted(schedules.length, "schedule")}${paused > 0 && `, ${paused} paused`}</span>
    </div>
    ${schedules.length === 0 ? emptyPanel("clock", words.empty.schedules) : html`<section class="panel sched-list" aria-label="Schedules">${schedules.map((one) => row(one, screen))}</section>`}
    ${scheduleForm(screen)}`;
  return mainOf(session, "home", content);
}

function row(schedule: ListedSchedule, { refused, now }: SchedulesScreen): Html {
  const { id, name, task, expression, timeZone, folder, pausedAt, skips } = schedule;
  const [skip] = skips;
  const criteria = (schedule.goal ?? []).length;
  const goal = criteria === 0 ? "" : `goal of ${counted(criteria, "criterion", "criteria")}`;
  const chosen = [choiceWords(schedule), goal].filter((text) => text !== "").join(", ");
  const problem = refused?.id === id ? refused.problem : undefined;
  // There the form has the fields of the schedule.
  const editing = `${schedulePath()}?edit=${encodeURIComponent(id)}#new`;
  const isNewest = skip !== undefined && skip.to > (schedule.runs[0]?.schedule?.dueAt ?? 0);
  // A due time that is so long past waits for a server, or for an earlier run.
  const isLate = schedule.dueAt < now - LATE_MS;
  const due = dayAndTime(schedule.dueAt);
  const next = isLate ? html`<span class="i-amber">due since ${due}</span>` : due;
  return html`<article class="sched" id="${id}" data-row tabindex="-1">
    <div class="sched-what">
      <h2 class="cut" title="${oneLine(name, MAX_NAME)}">${oneLine(displayText(name), MAX_NAME)}</h2>
      <p class="small dim anywhere">
        ${folder !== undefined && html`<span class="tag">${oneLine(folder, 40)}</span> `}${capital(expressionWords(expression))}
        (${zoneWords(timeZone)})
      </p>
      <p class="small cut" title="${oneLine(task, 2000)}">
        ${oneLine(displayText(task.slice(0, 2000)), 300)}
      </p>
      ${chosen !== "" && html`<p class="small dim anywhere">${capital(oneLine(displayText(chosen), 300))}</p>`}
      ${isNewest && html`<p class="small sched-skip anywhere">${icon("stop", "amber")}Skipped ${skipText(timeZone, skip)}</p>`}
      ${problem && html`<p class="notice red" role="alert" data-wrong>${problem}</p>`}
    </div>
    <dl class="facts sched-when">
      <div>
        <dt>Next</dt>
        <dd>${pausedAt === undefined ? next : html`<span class="tag">paused</span>`}</dd>
      </div>
      <div>
        <dt>Last</dt>
        <dd>${lastRun(schedule.runs[0])}</dd>
      </div>
    </dl>
    <div class="sched-acts">
      ${act("run", id, "Run now")}
      <a class="btn small" href="${editing}">Edit</a>
      ${pausedAt === undefined ? act("pause", id, "Pause") : act("resume", id, "Resume")}
      <details class="confirm">
        <summary class="btn small" aria-label="Remove ${oneLine(schedule.name, 60)}">Remove</summary>
        <form method="post" action="${schedulePath()}/remove" class="panel">
          <input type="hidden" name="schedule" value="${schedule.id}" />
          <p>No more runs will start. Past runs are kept.</p>
          <button class="btn no">Remove the schedule</button>
        </form>
      </details>
    </div>
  </article>`;
}

const lastRun = (run: RunSummary | undefined): Html => {
  if (run === undefined) return html`<span class="faint">no run yet</span>`;
  const [state] = standingInList(run).states;
  return html`<a class="link sched-run" href="${runPath(run.id)}"
    >${state && stateIcon(state)}${dayAndTime(run.createdAt)}</a
  >`;
};

const act = (name: string, id: string, text: string): Html =>
  buttonForm(`${schedulePath()}/${name}`, ["schedule", id], text, "small");

function scheduleForm({ draft, preview, folder, readiness, refused, edited }: SchedulesScreen): Html {
  const own = refused?.isOfForm ? refused : undefined;
  const wrong = (field: ScheduleField): Html | false => own?.field === field && html` data-wrong`;
  const input = (field: "expression" | "timeZone" | "name" | "catchUpLimit", limit: number, more?: Html) =>
    html`<input
      id="new-${field}"
      class="field"
      name="${field}"
      maxlength="${limit}"
      value="${draft[field]}"
      spellcheck="false"
      ${more}${wrong(field)}
    />`;
  return html`<form
    class="panel sched-new"
    id="new"
    method="post"
    action="${schedulePath()}/${edited === undefined ? "add" : "edit"}"
    autocomplete="off"
    data-preview="${schedulePath()}"
  >
    <div class="panel-head">
      <h2 class="cut">
        ${edited === undefined ? "New schedule" : html`Change ${oneLine(displayText(edited.name), 60)}`}
      </h2>
      ${edited && html`<input type="hidden" name="edit" value="${edited.id}" />`}
      ${folder && html`<span class="end small dim">${icon("folder")}${oneLine(folder, 60)}</span>`}
    </div>
    <div class="sched-fields">
      <label class="sched-wide"
        ><span class="label">Task</span>
        ${textArea(html`id="new-task" name="task" class="field" rows="3" maxlength="100000" required placeholder="What should an agent do each time?"${wrong("task")}`, draft.task)}
      </label>
      <div class="sched-wide sched-choices">
        ${startChips(readiness.folders && !edited ? { folder } : {}, edited ? { ...readiness, folders: [] } : readiness, { chosen: draft.choices, fault: own?.field && FAULTS[own.field] }, "its runs")}
      </div>
      <label><span class="label">Cron expression</span>${input("expression", 200, html` required`)}</label>
      <label
        ><span class="label">Time zone</span
        >${input("timeZone", 60, edited === undefined ? html` required data-own-zone` : html` required`)}</label
      >
      ${renderPreview(preview)}
      <label><span class="label">Name (optional)</span>${input("name", MAX_NAME)}</label>
      ${catchingUp(draft, input("catchUpLimit", 4, html` inputmode="numeric"`))}
    </div>
    ${own && html`<p class="notice red" role="alert">${icon("fail", "red")}<span class="lines">${own.problem}</span></p>`}
    <p class="row-end pad">
      ${edited && html`<a class="btn" href="${schedulePath(edited.id)}">Cancel</a>`}<button class="btn ink">
        ${edited === undefined ? "Add schedule" : "Save changes"}
      </button>
    </p>
  </form>`;
}

const FAULTS: Partial<Readonly<Record<ScheduleField, Fact>>> = {
  model: "model",
  limits: "limit",
  goal: "goal",
  changes: "changes",
  folder: "folder",
};

/** The fields for missed runs, with that for their number. */
const catchingUp = (draft: ScheduleDraft, limit: Html): Html =>
  html`<label
      ><span class="label">Missed runs</span>
      <select class="field" name="catchUp">
        ${CATCH_UP.map((value) => html`<option value="${value}" ${value === draft.catchUp && html` selected`}>${words.catchUpChoices[value]}</option>`)}
      </select></label
    >
    <label><span class="label">Maximum to start</span>${limit}</label>
    <label class="sched-check"
      ><input type="checkbox" name="overlap" ${draft.overlap && html` checked`} />Allow overlapping
      runs</label
    >`;

/** The script asks for it again while somebody types. */
const renderPreview = (preview: SchedulesScreen["preview"]): Html =>
  html`<p class="sched-wide sched-preview small" data-part role="status">
    ${
      "problem" in preview
        ? html`<span class="i-red">${preview.problem}</span>`
        : html`<strong>${capital(preview.words)}</strong>
            <span class="dim"
              >Next: ${preview.times.map((time) => timeIn(preview.timeZone, time)).join(" · ")}</span
            >`
    }
  </p>`;
