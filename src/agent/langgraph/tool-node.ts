import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend, withRuntime } from "../../backends/runtime.ts";
import { ownTurn } from "../../core/concurrency.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { type Meter, SPENT } from "../budget/meter.ts";
import type { CallStep } from "../calls/call-step.ts";
import { govern } from "../calls/govern.ts";
import type { CallResult, CallScope } from "../contracts/call.ts";
import type { AgentState } from "../contracts/state.ts";
import { withKeptFiles } from "../messages/kept-texts.ts";
import { asSibling, versionSeen } from "../step/files.ts";
import { withToolCallbacks } from "./callbacks.ts";
import type { AgentDefinition } from "./definition.ts";
import { toAgentTool } from "./foreign-tool.ts";
import { showMessages, toOutcome } from "./outcome.ts";
import { questionsOf } from "./questions.ts";
import { loadedMeter, restoreStepFiles } from "./resume.ts";
import {
  agentRuntime,
  backendRuntime,
  contextOf,
  isResuming,
  readState,
  taskStep,
  threadFiles,
} from "./step-of-task.ts";
import { storedEffects } from "./stored-result.ts";

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
  const step = await callStep(definition, { messageId, callId }, reply, { state, config });
  const governed = await govern(made, step);
  if (governed.kind === "waits") throw governed.pause;
  return updateOf(governed.call, governed.result, step.meter, state.messages);
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

interface Task {
  state: AgentState;
  config: RunnableConfig;
}

async function callStep(
  agent: AgentDefinition,
  at: { messageId: string; callId: string },
  reply: readonly ToolCall[],
  { state, config }: Task,
): Promise<CallStep> {
  const meter = await loadedMeter(config, state, agent.limits);
  const scope = await callScope(agent, at.callId, { state, config });
  return {
    agent,
    at: { agent: scope.step.agent, ...at },
    reply,
    scope,
    runtime: agentRuntime(config),
    files: threadFiles(config, at.callId),
    meter,
    questions: questionsOf(config, scope.step),
    effects: storedEffects(contextOf(config).effects),
    accountsForCalls: (name) => agent.subagents?.accountsForCalls(name) ?? true,
    adopt: toAgentTool,
  };
}

async function callScope(
  definition: AgentDefinition,
  callId: string,
  { state, config }: Task,
): Promise<CallScope> {
  const files = threadFiles(config, callId);
  const signal = config.signal ?? new AbortController().signal;
  const { subagents } = definition;
  const spawn = subagents && {
    spawn: (task: { subagentType: string; description: string }) =>
      subagents.spawn(task, { callId, config, files, folding: definition.folding, readState: () => state }),
  };
  const runtime = backendRuntime(config, files, state, definition.log);
  const resolved = await resolveBackend(definition.backend, runtime);
  const backend = withKeptFiles(resolved, files, definition.keptFolders);
  const versionSeenHere = (path: string): string | undefined => versionSeen(state.messages, path);
  const context: ToolContext = { callId, signal, backend, versionSeen: versionSeenHere, ...spawn };
  const observed = { ...config, configurable: withRuntime(runtime, config.configurable) };
  return {
    context,
    config: observed,
    step: taskStep(config),
    state,
    observe: (call, offered, work) => withToolCallbacks(call, offered, observed, work),
    isPause: isGraphBubbleUp,
  };
}

/** The graph's update. The state keeps the time at work where a limit needs it, beside what a subagent used. */
function updateOf(
  call: ToolCall,
  { update, ...result }: CallResult,
  meter: Meter,
  messages: readonly BaseMessage[],
): Command {
  const carried = meter.carried(messages);
  const spent = carried && { [SPENT]: { ...carried, ...(update?.[SPENT] as object | undefined) } }; // our channel
  const changed = update || spent ? { update: { ...update, ...spent } } : {};
  const outcome = toOutcome(call, { ...result, ...changed });
  return showMessages(isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } }));
}
