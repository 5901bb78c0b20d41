import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend } from "../../backends/resolve.ts";
import { withRuntime } from "../../backends/runtime.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { errorMessage, isAbortError } from "../../core/errors.ts";
import { isTransient } from "../../core/errors.ts";
import { type ToolContext, toolError } from "../../tools/tool.ts";
import { callSummary, resultSummary, toolMessagesOf, toolOutcome } from "../calls/agent-tool.ts";
import { Approval, type Go, type Verdict, broughtTool, checkCall, unknownTool } from "../calls/approval.ts";
import { EffectGuard } from "../calls/effects.ts";
import type {
  AgentState,
  AgentTool,
  CallScope,
  Outcome,
  ToolCallRequest,
  ToolGate,
  ToolHandler,
} from "../contracts.ts";
import { showMessages, textOf } from "../conversation/messages.ts";
import { withKeptFiles } from "../conversation/offloaded-texts.ts";
import type { AgentDefinition } from "../definition/agent-definition.ts";
import { MiddlewareFailure, composeToolCall } from "../middleware/middleware.ts";
import { agentSegment, tellReport } from "../subagents/subagent-runner.ts";
import { describeLimit, isBeyondLimit } from "./limits.ts";
import { type CallTime, type Carried, type Deadline, SPENT, callTime } from "./meter.ts";
import { asSibling, earlierWrites, versionSeen } from "./step-files.ts";
import {
  agentPath,
  agentRuntime,
  backendRuntime,
  contextOf,
  emit,
  isResuming,
  loadedMeter,
  meterOf,
  readState,
  restoreStepFiles,
  threadFiles,
} from "./task-context.ts";

/** The node that runs one tool call: checks, approval, effects, and the call itself, in this order. */

/** What is sent to one tool task: the call is looked up in the reply, so that a checkpoint holds it once. */
export interface ToolTask {
  callId: string;
}

/**
 * Runs one tool call as a graph task of its own.
 *
 * Order matters: unknown tools and bad arguments are answered without asking anybody; a gated call
 * interrupts before anything with an effect; the wrappers come next; and what they finally want to run
 * is checked once more against what was approved.
 */
export function createToolNode(
  parts: AgentDefinition,
): (task: ToolTask, config: RunnableConfig) => Promise<Outcome> {
  const gates = [...pathGates(parts), ...parts.middleware.flatMap(({ gate }) => (gate ? [gate] : []))];
  const oneByOne = parts.limits.parallelTools === 1;
  const answer = async (callId: string, config: RunnableConfig): Promise<Command> => {
    await ownTurn();
    config.signal?.throwIfAborted();
    if (isResuming(config)) await restoreStepFiles(config);
    const state = readState(config, parts.channels);
    const meter = await loadedMeter(config, state, parts.limits);
    const { made, messageId, calls } = findCall(state.messages, callId);
    const effects = effectGuard(config, { messageId, callId });
    const begun = await effects.wasBegun();
    const checked = checkCall(parts, made, { begun });
    if ("invalid" in checked) return finish(parts, made, toolOutcome(made, checked.invalid), config);
    if (!begun && isBeyondLimit(state.messages, callId, parts.limits)) {
      const refusal = toolError(`${made.name} was not run: the limit of tool calls for this run is reached.`);
      return finish(parts, made, toolOutcome(made, refusal), config);
    }
    const { toolCall } = checked;
    const path = checked.tool?.kind === "read" ? checked.tool.pathOf(toolCall.args) : undefined;
    const open =
      path === undefined
        ? []
        : await earlierWrites(state.files, { callId, path }, { calls, tools: parts.tools });
    const scope = await callScope(parts, callId, state, config);
    const runtime = agentRuntime(config);
    const request: ToolCallRequest = { toolCall, tool: checked.tool?.offered, state, runtime };
    const approval = new Approval(gates, parts, scope);
    // Of a tool that nobody knows yet nobody is asked before a wrapper brings it.
    const verdict: Verdict = checked.tool
      ? await approval.of(request, begun)
      : { run: true, toolCall, edited: false };
    if (!verdict.run) return finish(parts, toolCall, toolOutcome(toolCall, verdict.result), config);
    const approved = verdict.toolCall;
    // A person may have chosen another one.
    const tool = parts.tools.get(approved.name) ?? checked.tool;
    const known = await effects.recall(tool, approved, threadFiles(config, callId));
    if (!known && tool?.kind !== "delegate" && meter.remainingMs === 0) {
      const refusal = toolError(
        `${approved.name} was not run: ${describeLimit(meter.timeOver())} is reached.`,
      );
      return finish(parts, approved, toolOutcome(approved, refusal), config);
    }
    emitStarted(approved, config, known !== undefined);
    if (known) return finish(parts, approved, told(known, approved, tool, config), config);
    const time = callTime(config.signal, tool?.kind === "delegate" ? undefined : meter, parts.limits);
    const runs = new Map(tool ? [[signature(approved), verdict]] : []);
    const { handler, settled } = rethrowingInterrupts((inner) =>
      runApproved(inner, { runs, scope: timed(scope, time), parts, approval, effects }),
    );
    const run = composeToolCall(parts.middleware, handler);
    const work = () => settled(time.race(run({ ...request, toolCall: approved, tool: tool?.offered })));
    const ran = await guarded(approved, work, { effects, parts, config, time });
    const outcome = verdict.edited ? tellEdit(ran, approved) : ran;
    await effects.finish(outcome);
    return finish(parts, approved, open.length > 0 ? tellOpen(outcome, open) : outcome, config);
  };
  return ({ callId }, config) =>
    asSibling(readState(config, ["files"]).files, { callId, oneByOne }, () => answer(callId, config));
}

/** Keeps the call from taking effect twice; without a log of effects in the context it does nothing. */
function effectGuard(config: RunnableConfig, call: { messageId: string; callId: string }): EffectGuard {
  const { effects, path: agent = [] } = contextOf(config);
  return new EffectGuard(effects, { agent, ...call });
}

/** Rules for paths may ask a person. */
function pathGates({ permissions, tools }: AgentDefinition): ToolGate[] {
  if (!permissions) return [];
  return [
    async ({ toolCall: { name, args } }) => {
      const tool = tools.get(name);
      return tool && permissions.gate(tool, args);
    },
  ];
}

interface FoundCall {
  made: ToolCall;
  messageId: string;
  /** All calls of its reply. */
  calls: readonly ToolCall[];
}

function findCall(messages: readonly BaseMessage[], callId: string): FoundCall {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!AIMessage.isInstance(message)) continue;
    const made = message.tool_calls?.find((call) => call.id === callId);
    if (made) return { made, messageId: message.id ?? "", calls: message.tool_calls ?? [] };
  }
  throw new Error(`tool call ${callId} is not in the thread`);
}

async function callScope(
  parts: AgentDefinition,
  callId: string,
  state: AgentState,
  config: RunnableConfig,
): Promise<CallScope> {
  const files = threadFiles(config, callId);
  const signal = config.signal ?? new AbortController().signal;
  const { subagents } = parts;
  const spawn = subagents && {
    spawn: (task: { subagentType: string; description: string }) =>
      subagents.spawn(task, { callId, config, files, folding: parts.folding, readState: () => state }),
  };
  const runtime = backendRuntime(config, files, state, parts.log);
  const resolved = await resolveBackend(parts.backend, runtime);
  const backend = withKeptFiles(resolved, files, parts.keptFolders);
  const versionSeenHere = (path: string): string | undefined => versionSeen(state.messages, path);
  const context: ToolContext = { callId, signal, backend, versionSeen: versionSeenHere, ...spawn };
  return { context, config: { ...config, configurable: withRuntime(runtime, config.configurable) }, state };
}

interface ApprovedCall {
  /** What may run without asking (again), by the signature of the call that a wrapper passes on. */
  runs: Map<string, Go>;
  scope: CallScope;
  parts: AgentDefinition;
  approval: Approval;
  effects: EffectGuard;
}

/** The innermost handler: asks again when a wrapper changed what was approved. */
async function runApproved(
  request: ToolCallRequest,
  { runs, scope, parts, approval, effects }: ApprovedCall,
): Promise<Outcome> {
  const given = broughtTool(request, parts);
  const checked = checkCall(parts, request.toolCall, { given });
  if ("invalid" in checked) return toolOutcome(request.toolCall, checked.invalid);
  if (!checked.tool) return toolOutcome(request.toolCall, unknownTool(parts, request.toolCall));
  const key = signature(checked.toolCall);
  let go = runs.get(key);
  if (!go) {
    const verdict = await approval.of({ ...request, toolCall: checked.toolCall });
    if (!verdict.run) return toolOutcome(request.toolCall, verdict.result);
    runs.set(key, (go = verdict));
  }
  const { toolCall: call } = go;
  const tool = given ?? parts.tools.get(call.name) ?? checked.tool;
  // A run that was stopped begins nothing more: others may be at work on it already.
  scope.config.signal?.throwIfAborted();
  await effects.begin(tool, call, { backend: scope.context.backend, subagents: parts.subagents });
  approval.begin();
  for (let { expectedVersion } = go, attempt = 1; ; attempt += 1) {
    const outcome = await tool.run(call, { ...scope, context: { ...scope.context, expectedVersion } });
    if (expectedVersion === undefined || !isConflict(outcome) || attempt === MAX_ATTEMPTS) return outcome;
    const verdict = await approval.again();
    if (!verdict.run) return toolOutcome(call, verdict.result);
    ({ expectedVersion } = verdict);
  }
}

/** How often a call is made again whose file others change at that very moment, and not what it changes of it. */
const MAX_ATTEMPTS = 5;

/** The call did nothing, because its file was another version than the person was shown. */
function isConflict(outcome: Outcome): boolean {
  const [message] = toolMessagesOf(outcome);
  const artifact: unknown = message?.artifact;
  return (
    typeof artifact === "object" && artifact !== null && "code" in artifact && artifact.code === "conflict"
  );
}

const signature = ({ name, args }: ToolCall): string => JSON.stringify([name, args]);

function timed({ context, config, state }: CallScope, { signal }: Deadline): CallScope {
  if (!signal) return { context, config, state };
  return { context: { ...context, signal }, config: { ...config, signal }, state };
}

interface Guarding {
  effects: EffectGuard;
  parts: AgentDefinition;
  config: RunnableConfig;
  time: CallTime;
}

/** Turns whatever a tool or wrapper throws into its tool message; interrupts and aborts pass. */
async function guarded(
  toolCall: ToolCall,
  run: () => Promise<Outcome>,
  { effects, parts: { log, tools }, config, time }: Guarding,
): Promise<Outcome> {
  try {
    const outcome = await run();
    // What a call ended with because work on its run ended is no answer: the run goes on, or tells it itself.
    if (toolMessagesOf(outcome).some(({ status }) => status === "error")) config.signal?.throwIfAborted();
    return outcome;
  } catch (error) {
    if (isGraphBubbleUp(error)) await effects.withdraw();
    if (isGraphBubbleUp(error) || (config.signal?.aborted ?? false)) throw error;
    // A subagent whose steps could not be stored has not failed: it goes on from what is stored.
    if (isTransient(error) && tools.get(toolCall.name)?.kind === "delegate") throw error;
    if (error instanceof MiddlewareFailure) {
      return toolOutcome(toolCall, toolError(middlewareText(toolCall), { code: error.code }));
    }
    log.warn("tool_failed", { tool: toolCall.name, callId: toolCall.id, error });
    return toolOutcome(toolCall, toolError(failureText(toolCall, error, time)));
  }
}

const middlewareText = ({ name }: ToolCall): string =>
  `A middleware failed around this call. Whether ${name} ran is not known: check before you call it again.`;

function failureText({ name }: ToolCall, error: unknown, time: CallTime): string {
  if (time.isOver()) return `${name} ${time.why()}.`;
  return isAbortError(error) ? `${name} was cancelled.` : errorMessage(error);
}

/** Tells the model that a person changed the call, in front of its result. */
const tellEdit = (outcome: Outcome, { name, args }: ToolCall): Outcome =>
  withNote(outcome, `[A person changed this call before it ran. It ran as ${name} ${JSON.stringify(args)}]`);

/** Tells the model that what it reads is older than what it wrote in the same reply. */
const tellOpen = (outcome: Outcome, open: readonly ToolCall[]): Outcome =>
  withNote(
    outcome,
    `[From before ${open.map(({ name }) => name).join(", ")} of the same reply, which waits for a person]`,
  );

function withNote(outcome: Outcome, note: string): Outcome {
  const [message] = toolMessagesOf(outcome);
  if (!message) return outcome;
  if (typeof message.content === "string") message.content = `${note}\n${message.content}`;
  else message.content = [{ type: "text", text: note }, ...message.content];
  return outcome;
}

function emitStarted({ id = "", name, args }: ToolCall, config: RunnableConfig, recalled: boolean): void {
  emit(config, {
    kind: "tool_started",
    agent: agentPath(config),
    callId: id,
    tool: name,
    summary: callSummary(name, args),
    ...(recalled ? { recalled: true } : {}),
  });
}

/** What is known of a call that was begun before; watchers learn of a subagent's that it works no more. */
function told(known: Outcome, call: ToolCall, tool: AgentTool | undefined, config: RunnableConfig): Outcome {
  const [message] = toolMessagesOf(known);
  if (tool?.kind !== "delegate" || !message) return known;
  const { subagent_type: name, description } = call.args;
  const segment = agentSegment(call.id ?? "", String(name), String(description));
  tellReport(segment, { text: textOf(message), status: message.status }, config);
  return known;
}

/** Tells watchers how the call ended, and gives the graph its update. */
function finish(
  parts: AgentDefinition,
  toolCall: ToolCall,
  outcome: Outcome,
  config: RunnableConfig,
): Command {
  const { id: callId = "", name, args } = toolCall;
  const agent = agentPath(config);
  const [message] = toolMessagesOf(outcome);
  const status = message?.status === "error" ? "error" : "success";
  const summary = message ? resultSummary(textOf(message)) : "";
  emit(config, { kind: "tool_finished", agent, callId, tool: name, status, summary });
  if (status === "success") {
    const tool = parts.tools.get(name);
    const path = tool?.kind === "write" ? tool.pathOf(args) : undefined;
    if (path) {
      const diff = tool?.changeOf?.(args, message?.artifact);
      emit(config, {
        kind: "file_changed",
        agent,
        callId,
        path,
        ...(diff === undefined ? {} : { diff }),
      });
    }
    const todos: unknown =
      isCommand(outcome) && !Array.isArray(outcome.update) ? outcome.update?.["todos"] : undefined;
    if (Array.isArray(todos)) emit(config, { kind: "todos", agent, todos });
  }
  return showMessages(withTime(outcome, parts, config));
}

/** The outcome as a command that also keeps the time at work, where a limit needs it. */
function withTime(outcome: Outcome, { channels, limits }: AgentDefinition, config: RunnableConfig): Command {
  const command = isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } });
  const meter = meterOf(config, limits);
  if (meter.remainingMs === undefined || Array.isArray(command.update)) return command;
  const carried = meter.carried(readState(config, channels).messages);
  command.update = { ...command.update, [SPENT]: { ...carried, ...spentIn(command.update) } };
  return command;
}

/** What a subagent used, as its report says. */
const spentIn = (update: Record<string, unknown> | undefined): Partial<Carried> =>
  (update?.[SPENT] as Partial<Carried> | undefined) ?? {}; // our channel

/**
 * Keeps wrappers from taking a pause for an error, as those that retry do: once `handler` has stopped to
 * ask a person, it stays stopped, and so does whatever is made of that.
 */
function rethrowingInterrupts(inner: ToolHandler): {
  handler: ToolHandler;
  settled: (work: Promise<Outcome>) => Promise<Outcome>;
} {
  let pause: { error: unknown } | undefined;
  const check = (): void => {
    if (pause) throw pause.error;
  };
  return {
    handler: async (request) => {
      check();
      try {
        return await inner(request);
      } catch (error) {
        if (isGraphBubbleUp(error)) pause = { error };
        throw error;
      }
    },
    settled: (work) => work.finally(check),
  };
}
