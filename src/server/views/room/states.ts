/** How states look and are called: in lists, the plan, the timeline and tabs alike. */
import type { Approval, RunStatus, SubagentView } from "../../../runs/run.ts";
import { type Html, html } from "../html.ts";
import { type IconName, type Tone, icon } from "./icons.ts";

export interface State {
  icon: IconName;
  tone: Tone;
  word: string;
}

export const WORKING: State = { icon: "work", tone: "blue", word: "At work" };
export const ASKING: State = { icon: "ask", tone: "amber", word: "Needs you" };
export const QUEUED: State = { icon: "queue", tone: "faint", word: "Waits for its turn" };
export const RETRYING: State = { icon: "again", tone: "blue", word: "Tries again" };
const COMPLETED: State = { icon: "done", tone: "green", word: "Completed" };
/** A run that completed with what it had. */
export const STOPPED: State = { icon: "stop", tone: "amber", word: "Stopped at a limit" };
const FAILED: State = { icon: "fail", tone: "red", word: "Failed" };

export const RUN_STATES: Readonly<Record<RunStatus, State>> = {
  working: WORKING,
  input_required: ASKING,
  completed: COMPLETED,
  failed: FAILED,
  cancelled: { icon: "stop", tone: "faint", word: "Cancelled" },
};

export const AGENT_STATES: Readonly<Record<SubagentView["status"], State>> = {
  queued: QUEUED,
  working: WORKING,
  completed: COMPLETED,
  failed: FAILED,
};

/** The picture, with the word for those who do not see it. */
export const stateIcon = ({ icon: name, tone, word }: State): Html =>
  html`${icon(name, tone)}<span class="hide">${word}: </span>`;

export const pill = ({ icon: name, tone, word }: State): Html =>
  html`<strong class="pill ${tone}" role="status">${icon(name)}${word}</strong>`;

const APPROVAL_ICONS: Readonly<Record<Approval["preview"]["kind"], IconName>> = {
  diff: "diff",
  command: "term",
  arguments: "plug",
};

export const approvalIcon = ({ preview }: Pick<Approval, "preview">): IconName =>
  APPROVAL_ICONS[preview.kind];
