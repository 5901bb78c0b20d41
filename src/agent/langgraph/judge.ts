/** Starts the judge of a goal: a subagent with a fresh context that reads, and changes nothing. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { errorMessage, isTransient } from "../../core/errors.ts";
import type { CriterionVerdict } from "../contracts/goal.ts";
import type { AgentState } from "../contracts/state.ts";
import { currentRun, stopReasonOf } from "../budget/limits.ts";
import { judgeTask } from "../messages/goal-texts.ts";
import { isTask, lastAnswer, taskMessage, textOf } from "../messages/messages.ts";
import { directAnswer } from "../models/answers.ts";
import { criterionName, readFindings } from "../models/verdicts.ts";
import { tellChild, tellReport } from "../step/child-events.ts";
import type { AgentDefinition, AgentGraph, Goal } from "./definition.ts";
import { graphFailure } from "./graph-failure.ts";
import { spentUpdate } from "./nested-children.ts";
import { contextOf, meterOf, subagentConfig, taskStep, threadFiles } from "./step-of-task.ts";

/** Name of the judge in events and traces. */
export const JUDGE = "judge";

/** One judged round, and what it used. */
interface Round {
  verdicts: CriterionVerdict[];
  update: Record<string, unknown>;
}

/**
 * Judges a round. A judge that fails or gives no findings leaves every criterion uncertain. Never throws for a failure
 * of the judge; throws if the run stops, waits or cannot be stored.
 */
export async function judgeRound(
  { goal, round }: { goal: Goal; round: number },
  definition: AgentDefinition,
  state: AgentState,
  config: RunnableConfig,
): Promise<Round> {
  const step = taskStep(config);
  const description = `Judges the goal (round ${round} of ${goal.rounds})`;
  const segment = tellChild("subagent_started", `${JUDGE}-${round}`, JUDGE, description, step);
  const nested = subagentConfig(config, segment, threadFiles(config).atStart());
  const material = judgeTask(
    goal.criteria.map((criterion, index) => [criterionName(index), criterion]),
    judgedIn(state, definition),
  );
  const input = taskMessage(material, { startNote: contextOf(config).startNote });
  const { reached, failure } = await work(goal.judge, { messages: [input] }, nested);
  const verdicts = readFindings(reached.structuredResponse, goal.criteria, failure);
  const text = verdicts.map(({ criterion, verdict }) => `${verdict}: ${criterion}`).join("; ");
  const isDone = reached.structuredResponse !== undefined;
  tellReport(segment, isDone ? { text } : { text: failure, status: "error" }, step);
  const update = spentUpdate(reached, { config, readState: () => state }, meterOf(nested, {}));
  return { verdicts, update };
}

/** Works until the judge ends. `failure`: why it gave no findings, if it gave none. */
async function work(
  judge: AgentGraph,
  input: Partial<AgentState>,
  config: RunnableConfig,
): Promise<{ reached: Partial<AgentState>; failure: string }> {
  let reached: Partial<AgentState> = {};
  try {
    await judge.workInside(config, input, (state) => (reached = state as Partial<AgentState>)); // of a graph of ours
    const { messages = [] } = reached;
    const why = stopReasonOf(messages.at(-1)) === undefined ? "it gave no findings" : lastAnswer(messages);
    return { reached, failure: `The judge failed: ${why}` };
  } catch (error) {
    if (isGraphBubbleUp(error) || isTransient(error) || config.signal?.aborted) throw error;
    return { reached, failure: `The judge failed: ${errorMessage(graphFailure(error))}` };
  }
}

const judgedIn = ({ messages, todos }: AgentState, { tools }: AgentDefinition) => ({
  task: textOf(messages.findLast(isTask) ?? messages[0] ?? taskMessage("", { startNote: undefined })),
  answer: lastAnswer(currentRun(messages).messages) || directAnswer(currentRun(messages).messages),
  todos,
  messages: currentRun(messages).messages,
  isCommand: (name: string) => tools.get(name)?.kind === "execute",
});
