import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand } from "@langchain/langgraph";
import { ownTurn } from "../../core/concurrency.ts";
import { type Meter, SPENT } from "../budget/meter.ts";
import { type Governed, govern } from "../calls/govern.ts";
import { asSibling } from "../step/files.ts";
import { callStep } from "./call-step-of-task.ts";
import { EDITED_CALLS } from "./channels.ts";
import type { AgentDefinition } from "./definition.ts";
import { showMessages, toOutcome } from "./outcome.ts";
import { restoreStepFiles } from "./resume.ts";
import { isResuming, readState } from "./step-of-task.ts";

/** The input of one tool task. The call itself is looked up in the reply, so that a checkpoint holds it once. */
export interface ToolTask {
  callId: string;
}

/** The node that carries out one call as a graph task of its own. */
export function createToolNode(
  definition: AgentDefinition,
): (task: ToolTask, config: RunnableConfig) => Promise<Command> {
  return (task, config) => {
    const order = { callId: task.callId, oneByOne: definition.limits.parallelTools === 1 };
    const { files } = readState(config, ["files"]);
    return asSibling(files, order, () => runCall(task, definition, config));
  };
}

/** Answers the call, or interrupts the task: when there is an answer, the task starts again from its top. */
async function runCall(
  { callId }: ToolTask,
  definition: AgentDefinition,
  config: RunnableConfig,
): Promise<Command> {
  await ownTurn();
  config.signal?.throwIfAborted();
  if (isResuming(config)) await restoreStepFiles(config);
  const state = readState(config, definition.channels);
  const { made, messageId, reply } = findCall(state.messages, callId);
  const step = await callStep(definition, { messageId, callId, reply }, state, config);
  const governed = await govern(made, step);
  if (governed.kind === "waits") throw governed.pause;
  return updateOf(governed, step.meter, state.messages);
}

/** The call as its reply made it, and all calls of that reply. */
function findCall(
  messages: readonly BaseMessage[],
  callId: string,
): { made: ToolCall; messageId: string; reply: readonly ToolCall[] } {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!AIMessage.isInstance(message)) continue;
    const made = message.tool_calls?.find((call) => call.id === callId);
    if (made) return { made, messageId: message.id ?? "", reply: message.tool_calls ?? [] };
  }
  throw new Error(`tool call ${callId} is not in the thread`);
}

/** The graph's update. The state keeps the time at work where a limit needs it, beside what a subagent used. */
function updateOf(
  { call, result: { update, ...result }, edited }: Exclude<Governed, { kind: "waits" }>,
  meter: Meter,
  messages: readonly BaseMessage[],
): Command {
  const { id = "", name, args } = call;
  const carried = meter.carried(messages);
  const spent = carried && { [SPENT]: { ...carried, ...(update?.[SPENT] as object | undefined) } }; // our channel
  const ran = edited ? { [EDITED_CALLS]: { [id]: { name, args } } } : undefined;
  const changed = update || spent || ran ? { update: { ...update, ...spent, ...ran } } : {};
  const outcome = toOutcome(call, { ...result, ...changed });
  return showMessages(isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } }));
}
