/** The nodes of an agent with a goal: a judge looks at each answer, and a person decides what it cannot settle. */
import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command } from "@langchain/langgraph";
import type { Answer } from "../../tools/tool.ts";
import type { GoalState } from "../contracts/goal.ts";
import type { AgentState, StateUpdate } from "../contracts/state.ts";
import { afterRound, roundsUsed, settled } from "../budget/goal-rounds.ts";
import { currentRun, stopMessage, stopReasonOf } from "../budget/limits.ts";
import { type Meter, SPENT } from "../budget/meter.ts";
import { findingsText, goOnText, goalQuestion, notMetMessage } from "../messages/goal-texts.ts";
import { goalMessage, lastAnswer } from "../messages/messages.ts";
import { askPerson } from "./ask-person.ts";
import { waitsForChildren } from "./background-tasks.ts";
import { GOAL } from "./channels.ts";
import type { AgentDefinition, Goal } from "./definition.ts";
import type { GraphNodes } from "./graph.ts";
import { JUDGE, judgeRound } from "./judge.ts";
import { showMessages } from "./outcome.ts";
import { loadedMeter } from "./resume.ts";
import { taskStep } from "./step-of-task.ts";

const PERSON = "goal_decision";

/** The node that follows an answer of an agent with a goal. */
export const GOAL_CHECK = JUDGE;

/** Graph steps from an answer to the end of the run, at most. */
export const GOAL_STEPS = 2;

interface Routes {
  again: string;
  end: string;
}

/**
 * The nodes between an answer and the end. The verdicts of a round are in the thread before anything follows from them,
 * so that a round is judged once, and its question asked once, whenever the process ends.
 */
export function goalNodes(definition: AgentDefinition, goal: Goal, routes: Routes): GraphNodes {
  const places: Readonly<Record<GoalState["status"], string>> = {
    open: routes.again,
    asked: PERSON,
    met: routes.end,
    accepted: routes.end,
    not_met: routes.end,
  };
  const onward = (update: StateUpdate, state: GoalState): Command =>
    showMessages(new Command({ update: { ...update, [GOAL]: state }, goto: places[state.status] }));
  return {
    [GOAL_CHECK]: {
      work: async (state: AgentState, config: RunnableConfig) => {
        // The agent has not answered yet, but waits.
        if (await waitsForChildren(config)) return showMessages(new Command({ goto: routes.end }));
        const meter = await loadedMeter(config, state, definition.limits);
        const before = goalOf(state);
        if (before !== undefined && before.round >= goal.rounds) {
          const reason = `${roundsUsed(goal.rounds)}, and the last answer was not judged`;
          return ended(settled(before, "not_met", reason), state, config, onward);
        }
        const reached = overLimit(meter, state);
        if (reached) return new Command({ update: reached, goto: routes.end });
        const round = (before?.round ?? 0) + 1;
        const { verdicts, update } = await judgeRound({ goal, round }, definition, state, config);
        const spent = { ...update, ...carried(meter, state, update) };
        // A limit of the run that ended the judge does not count as a finding.
        const stopped = verdicts.every(({ verdict }) => verdict === "uncertain") && overLimit(meter, state);
        if (stopped) return new Command({ update: { ...spent, ...stopped }, goto: routes.end });
        const canAsk = goal.asks && askPerson(config, taskStep(config), callOf(round)) !== undefined;
        const next = afterRound(before, { run: currentRun(state.messages).id, verdicts }, goal, canAsk);
        taskStep(config).tell({ kind: "goal_judged", round, rounds: goal.rounds, verdicts });
        if (next.status !== "open") return ended(next, state, config, onward, spent);
        return onward({ ...spent, messages: [goalMessage(randomUUID(), findingsText(next, goal))] }, next);
      },
      ends: [routes.again, PERSON, routes.end],
    },
    [PERSON]: {
      work: async (state: AgentState, config: RunnableConfig) => {
        const asked = goalOf(state);
        const ask = asked && askPerson(config, taskStep(config), callOf(asked.round));
        if (!ask) throw new Error("The thread asks about a goal that it does not have.");
        const canGoOn = asked.round < goal.rounds;
        return decided(await ask(goalQuestion(asked, goal, canGoOn)), asked, state, config, onward);
      },
      ends: [routes.again, routes.end],
    },
  };
}

type Onward = (update: StateUpdate, state: GoalState) => Command;

/** Carries out a person's decision. Without an answer, the goal is given up. */
function decided(
  answer: Answer,
  asked: GoalState,
  state: AgentState,
  config: RunnableConfig,
  onward: Onward,
): Command {
  const { decision, hint = "" } = answer.type === "fields" ? answer.values : {};
  if (decision === "accept") return ended(settled(asked, "accepted", asked.reason), state, config, onward);
  if (decision === "go_on") {
    const message = goalMessage(randomUUID(), goOnText(asked, String(hint).trim()));
    return onward({ messages: [message] }, { ...settled(asked, "open"), stalled: 0 });
  }
  const why = answer.type === "fields" ? "a person stopped the run" : "nobody answered";
  return ended(settled(asked, "not_met", `${asked.reason}, and ${why}`), state, config, onward);
}

/** Goes on to the end, or to the person, and tells of the end. */
function ended(
  next: GoalState,
  { messages }: AgentState,
  config: RunnableConfig,
  onward: Onward,
  update: StateUpdate = {},
): Command {
  const { round, status, reason } = next;
  if (status === "met" || status === "accepted" || status === "not_met") {
    taskStep(config).tell({
      kind: "goal_ended",
      round,
      outcome: status,
      ...(reason === undefined ? {} : { reason }),
    });
  }
  if (status !== "not_met") return onward(update, next);
  const message = notMetMessage(next, { id: randomUUID(), said: saidIn(messages) });
  return onward({ ...update, messages: [message] }, next);
}

/** The goal of the current run; `undefined` before its first round. */
function goalOf(state: AgentState): GoalState | undefined {
  const goal = state[GOAL] as GoalState | null | undefined; // our channel
  return goal?.run === currentRun(state.messages).id ? goal : undefined;
}

/** The end of a run that has no tokens, money or time left for its judge. */
function overLimit(meter: Meter, { messages }: AgentState): StateUpdate | undefined {
  if (!meter.isUsedUp) return undefined;
  const reached = meter.reached(messages) ?? meter.timeOver();
  const words = { id: randomUUID(), isNested: false, report: undefined, said: saidIn(messages) };
  return { messages: [stopMessage(reached, words)] };
}

const saidIn = (messages: AgentState["messages"]): string =>
  lastAnswer(currentRun(messages).messages.filter((message) => stopReasonOf(message) === undefined));

/** The time at work, beside what the judge used. */
function carried(meter: Meter, { messages }: AgentState, update: StateUpdate): StateUpdate {
  const time = meter.carried(messages);
  return time ? { [SPENT]: { ...time, ...(update[SPENT] as object | undefined) } } : {}; // our channel
}

const callOf = (round: number): string => `goal-${round}`;
