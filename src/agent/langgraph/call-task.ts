/** Carries out one call in a graph task of its own, with everything that governs it. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend, withRuntime } from "../../backends/runtime.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { defined } from "../../core/unknown.ts";
import { DEFAULT_PARALLEL } from "../budget/limits.ts";
import type { CallStep } from "../calls/call-step.ts";
import { noEffects } from "../calls/effects.ts";
import { govern } from "../calls/govern.ts";
import { governWithOffered } from "../calls/offered-call.ts";
import type { AgentState } from "../contracts/state.ts";
import { withKeptFiles } from "../messages/kept-texts.ts";
import { replyWith } from "../messages/messages.ts";
import type { SpawnSubagent } from "../../tools/tool.ts";
import { asSibling, versionSeen } from "../step/files.ts";
import { askPerson, holdQuestion, questionsOf } from "./ask-person.ts";
import { backgroundTasks } from "./background-tasks.ts";
import { EDITED_CALLS } from "./channels.ts";
import type { AgentDefinition } from "./definition.ts";
import { toAgentTool } from "./foreign-tool.ts";
import { SCRATCHPAD_KEY } from "./internals.ts";
import { showMessages, storedEffects, toOutcome } from "./outcome.ts";
import { programScope } from "./program-of-task.ts";
import { withToolCallbacks } from "./untraced-node.ts";
import { loadedMeter, restoreStepFiles } from "./unfinished-step.ts";
import {
  agentRuntime,
  backendRuntime,
  contextOf,
  isResuming,
  readState,
  threadFiles,
} from "./step-of-task.ts";

/**
 * A node for one call, which it looks up in the reply, so that a checkpoint holds it once. It answers the call, or
 * interrupts the task: when there is an answer, the task starts again from its top.
 */
export function createToolNode(
  definition: AgentDefinition,
): (task: { callId: string }, config: RunnableConfig) => Promise<Command> {
  // Not `maxConcurrency`: LangGraph counts calls that it has not started when the run is stopped as done.
  const parallel = definition.limits.parallelTools ?? DEFAULT_PARALLEL;
  return ({ callId }, config) => {
    const { files } = readState(config, ["files"]);
    const { signal } = config;
    return asSibling(files, { callId, parallel, signal }, async (turn) => {
      await ownTurn();
      signal?.throwIfAborted();
      if (isResuming(config)) await restoreStepFiles(config);
      const state = readState(config, definition.channels);
      const made = replyWith(state.messages, callId);
      if (!made) throw new Error(`tool call ${callId} is not in the thread`);
      const { id: messageId = "", tool_calls: reply = [] } = made.reply;
      // Tools read the state by `getCurrentTaskInput`; streams of mode `debug` would show it.
      const input = { value: state, enumerable: false };
      Object.defineProperty(Object(config.configurable?.[SCRATCHPAD_KEY]), "currentTaskInput", input);
      const step = await callStep(definition, { messageId, callId, reply, turn }, state, config);
      const governed = await governWithOffered(made.call, step, config);
      if (governed.kind === "waits") throw governed.pause;
      const { call, edited } = governed;
      const { update, ...result } = governed.result;
      const { id = "", name, args } = call;
      const ran = edited && { [EDITED_CALLS]: { [id]: { name, args } } };
      // The state keeps the time at work where a limit needs it, beside the use of subagents.
      const changed = { ...update, ...step.meter.spentUpdate(state.messages, update), ...ran };
      const isChanged = update !== undefined || Object.keys(changed).length > 0;
      const outcome = toOutcome(call, { ...result, ...(isChanged && { update: changed }) });
      return showMessages(isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } }));
    });
  };
}

/** Collects everything that governs a call, from the task that carries it out. */
async function callStep(
  agent: AgentDefinition,
  { messageId, callId, ...call }: { messageId: string; callId: string } & Pick<CallStep, "reply" | "turn">,
  state: AgentState,
  config: RunnableConfig,
): Promise<CallStep> {
  const { subagents, folding, log } = agent;
  const { effects } = contextOf(config);
  const files = threadFiles(config, callId);
  const runtime = agentRuntime(config);
  const signal = config.signal ?? new AbortController().signal;
  const { step } = runtime;
  const spawn: SpawnSubagent | undefined =
    subagents &&
    ((task, id = callId) => subagents.spawn(task, { callId: id, config, files, folding, state }));
  const ofBackend = backendRuntime(config, files, state, log);
  const backend = withKeptFiles(await resolveBackend(agent.backend, ofBackend), files, agent.keptFolders);
  const own = { ...config, configurable: withRuntime(ofBackend, config.configurable) };
  const identity = { agent: step.agent, messageId, callId };
  const background = (id: string) => backgroundTasks(agent, messageId, id, state, config);
  const made: CallStep = {
    agent,
    ...call,
    runtime,
    files,
    meter: await loadedMeter(config, state, agent.limits),
    questions: questionsOf(config, step),
    effects: effects ? storedEffects(effects, identity) : noEffects,
    program: programScope(config, own, step, identity, background),
    accountsForCalls: (name) => subagents?.find(name)?.accountsForCalls ?? true,
    adopt: toAgentTool,
    scope: {
      context: {
        callId,
        signal,
        backend,
        versionSeen: (path) => versionSeen(state.messages, path),
        runProgram: async (source) => (await import("../calls/program.ts")).runProgram(source, made, govern),
        compileProgram: async (source) =>
          (await import("../calls/program.ts")).compileProgram(source, signal),
        ...defined({ spawn, background: background(callId), ask: askPerson(config, step, callId) }),
        ...defined({ hold: holdQuestion(config, { callId, signal }) }),
      },
      config: own,
      step,
      state,
      observe: (call, offered, work) => withToolCallbacks(call, offered, own, work),
      isPause: isGraphBubbleUp,
    },
  };
  return made;
}
