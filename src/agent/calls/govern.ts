/** Carries out one call: checks it, asks about it, runs it through the layers, records and reports it. */
import type { ToolCall } from "@langchain/core/messages/tool";
import { RunFailure, errorMessage, isAbortError, isTransient } from "../../core/errors.ts";
import { closestNames } from "../../core/options.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import { toolError } from "../../tools/tool.ts";
import { describeLimit, isBeyondLimit } from "../budget/limits.ts";
import { type Deadline, callTime } from "../budget/meter.ts";
import type {
  AgentTool,
  CallHandler,
  CallResult,
  CallScope,
  Middleware,
  ToolCallRequest,
} from "../contracts/middleware.ts";
import { earlierCalls } from "../step/files.ts";
import type { CallStep } from "./call-step.ts";
import { checkCall } from "./check.ts";
import { EffectGuard } from "./effects.ts";
import { Approval, type Go, type Verdict } from "./gate.ts";
import { type EndedCall, noteOpenWrites, reportEnd, reportRecalled, reportStart } from "./report-call.ts";

export type Governed =
  /** `edited`: a person changed the call, and `call` is the one that ran. */
  | { kind: "done" | "failed"; call: ToolCall; result: CallResult; edited: boolean }
  /** A person is asked. Nothing with an effect has happened since the last answer. */
  | { kind: "waits"; pause: unknown };

/** Carries out a call. @throws only what nobody may answer: an aborted signal, a lost lease, failed storage. */
export async function govern(made: ToolCall, step: CallStep): Promise<Governed> {
  try {
    const ended = await carryOut(made, step);
    const result = reportEnd(ended, step);
    const { call, edited = false } = ended;
    return { kind: result.status === "error" ? "failed" : "done", call, result, edited };
  } catch (error) {
    if (!step.scope.isPause(error)) throw error;
    return { kind: "waits", pause: error };
  }
}

/**
 * The order matters: unknown tools and bad arguments are answered at once, then people are asked, then the layers run.
 * The call that they pass on is checked once more against the approved one.
 */
async function carryOut(made: ToolCall, step: CallStep): Promise<EndedCall> {
  const { agent, scope, meter, runtime } = step;
  const { state, context } = scope;
  const { callId } = context;
  const effects = new EffectGuard(step.effects);
  const begun = await effects.wasBegun();
  const checked = await checkCall(agent, made, { begun, backend: context.backend });
  if ("invalid" in checked) return { call: made, result: checked.invalid };
  const { inner } = step;
  if (!begun && isBeyondLimit(state.messages, inner?.outer ?? callId, agent.limits, inner?.number))
    return notRun(made, "the limit of tool calls for this run is reached");
  const { toolCall, gate } = checked;
  const reply = { calls: step.reply, tools: agent.tools };
  const open = await earlierCalls(state.files, { callId, toolCall, tool: checked.tool }, reply);
  const from = { state, runtime, ...(inner && { isInner: true as const }) };
  const request = { toolCall, tool: checked.tool?.offered, ...from };
  const approval = new Approval(step);
  // Approval for an unknown tool waits until a wrapper supplies the tool.
  const verdict: Verdict = checked.tool
    ? await approval.of(request, { begun, gate })
    : { run: true, toolCall, edited: false, approved: false };
  if (!verdict.run) return { call: toolCall, ...verdict };
  if (!inner) step.turn.end();
  const call = verdict.toolCall;
  const edited = verdict.edited || undefined;
  // A person may have chosen another tool.
  const tool = agent.tools.get(call.name) ?? checked.tool;
  const known = await effects.recall(tool, call, step.files);
  if (!known && tool?.kind !== "delegate" && meter.remainingMs === 0)
    return notRun(call, `${describeLimit(meter.timeOver())} is reached`);
  reportStart(call, step, known !== undefined);
  if (known) {
    reportRecalled(call, known, tool, scope.step);
    return { call, result: known, edited };
  }
  const running = { step, effects, approval, tool };
  const result = await runThroughLayers({ ...from, toolCall: call, tool: tool?.offered }, verdict, running);
  await effects.finish(call, result);
  return { call, result: noteOpenWrites(result, open), edited };
}

const notRun = (call: ToolCall, why: string): EndedCall => {
  return { call, result: toolError(`${call.name} was not run: ${why}.`) };
};

/** One call on its way through the layers. */
interface Running {
  step: CallStep;
  effects: EffectGuard;
  approval: Approval;
  /** The agent's tool for the call; layers may replace it. */
  tool: AgentTool | undefined;
}

/** Turns an error of a tool or layer into a result; pauses and aborts are thrown on. */
async function runThroughLayers(
  request: ToolCallRequest,
  verdict: Go,
  running: Running,
): Promise<CallResult> {
  const { step, effects, tool } = running;
  const { agent, meter, scope } = step;
  const { toolCall } = request;
  const time = callTime(scope.config.signal, tool?.kind === "delegate" ? undefined : meter, agent.limits);
  const runs = new Map(tool ? [[signature(toolCall), verdict]] : []);
  const { signal } = time;
  const { context, config } = scope;
  const timed = signal && { ...scope, context: { ...context, signal }, config: { ...config, signal } };
  const approved = { ...running, runs, scope: timed ?? scope };
  const run = nestLayers(agent.middleware, (inner, begin) => runApproved(inner, begin, approved), {
    isPause: scope.isPause,
    race: (done) => time.race(done),
  });
  try {
    const result = await run(request);
    // An error of a call that was aborted with its run is discarded: the run continues later, or the model knows.
    const results = [result, ...(result.further ?? [])];
    if (results.some(({ status }) => status === "error")) context.signal.throwIfAborted();
    return result;
  } catch (error) {
    if (scope.isPause(error)) await effects.withdraw();
    if (scope.isPause(error) || context.signal.aborted) throw error;
    // A subagent whose steps could not be stored has not failed: it continues from its last checkpoint.
    if (isTransient(error) && tool?.kind === "delegate") throw error;
    if (error instanceof MiddlewareFailure) {
      const text = `A middleware failed around this call. It is unknown whether ${toolCall.name} ran: check before you call it again.`;
      return toolError(text, { code: error.code });
    }
    agent.log.warn("tool_failed", { tool: toolCall.name, callId: toolCall.id, error });
    const { name } = toolCall;
    if (time.isOver()) return toolError(`${name} ${time.why()}.`);
    return toolError(isAbortError(error) ? `${name} was cancelled.` : errorMessage(error));
  }
}

/**
 * The innermost handler: asks again when a layer changed the approved call. `runs`: approved calls, by the signature of
 * the call that a layer passes on.
 */
async function runApproved(
  request: ToolCallRequest,
  begin: () => void,
  { step, runs, scope, approval, effects }: Running & { runs: Map<string, Go>; scope: CallScope },
): Promise<CallResult> {
  const { agent, accountsForCalls } = step;
  const { backend } = scope.context;
  // The tool that a layer put in the place of the agent's own, or added for a call that it offered itself.
  const { tool: brought } = request;
  const isOwn = !brought || agent.tools.get(brought.name)?.offered === brought;
  const instead = isOwn ? undefined : step.adopt(brought);
  const checked = await checkCall(agent, request.toolCall, { instead, backend });
  if ("invalid" in checked) return checked.invalid;
  if (!checked.tool) {
    const { name } = request.toolCall;
    const [all, most] = [[...agent.tools.keys()], 100];
    const nearest = all.length > most ? new Set([...closestNames(name, all, most), ...all]) : all;
    const names = [...nearest].slice(0, most).join(", ");
    return toolError(`${name} is not a valid tool, try one of [${names}].`);
  }
  const key = signature(checked.toolCall);
  let go = runs.get(key);
  if (!go) {
    const verdict = await approval.of({ ...request, toolCall: checked.toolCall }, { gate: checked.gate });
    if (!verdict.run) return verdict.result;
    runs.set(key, (go = verdict));
  }
  const { toolCall: call, approved } = go;
  const tool = instead ?? agent.tools.get(call.name) ?? checked.tool;
  // A stopped run begins nothing more, because another process may work on it already.
  scope.config.signal?.throwIfAborted();
  await effects.begin(tool, call, { backend, accountsForCalls });
  approval.begin();
  const kept = {
    ...defined({ handle: await effects.handle() }),
    keep: (handle: unknown) => effects.keep(handle),
  };
  // Subagents and questions of the agent may still wait for a person.
  if (tool.kind !== "delegate" && tool.kind !== "plan") begin();
  for (let { expectedVersion, evenReadOnly } = go, attempt = 1; ; attempt += 1) {
    const context = { ...scope.context, approved, expectedVersion, evenReadOnly, ...kept };
    const result = await tool.run(call, { ...scope, context });
    const hasConflict = expectedVersion !== undefined && memberOf(result.artifact, "code") === "conflict";
    // Others may change the file at the same time, in other places.
    if (!hasConflict || attempt === 5) return result;
    const verdict = await approval.again();
    if (!verdict.run) return verdict.result;
    ({ expectedVersion, evenReadOnly } = verdict);
  }
}

const signature = ({ name, args }: ToolCall): string => JSON.stringify([name, args]);

/**
 * Nests the `wrapCall` of a stack around `call`, which reports when it begins to work and asks nobody any more. Once it
 * has stopped to ask, so does the whole stack, even if a wrapper takes the pause for an error or does not wait for it.
 */
function nestLayers(
  stack: readonly Middleware[],
  call: (request: ToolCallRequest, begin: () => void) => Promise<CallResult>,
  { isPause, race }: Pick<CallScope, "isPause"> & Pick<Deadline, "race">,
): CallHandler {
  let paused: { error: unknown } | undefined;
  const check = (): void => {
    if (paused) throw paused.error;
  };
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const innermost: CallHandler = async (request) => {
    check();
    try {
      return await call(request, begin);
    } catch (error) {
      if (isPause(error)) paused = { error };
      throw error;
    }
  };
  /** Handlers at work that may still ask. */
  const asking: Array<Promise<unknown>> = [];
  const watched =
    (next: CallHandler): CallHandler =>
    (request) => {
      const result = next(request);
      asking.push(Promise.race([result, begun]).catch(() => undefined));
      return result;
    };
  const nested = stack.reduceRight<CallHandler>((inner, layer) => {
    const wrap = layer.wrapCall?.bind(layer);
    return wrap ? (request) => wrap(request, watched(inner)) : inner;
  }, innermost);
  const run: CallHandler = async (request) => {
    try {
      return await nested(request);
    } finally {
      while (asking.length > 0) await asking.pop();
    }
  };
  return (request) => race(run(request)).finally(check);
}

/** Middleware threw, in its own words, or answered in a wrong form. */
export class MiddlewareFailure extends RunFailure {
  constructor(message: string, options?: { cause: unknown }) {
    super("middleware_error", message, options);
  }
}
