import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend } from "../backends/resolve.ts";
import { errorMessage, isAbortError } from "../core/errors.ts";
import { type ToolContext, toolError } from "../tools/tool.ts";
import type { AgentParts } from "./agent-parts.ts";
import { type CallScope, toolOutcome } from "./agent-tool.ts";
import { authorize, type Verdict } from "./approval.ts";
import { composeToolCall, type ToolCallRequest } from "./middleware/middleware.ts";
import { agentPath, agentRuntime, backendRuntime, emit, readState, threadFiles } from "./step.ts";
import { callSummary, resultSummary } from "./summaries.ts";

/** What is sent to one tool task: the call is looked up in the reply, so that a checkpoint holds it once. */
export interface ToolTask {
  callId: string;
}

type Outcome = ToolMessage | Command;

/**
 * Runs one tool call as a graph task of its own.
 *
 * Order matters: unknown tools and bad arguments are answered without asking anybody; a gated call
 * interrupts before anything with an effect; the wrappers come next; and what they finally want to run
 * is checked once more against what was approved.
 */
export function createToolNode(
  parts: AgentParts,
): (task: ToolTask, config: RunnableConfig) => Promise<Outcome> {
  const gates = parts.middleware.flatMap(({ gate }) => (gate ? [gate] : []));
  return async ({ callId }, config) => {
    const state = readState(config, parts.channels);
    const toolCall = findCall(state.messages, callId);
    const scope = await callScope(parts, toolCall, config);
    const invalid = checkCall(parts, toolCall);
    if (invalid) return finish(parts, toolCall, toolOutcome(toolCall, invalid), config);
    const request: ToolCallRequest = {
      toolCall,
      tool: parts.tools.get(toolCall.name)?.offered,
      state,
      runtime: agentRuntime(config),
    };
    const verdict = await authorize(request, gates, parts.tools, scope);
    if (!verdict.run) return finish(parts, toolCall, toolOutcome(toolCall, verdict.result), config);
    emitStarted(verdict.toolCall, config);
    const run = composeToolCall(parts.middleware, (inner) =>
      runApproved(inner, verdict, scope, parts, gates),
    );
    const outcome = await guarded(
      verdict.toolCall,
      () => run({ ...request, toolCall: verdict.toolCall }),
      config,
    );
    return finish(
      parts,
      verdict.toolCall,
      verdict.edited ? tellEdit(outcome, verdict.toolCall) : outcome,
      config,
    );
  };
}

function findCall(messages: readonly BaseMessage[], callId: string): ToolCall {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!AIMessage.isInstance(message)) continue;
    const found = message.tool_calls?.find((call) => call.id === callId);
    if (found) return found;
  }
  throw new Error(`tool call ${callId} is not in the thread`);
}

async function callScope(parts: AgentParts, toolCall: ToolCall, config: RunnableConfig): Promise<CallScope> {
  const files = threadFiles(config);
  const signal = config.signal ?? new AbortController().signal;
  const callId = toolCall.id ?? "";
  const { subagents } = parts;
  const spawn = subagents && {
    spawn: (task: { subagentType: string; description: string }) =>
      subagents.spawn(task, { callId, config, files, readState: () => readState(config, parts.channels) }),
  };
  const backend = await resolveBackend(parts.backend, backendRuntime(config, files));
  const context: ToolContext = { callId, signal, backend, ...spawn };
  return { context, config };
}

function checkCall(parts: AgentParts, { name, args }: ToolCall): ReturnType<typeof toolError> | undefined {
  const tool = parts.tools.get(name);
  if (!tool) {
    const names = [...parts.tools.keys()].join(", ");
    return toolError(`${name} is not a valid tool, try one of [${names}].`);
  }
  const checked = tool.validate(args);
  return checked.ok ? undefined : toolError(checked.message);
}

/** The innermost handler: asks again when a wrapper changed what was approved. */
async function runApproved(
  request: ToolCallRequest,
  approved: Verdict & { run: true },
  scope: CallScope,
  parts: AgentParts,
  gates: Parameters<typeof authorize>[1],
): Promise<Outcome> {
  const unchanged = signature(request.toolCall) === signature(approved.toolCall);
  const verdict: Verdict = unchanged ? approved : await authorize(request, gates, parts.tools, scope);
  if (!verdict.run) return toolOutcome(request.toolCall, verdict.result);
  const invalid = checkCall(parts, verdict.toolCall);
  const tool = parts.tools.get(verdict.toolCall.name);
  if (invalid || !tool) return toolOutcome(request.toolCall, invalid ?? toolError("unknown tool"));
  const checked = tool.validate(verdict.toolCall.args);
  const args = checked.ok ? checked.args : verdict.toolCall.args;
  return tool.run({ ...verdict.toolCall, args }, scope);
}

const signature = ({ name, args }: ToolCall): string => JSON.stringify([name, args]);

/** Turns whatever a tool or wrapper throws into its tool message; interrupts and aborts pass. */
async function guarded(
  toolCall: ToolCall,
  run: () => Promise<Outcome>,
  config: RunnableConfig,
): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (isGraphBubbleUp(error) || (config.signal?.aborted ?? false)) throw error;
    const text = isAbortError(error) ? `${toolCall.name} was cancelled.` : errorMessage(error);
    return toolOutcome(toolCall, toolError(text));
  }
}

/** Tells the model that a person changed the call, in front of its result. */
function tellEdit(outcome: Outcome, { name, args }: ToolCall): Outcome {
  const message = messageOf(outcome);
  if (!message) return outcome;
  const note = `[A person changed this call before it ran. It ran as ${name} ${JSON.stringify(args)}]`;
  if (typeof message.content === "string") message.content = `${note}\n${message.content}`;
  else message.content = [{ type: "text", text: note }, ...message.content];
  return outcome;
}

function messageOf(outcome: Outcome): ToolMessage | undefined {
  if (!isCommand(outcome)) return outcome;
  const { update } = outcome;
  const messages: unknown = Array.isArray(update) ? undefined : update?.["messages"];
  const found: unknown = Array.isArray(messages)
    ? messages.find((m) => ToolMessage.isInstance(m))
    : undefined;
  return ToolMessage.isInstance(found) ? found : undefined;
}

function emitStarted({ id = "", name, args }: ToolCall, config: RunnableConfig): void {
  emit(config, {
    kind: "tool_started",
    agent: agentPath(config),
    callId: id,
    tool: name,
    summary: callSummary(name, args),
  });
}

/** Tells watchers how the call ended, and gives the graph its update. */
function finish(parts: AgentParts, toolCall: ToolCall, outcome: Outcome, config: RunnableConfig): Outcome {
  const { id: callId = "", name, args } = toolCall;
  const agent = agentPath(config);
  const message = messageOf(outcome);
  const status = message?.status === "error" ? "error" : "success";
  const summary = message ? resultSummary(message.text) : "";
  emit(config, { kind: "tool_finished", agent, callId, tool: name, status, summary });
  if (status === "success") {
    const tool = parts.tools.get(name);
    const path = tool?.kind === "write" ? tool.pathOf(args) : undefined;
    if (path) emit(config, { kind: "file_changed", agent, callId, path });
    const todos: unknown =
      isCommand(outcome) && !Array.isArray(outcome.update) ? outcome.update?.["todos"] : undefined;
    if (Array.isArray(todos)) emit(config, { kind: "todos", agent, todos });
  }
  return isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } });
}
