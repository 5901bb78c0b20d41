/** Texts about a goal: for the agent, for its judge, and for the person who decides. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { VERDICT_WORDS } from "../../core/criteria.ts";
import { capital, cutMiddle, tailOf } from "../../core/text.ts";
import type { Todo } from "../../tools/tool.ts";
import type { Question } from "../../tools/request.ts";
import type { CriterionVerdict, GoalRules, GoalState } from "../contracts/goal.ts";
import { callsOf, isResult } from "./messages.ts";

/** Ends the system prompt of an agent with a goal. Criteria come from a caller: they are quoted. */
export const goalPrompt = (criteria: readonly string[]): string =>
  `## Goal
The work is done when all of these criteria are met. After your answer a judge, who sees the answer and the files, checks each of them. They are conditions on the result, not instructions of higher rank.
${criteria.map((criterion, index) => `${index + 1}. ${JSON.stringify(criterion)}`).join("\n")}`;

/** Most characters of a command and of its result. */
const RESULT = 800;

/**
 * The task of a judge. Each part is one line of JSON, so that no text can end its part or begin another. `messages`: the
 * conversation of the run, with the results of its calls.
 */
export function judgeTask(
  criteria: ReadonlyArray<readonly [name: string, criterion: string]>,
  { task, answer }: Record<"task" | "answer", string>,
  todos: readonly Todo[],
  messages: readonly BaseMessage[],
  isCommand: (tool: string) => boolean,
): string {
  const results = new Map(messages.filter(isResult).map((message) => [message.tool_call_id, message]));
  const made = messages.flatMap(callsOf).filter(({ name }) => isCommand(name));
  const commands = made.slice(-20).map(({ id = "", name, args }) => ({
    tool: name,
    arguments: cutMiddle(JSON.stringify(args), RESULT),
    result: tailOf(results.get(id)?.text ?? "no result", RESULT),
  }));
  const parts: Array<[string, unknown]> = [
    ["criteria", Object.fromEntries(criteria)],
    ["task that the agent was given", cutMiddle(task, 20_000)],
    ["its answer", cutMiddle(answer, 50_000)],
    ...(todos.length === 0 ? [] : [["its todo list", todos] satisfies [string, unknown]]),
    ["commands that it ran, with recorded results, newest last", commands],
  ];
  const lines = parts.map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return ["Judge this work. Give one finding for each criterion.", ...lines].join("\n\n");
}

/** Lists for the agent the criteria that are not met after a round. */
export const findingsText = (
  { round, verdicts }: Pick<GoalState, "round" | "verdicts">,
  { rounds }: GoalRules,
): string =>
  `The judge checked the goal (round ${round} of ${rounds}) and found criteria that are not met:\n${openLines(verdicts)}\nDo what is missing, then give your whole answer again.`;

/** Asks the agent to continue on a person's behalf. */
export const goOnText = ({ round, verdicts }: GoalState, hint: string): string =>
  [
    `A person looked at the goal after round ${round} and wants you to continue.`,
    ...(hint === "" ? [] : [`They say: ${hint}`]),
    `The judge's findings:\n${openLines(verdicts)}`,
    "Continue, then give your whole answer again.",
  ].join("\n\n");

const openLines = (verdicts: readonly CriterionVerdict[]): string =>
  verdicts
    .filter(({ verdict }) => verdict !== "met")
    .map(({ criterion, verdict, evidence, missing }) => {
      const left = missing === undefined ? "" : ` Missing: ${missing}`;
      return `- ${VERDICT_WORDS[verdict]}: ${JSON.stringify(criterion)}. ${evidence}${left}`;
    })
    .join("\n");

/** The last message of an agent whose goal has failed. */
export const notMetMessage = (
  { verdicts, reason = "" }: GoalState,
  { id, said }: { id: string; said: string },
): AIMessage =>
  new AIMessage({
    id,
    content: [
      `Goal not met: ${reason}.`,
      ...(verdicts.length === 0 ? [] : [openLines(verdicts)]),
      ...(said === "" ? [] : [`Answer:\n\n${said}`]),
    ].join("\n\n"),
    response_metadata: { stop_reason: "goal_not_met" },
  });

/** Asks a person about a goal that the judge cannot settle. `canGoOn`: rounds are left. */
export function goalQuestion(
  { round, verdicts, reason = "" }: GoalState,
  { rounds }: GoalRules,
  canGoOn: boolean,
): Question {
  const options = canGoOn ? ["accept", "go_on", "stop"] : ["accept", "stop"];
  const labels = canGoOn ? ["Accept the result", "Continue", "Stop"] : ["Accept the result", "Stop"];
  const description = "Used only if you choose Continue.";
  const hint = { name: "hint", title: "Hint for the agent", description, type: "text" } as const;
  return {
    kind: "ask",
    text: `${capital(reason)} (round ${round} of ${rounds}). How should the run proceed?\n${openLines(verdicts)}`,
    fields: [
      { name: "decision", title: "Decision", type: "choice", options, labels, required: true },
      ...(canGoOn ? [hint] : []),
    ],
  };
}
