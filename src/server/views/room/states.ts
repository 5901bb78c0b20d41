/** Looks and names of states, the same in lists, the plan, the timeline and tabs. */
import type { RunRequest, Run, RunSummary, RunView } from "../../../runs/run.ts";
import { isLimit, isWithin, waitingIn } from "../../../runs/run.ts";
import { waitsIn } from "../waits.ts";
import { type Html, html, type IconName, type Tone, icon } from "../html.ts";

export interface State {
  icon: IconName;
  tone: Tone;
  word: string;
}

export const WORKING: State = { icon: "work", tone: "blue", word: "At work" };
export const ASKING: State = { icon: "ask", tone: "amber", word: "Needs you" };
export const AGENT_ASKS: State = { ...ASKING, word: "Asks" };
/** An agent whose subagents all wait for a person. */
export const WAITS: State = { icon: "queue", tone: "faint", word: "Waiting for its agents" };
const QUEUED: State = { icon: "queue", tone: "faint", word: "Queued" };
export const RETRYING: State = { icon: "again", tone: "blue", word: "Retrying" };
/** A run that completed early with a partial result. */
const STOPPED: State = { icon: "stop", tone: "amber", word: "Stopped at a limit" };
const STATES = {
  working: WORKING,
  completed: { icon: "done", tone: "green", word: "Completed" },
  failed: { icon: "fail", tone: "red", word: "Failed" },
  cancelled: { icon: "stop", tone: "faint", word: "Cancelled" },
} as const;

export const RUN_STATES: Readonly<Record<Run["status"], State>> = { ...STATES, input_required: ASKING };

export const AGENT_STATES: Readonly<Record<RunView["subagents"][number]["status"], State>> = {
  ...STATES,
  queued: QUEUED,
};

/** Numbers of a run's subagents by their state, for every screen. */
type AgentCounts = Record<"all" | "done" | "failed" | "cancelled" | "queued" | "asking" | "working", number>;

/** The state of a run, for lists and its own screens alike. */
export interface Standing {
  /** The first is the main one; a run that needs somebody while agents work is both. */
  states: readonly State[];
  agents: AgentCounts;
  /** Number of requests that wait for a person. */
  waiting: number;
}

export function standingOf(view: RunView): Standing {
  const asked = waitingIn(view).map(({ agent }) => agent);
  const waits = waitsIn(view);
  const all = view.subagents.length;
  const agents = { all, done: 0, failed: 0, cancelled: 0, queued: 0, asking: 0, working: 0 };
  for (const { agent, status } of view.subagents) {
    if (status === "completed") agents.done += 1;
    else if (status !== "working") agents[status] += 1;
    else if (asked.some((path) => path.length === agent.length && isWithin(agent, path))) agents.asking += 1;
    else if (waits.ofAgent(agent) === undefined) agents.working += 1;
  }
  const [waiting, works] = [asked.length, agents.working > 0];
  return { states: runStates(view.run, view.place, { waiting, works }), agents, waiting };
}

/** Returns the state of a run in a list: it has ended, or its agents are not loaded. */
export function standingInList(run: RunSummary): Standing {
  const { completed: done, failed, cancelled, open } = run.subagents;
  const agents = { all: done + failed + cancelled + open, done, failed, cancelled };
  return {
    states: runStates(run, run.place, { waiting: run.pending, works: false }),
    agents: { ...agents, queued: 0, asking: 0, working: open },
    waiting: run.pending,
  };
}

function runStates(
  { status, stopReason }: Pick<Run, "status" | "stopReason">,
  place: RunView["place"],
  { waiting, works }: { waiting: number; works: boolean },
): State[] {
  if (place !== undefined) return [QUEUED];
  if (stopReason !== undefined) return [isLimit(stopReason) ? STOPPED : { ...STOPPED, word: "Goal not met" }];
  if (status !== "input_required") return [RUN_STATES[status]];
  if (waiting > 0) return [...(works ? [WORKING] : []), ASKING];
  // Its model is one that a client lends, and no client answers.
  return [...(works ? [WORKING] : []), { icon: "queue", tone: "faint", word: "Waiting for a client" }];
}

/** Such as `5 of 12 done, 1 failed, 2 queued`. */
export const agentsText = ({ all, done, failed, cancelled, queued }: AgentCounts): string =>
  [`${done} of ${all} done`, ...counted({ failed, cancelled, queued })].join(", ");

/** Such as `8 at work`, `2 queued`; nothing of what there is none of. */
export const counted = (counts: Readonly<Record<string, number>>): string[] =>
  Object.entries(counts).flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []));

/** `asked`: the requests of the agent itself; `since`: see `Waits`. */
export function agentState(
  state: State,
  { isRetrying }: RunView["mainAgent"],
  { asked, waitsSince: since }: { asked: readonly RunRequest[]; waitsSince: number | undefined },
): State {
  if (asked.some(({ status }) => status === "pending")) return AGENT_ASKS;
  if (state !== WORKING && state !== ASKING) return state;
  return since !== undefined ? WAITS : isRetrying === true ? RETRYING : WORKING;
}

/** The picture, with the word for those who do not see it. */
export const stateIcon = ({ icon: name, tone, word }: State): Html =>
  html`${icon(name, tone)}<span class="hide">${word}: </span>`;

export const pill = ({ icon: name, tone, word }: State): Html =>
  html`<strong class="pill ${tone}" role="status">${icon(name)}${word}</strong>`;
