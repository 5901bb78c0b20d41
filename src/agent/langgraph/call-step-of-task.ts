/** Gives a call everything that governs it, from the task that carries it out. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend, withRuntime } from "../../backends/runtime.ts";
import { defined } from "../../core/defined.ts";
import type { CallStep } from "../calls/call-step.ts";
import { noEffects } from "../calls/effects.ts";
import { govern } from "../calls/govern.ts";
import type { AgentState } from "../contracts/state.ts";
import { withKeptFiles } from "../messages/kept-texts.ts";
import { versionSeen } from "../step/files.ts";
import { askPerson, holdQuestion, questionsOf } from "./ask-person.ts";
import { backgroundTasks } from "./background-tasks.ts";
import { withToolCallbacks } from "./callbacks.ts";
import type { AgentDefinition } from "./definition.ts";
import { toAgentTool } from "./foreign-tool.ts";
import { programScope } from "./program-of-task.ts";
import { loadedMeter } from "./resume.ts";
import { agentRuntime, backendRuntime, contextOf, threadFiles } from "./step-of-task.ts";
import { storedEffects } from "./stored-result.ts";

/** The place of a call: its reply, and all calls of that. */
interface Place {
  messageId: string;
  callId: string;
  reply: readonly ToolCall[];
}

export async function callStep(
  agent: AgentDefinition,
  { messageId, callId, reply }: Place,
  state: AgentState,
  config: RunnableConfig,
): Promise<CallStep> {
  const { subagents, folding, log } = agent;
  const { effects } = contextOf(config);
  const files = threadFiles(config, callId);
  const runtime = agentRuntime(config);
  const signal = config.signal ?? new AbortController().signal;
  const { step } = runtime;
  const spawn = subagents && {
    spawn: (task: { subagentType: string; description: string }) =>
      subagents.spawn(task, { callId, config, files, folding, readState: () => state }),
  };
  const ofBackend = backendRuntime(config, files, state, log);
  const backend = withKeptFiles(await resolveBackend(agent.backend, ofBackend), files, agent.keptFolders);
  const own = { ...config, configurable: withRuntime(ofBackend, config.configurable) };
  const identity = { agent: step.agent, messageId, callId };
  const background = (id: string) => backgroundTasks(agent, { messageId, callId: id, state, config });
  const made: CallStep = {
    agent,
    reply,
    runtime,
    files,
    meter: await loadedMeter(config, state, agent.limits),
    questions: questionsOf(config, step),
    effects: effects ? storedEffects(effects, identity) : noEffects,
    program: programScope(config, own, step, identity, background),
    accountsForCalls: (name) => subagents?.accountsForCalls(name) ?? true,
    adopt: toAgentTool,
    scope: {
      context: {
        callId,
        signal,
        backend,
        versionSeen: (path) => versionSeen(state.messages, path),
        ...spawn,
        runProgram: async (source) => {
          const { runProgram } = await import("../calls/program.ts");
          return runProgram(source, made, govern);
        },
        ...defined({ background: background(callId) }),
        ...defined({ ask: askPerson(config, step, callId), hold: holdQuestion(config, signal) }),
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
