import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type Command, isGraphBubbleUp } from "@langchain/langgraph";
import { resolveBackend, withRuntime } from "../../backends/runtime.ts";
import { defined } from "../../core/defined.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { errorMessage, isAbortError, isTransient } from "../../core/errors.ts";
import { type ToolContext, type ToolResult, toolError } from "../../tools/tool.ts";
import { toolMessagesOf, toolOutcome } from "../calls/tool.ts";
import { Approval, type Go, UNASKED, broughtTool, checkCall, unknownTool } from "../calls/gate.ts";
import { EffectGuard } from "../calls/effects.ts";
import { noteEdit, noteOpenWrites, reportEnd, reportRecalled, reportStart } from "../calls/report-call.ts";
import type { AgentState } from "../contracts/state.ts";
import type { CallScope, Outcome } from "../contracts/call.ts";
import type { ToolCallRequest, ToolGate } from "../contracts/middleware.ts";
import { withKeptFiles } from "../messages/kept-texts.ts";
import { askPerson, holdQuestion } from "./ask-person.ts";
import type { AgentDefinition } from "./definition.ts";
import { MiddlewareFailure, composeToolCall } from "../layers/compose.ts";
import { describeLimit, isBeyondLimit } from "../budget/limits.ts";
import { type CallTime, type Deadline, callTime } from "../budget/meter.ts";
import { loadedMeter, restoreStepFiles } from "./resume.ts";
import { asSibling, earlierCalls, versionSeen } from "../step/files.ts";
import {
  agentRuntime,
  backendRuntime,
  contextOf,
  isResuming,
  readState,
  taskStep,
  threadFiles,
} from "./step-of-task.ts";

/** The input of one tool task. The call itself is looked up in the reply, so that a checkpoint holds it once. */
export interface ToolTask {
  callId: string;
}

/**
 * The node that runs one tool call as a graph task of its own.
 *
 * Order matters. Unknown tools and bad arguments are answered without asking anybody. A gated call interrupts before
 * anything with an effect. The wrappers come next, and the call that they pass on is checked once more against the
 * approved one.
 */
export function createToolNode(
  definition: AgentDefinition,
): (task: ToolTask, config: RunnableConfig) => Promise<Outcome> {
  const gates = definition.middleware.flatMap(({ gate }) => gate ?? []);
  return (task, config) => {
    const order = { callId: task.callId, oneByOne: definition.limits.parallelTools === 1 };
    const { files } = readState(config, ["files"]);
    return asSibling(files, order, () => runCall(task, definition, gates, config));
  };
}

async function runCall(
  { callId }: ToolTask,
  definition: AgentDefinition,
  gates: readonly ToolGate[],
  config: RunnableConfig,
): Promise<Command> {
  const step = taskStep(config);
  const end = (call: ToolCall, outcome: Outcome, rejected?: true): Command =>
    reportEnd(definition, call, outcome, { step, meter, messages: state.messages, rejected });
  const answerWith = (call: ToolCall, result: ToolResult): Command => end(call, toolOutcome(call, result));
  await ownTurn();
  config.signal?.throwIfAborted();
  if (isResuming(config)) await restoreStepFiles(config);
  const state = readState(config, definition.channels);
  const meter = await loadedMeter(config, state, definition.limits);
  const { made, messageId, calls } = findCall(state.messages, callId);
  const { effects: log } = contextOf(config);
  // Without a log of effects in the context, the guard does nothing.
  const effects = new EffectGuard(log, { agent: step.agent, messageId, callId });
  const begun = await effects.wasBegun();
  const scope = await callScope(definition, callId, state, config);
  const checked = await checkCall(definition, made, { begun, backend: scope.context.backend });
  if ("invalid" in checked) return answerWith(made, checked.invalid);
  if (!begun && isBeyondLimit(state.messages, callId, definition.limits)) {
    const why = "the limit of tool calls for this run is reached";
    return answerWith(made, toolError(`${made.name} was not run: ${why}.`));
  }
  const { toolCall, gate } = checked;
  const reply = { calls, tools: definition.tools };
  const open = await earlierCalls(state.files, { callId, toolCall, tool: checked.tool }, reply);
  const request = { toolCall, tool: checked.tool?.offered, state, runtime: agentRuntime(config) };
  const approval = new Approval(gates, definition, scope);
  // Approval for an unknown tool waits until a wrapper supplies the tool.
  const verdict = checked.tool ? await approval.of(request, { begun, gate }) : { ...UNASKED, toolCall };
  if (!verdict.run) return end(toolCall, toolOutcome(toolCall, verdict.result), verdict.rejected);
  const approved = verdict.toolCall;
  // A person may have chosen another tool.
  const tool = definition.tools.get(approved.name) ?? checked.tool;
  const known = await effects.recall(tool, approved, threadFiles(config, callId));
  if (!known && tool?.kind !== "delegate" && meter.remainingMs === 0) {
    const why = `${describeLimit(meter.timeOver())} is reached`;
    return answerWith(approved, toolError(`${approved.name} was not run: ${why}.`));
  }
  reportStart(approved, step, known !== undefined);
  if (known) return end(approved, reportRecalled(known, approved, tool, step));
  const time = callTime(config.signal, tool?.kind === "delegate" ? undefined : meter, definition.limits);
  const runs = new Map(tool ? [[signature(approved), verdict]] : []);
  const call: ApprovedCall = { runs, scope: timed(scope, time), definition, approval, effects };
  const run = composeToolCall(
    definition.middleware,
    (inner) => runApproved(inner, call),
    (done) => time.race(done),
  );
  const work = () => run({ ...request, toolCall: approved, tool: tool?.offered });
  const ran = await guarded(approved, work, { effects, definition, config, time });
  const outcome = verdict.edited ? noteEdit(ran, approved) : ran;
  await effects.finish(outcome);
  return end(approved, noteOpenWrites(outcome, open));
}

/** The call as its reply made it, and all calls of that reply. */
function findCall(
  messages: readonly BaseMessage[],
  callId: string,
): { made: ToolCall; messageId: string; calls: readonly ToolCall[] } {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!AIMessage.isInstance(message)) continue;
    const made = message.tool_calls?.find((call) => call.id === callId);
    if (made) return { made, messageId: message.id ?? "", calls: message.tool_calls ?? [] };
  }
  throw new Error(`tool call ${callId} is not in the thread`);
}

async function callScope(
  definition: AgentDefinition,
  callId: string,
  state: AgentState,
  config: RunnableConfig,
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
  const [ask, hold] = [askPerson(config, callId), holdQuestion(config, signal)];
  const context: ToolContext = {
    callId,
    signal,
    backend,
    versionSeen: versionSeenHere,
    ...spawn,
    ...defined({ ask, hold }),
  };
  return {
    context,
    config: { ...config, configurable: withRuntime(runtime, config.configurable) },
    step: taskStep(config),
    state,
  };
}

interface ApprovedCall {
  /** Approved calls, by the signature of the call that a wrapper passes on. */
  runs: Map<string, Go>;
  scope: CallScope;
  definition: AgentDefinition;
  approval: Approval;
  effects: EffectGuard;
}

/** The innermost handler: asks again when a wrapper changed what was approved. */
async function runApproved(
  request: ToolCallRequest,
  { runs, scope, definition, approval, effects }: ApprovedCall,
): Promise<Outcome> {
  const given = broughtTool(request, definition);
  const { backend } = scope.context;
  const checked = await checkCall(definition, request.toolCall, { given, backend });
  if ("invalid" in checked) return toolOutcome(request.toolCall, checked.invalid);
  if (!checked.tool) return toolOutcome(request.toolCall, unknownTool(definition, request.toolCall));
  const key = signature(checked.toolCall);
  let go = runs.get(key);
  if (!go) {
    const verdict = await approval.of({ ...request, toolCall: checked.toolCall }, { gate: checked.gate });
    if (!verdict.run) return toolOutcome(request.toolCall, verdict.result);
    runs.set(key, (go = verdict));
  }
  const { toolCall: call, approved } = go;
  const tool = given ?? definition.tools.get(call.name) ?? checked.tool;
  // A stopped run begins nothing more, because another process may work on it already.
  scope.config.signal?.throwIfAborted();
  await effects.begin(tool, call, { backend, subagents: definition.subagents });
  approval.begin();
  for (let { expectedVersion, evenReadOnly } = go, attempt = 1; ; attempt += 1) {
    const outcome = await tool.run(call, {
      ...scope,
      context: { ...scope.context, approved, expectedVersion, evenReadOnly },
    });
    if (expectedVersion === undefined || !isConflict(outcome) || attempt === MAX_ATTEMPTS) return outcome;
    const verdict = await approval.again();
    if (!verdict.run) return toolOutcome(call, verdict.result);
    ({ expectedVersion, evenReadOnly } = verdict);
  }
}

/** Maximum number of attempts for a call whose file others change at the same time, in other places. */
const MAX_ATTEMPTS = 5;

/** True if the call did nothing because its file is not the version shown to the person. */
function isConflict(outcome: Outcome): boolean {
  const artifact = toolMessagesOf(outcome)[0]?.artifact as { code?: unknown } | null | undefined; // ours, or anything
  return artifact?.code === "conflict";
}

const signature = ({ name, args }: ToolCall): string => JSON.stringify([name, args]);

function timed(scope: CallScope, { signal }: Deadline): CallScope {
  if (!signal) return scope;
  return { ...scope, context: { ...scope.context, signal }, config: { ...scope.config, signal } };
}

interface Guarding {
  effects: EffectGuard;
  definition: AgentDefinition;
  config: RunnableConfig;
  time: CallTime;
}

/** Turns an error of a tool or wrapper into the tool message; interrupts and aborts are thrown on. */
async function guarded(
  toolCall: ToolCall,
  run: () => Promise<Outcome>,
  { effects, definition: { log, tools }, config, time }: Guarding,
): Promise<Outcome> {
  try {
    const outcome = await run();
    // An error of a call that was aborted with its run is discarded: the run continues later, or has told the model.
    if (toolMessagesOf(outcome).some(({ status }) => status === "error")) config.signal?.throwIfAborted();
    return outcome;
  } catch (error) {
    if (isGraphBubbleUp(error)) await effects.withdraw();
    if (isGraphBubbleUp(error) || (config.signal?.aborted ?? false)) throw error;
    // A subagent whose steps could not be stored has not failed: it continues from its last checkpoint.
    if (isTransient(error) && tools.get(toolCall.name)?.kind === "delegate") throw error;
    if (error instanceof MiddlewareFailure) {
      return toolOutcome(toolCall, toolError(middlewareText(toolCall), { code: error.code }));
    }
    log.warn("tool_failed", { tool: toolCall.name, callId: toolCall.id, error });
    return toolOutcome(toolCall, toolError(failureText(toolCall, error, time)));
  }
}

const middlewareText = ({ name }: ToolCall): string =>
  `A middleware failed around this call. It is unknown whether ${name} ran: check before you call it again.`;

function failureText({ name }: ToolCall, error: unknown, time: CallTime): string {
  if (time.isOver()) return `${name} ${time.why()}.`;
  return isAbortError(error) ? `${name} was cancelled.` : errorMessage(error);
}
