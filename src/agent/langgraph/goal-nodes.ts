/** The nodes of an agent with a goal: a judge looks at each answer, and a person decides the cases it cannot settle. */
import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isGraphBubbleUp } from "@langchain/langgraph";
import { defined } from "../../core/unknown.ts";
import { errorMessage, isTransient } from "../../core/errors.ts";
import type { Answer } from "../../tools/request.ts";
import type { GoalState } from "../contracts/goal.ts";
import type { AgentState, StateUpdate } from "../contracts/state.ts";
import { afterRound, roundsUsed, settled } from "../budget/goal-rounds.ts";
import { currentRun, lastRunAnswer, stopMessage, readStopReason } from "../budget/limits.ts";
import type { Meter } from "../budget/meter.ts";
import { findingsText, goOnText, goalQuestion, judgeTask, notMetMessage } from "../messages/goal-texts.ts";
import { isTask, lastAnswer, messageFrom, taskMessage, textOf } from "../messages/messages.ts";
import { directAnswer } from "../models/answers.ts";
import { criterionName, readFindings } from "../models/verdicts.ts";
import { tellChild, tellReport } from "../step/child-events.ts";
import { askPerson } from "./ask-person.ts";
import { waitsForChildren } from "./background-tasks.ts";
import { GOAL } from "./channels.ts";
import type { AgentDefinition, AgentGraph, Goal } from "./definition.ts";
import type { GraphNodes } from "./graph.ts";
import { graphFailure } from "./internals.ts";
import { spentUpdate } from "./nested-children.ts";
import { showMessages } from "./outcome.ts";
import { loadedMeter } from "./unfinished-step.ts";
import { contextOf, meterOf, subagentConfig, taskStep, threadFiles } from "./step-of-task.ts";

/** Name of the judge in events and traces, and of the node that follows an answer. */
export const JUDGE = "judge";

const PERSON = "goal_decision";

/** Graph steps from an answer to the end of the run, at most. */
export const GOAL_STEPS = 2;

/**
 * The nodes between an answer and the end. The verdicts of a round are in the thread before anything follows from them,
 * so that a round is judged once, and its question asked once, whenever the process ends.
 */
export function goalNodes(
  definition: AgentDefinition,
  goal: Goal,
  routes: { again: string; end: string },
): GraphNodes {
  const places: Partial<Record<GoalState["status"], string>> = { open: routes.again, asked: PERSON };
  const onward = (update: StateUpdate, state: GoalState): Command => {
    const goto = places[state.status] ?? routes.end;
    return showMessages(new Command({ update: { ...update, [GOAL]: state }, goto }));
  };
  return {
    [JUDGE]: {
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
        const spent = { ...update, ...meter.spentUpdate(state.messages, update) };
        // A limit of the run that ended the judge does not count as a finding.
        const stopped = verdicts.every(({ verdict }) => verdict === "uncertain") && overLimit(meter, state);
        if (stopped) return new Command({ update: { ...spent, ...stopped }, goto: routes.end });
        const canAsk = goal.asks && askPerson(config, taskStep(config), callOf(round)) !== undefined;
        const next = afterRound(before, { run: currentRun(state.messages).id, verdicts }, goal, canAsk);
        taskStep(config).tell({ kind: "goal_judged", round, rounds: goal.rounds, verdicts });
        if (next.status !== "open") return ended(next, state, config, onward, spent);
        const findings = messageFrom("goal", randomUUID(), findingsText(next, goal));
        return onward({ ...spent, messages: [findings] }, next);
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

/** Judges a round. If the judge fails, every criterion is uncertain; throws only if the run itself stops or waits. */
async function judgeRound(
  { goal, round }: { goal: Goal; round: number },
  definition: AgentDefinition,
  state: AgentState,
  config: RunnableConfig,
) {
  const step = taskStep(config);
  const description = `Round ${round} of ${goal.rounds}`;
  const segment = tellChild("subagent_started", `${JUDGE}-${round}`, JUDGE, description, step);
  const nested = subagentConfig(config, segment, threadFiles(config).atStart());
  const { messages } = currentRun(state.messages);
  const task = state.messages.findLast(isTask) ?? state.messages[0];
  const material = judgeTask(
    goal.criteria.map((criterion, index) => [criterionName(index), criterion]),
    { task: task ? textOf(task) : "", answer: lastAnswer(messages) || directAnswer(messages) },
    state.todos,
    messages,
    (name) => definition.tools.get(name)?.kind === "execute",
  );
  const input = taskMessage(material, { startNote: contextOf(config).startNote });
  const { reached, why } = await work(goal.judge, { messages: [input] }, nested);
  const failure = `The judge failed: ${why}`;
  const verdicts = readFindings(reached.structuredResponse, goal.criteria, failure);
  const text = verdicts.map(({ criterion, verdict }) => `${verdict}: ${criterion}`).join("; ");
  const isDone = reached.structuredResponse !== undefined;
  tellReport(segment, isDone ? { text } : { text: failure, status: "error" }, step);
  const update = spentUpdate(reached, { config, state }, meterOf(nested, {}));
  return { verdicts, update };
}

/** Works until the judge ends. `why`: the reason why it has no findings, if it has none. */
async function work(judge: AgentGraph, input: Partial<AgentState>, config: RunnableConfig) {
  let reached: Partial<AgentState> = {};
  try {
    await judge.workInside(config, input, (state) => (reached = state as Partial<AgentState>)); // our graph's
    const { messages = [] } = reached;
    const why = readStopReason(messages.at(-1)) === undefined ? "it gave no findings" : lastAnswer(messages);
    return { reached, why };
  } catch (error) {
    if (isGraphBubbleUp(error) || isTransient(error) || config.signal?.aborted) throw error;
    return { reached, why: errorMessage(graphFailure(error)) };
  }
}

type Onward = (update: StateUpdate, state: GoalState) => Command;

/** Carries out a person's decision. Without an answer, the goal counts as not met. */
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
    const message = messageFrom("goal", randomUUID(), goOnText(asked, String(hint).trim()));
    return onward({ messages: [message] }, { ...settled(asked, "open"), stalled: 0 });
  }
  const why = answer.type === "fields" ? "a person stopped the run" : "nobody answered";
  return ended(settled(asked, "not_met", `${asked.reason}, and ${why}`), state, config, onward);
}

function ended(
  next: GoalState,
  { messages }: AgentState,
  config: RunnableConfig,
  onward: Onward,
  update: StateUpdate = {},
): Command {
  const { round, status, reason } = next;
  if (status === "met" || status === "accepted" || status === "not_met")
    taskStep(config).tell({ kind: "goal_ended", round, outcome: status, ...defined({ reason }) });
  if (status !== "not_met") return onward(update, next);
  const message = notMetMessage(next, { id: randomUUID(), said: lastRunAnswer(messages) });
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
  return { messages: [stopMessage(reached, messages, { id: randomUUID(), isNested: false })] };
}

const callOf = (round: number): string => `goal-${round}`;
