/** Nests the layers of an agent, and names the layer that failed. */
import { SystemMessage } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { DeepAgentError, RunFailure, errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type {
  AgentRuntime,
  HookName,
  Middleware,
  ModelHandler,
  ModelRequest,
  ToolHandler,
} from "../contracts/middleware.ts";
import type { AgentState, JumpTarget, StateUpdate } from "../contracts/state.ts";
import { foldMessages, textOf } from "../messages/messages.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { type Carried, type Deadline, SPENT, addSpent } from "../budget/meter.ts";

/** Nests the `wrapModelCall` of a stack around `call`. */
export function composeModelCall(stack: readonly Middleware[], call: ModelHandler): ModelHandler {
  return stack.reduceRight<ModelHandler>((inner, layer) => {
    const wrap = layer.wrapModelCall?.bind(layer);
    if (!wrap) return inner;
    return (request) => wrap(request, (changed) => inner(withOneSystemPrompt(request, changed)));
  }, call);
}

/** A request as it leaves the stack, with its system prompt in one message. */
export function finishRequest(stack: readonly Middleware[], request: ModelRequest): ModelRequest {
  const { closingPrompt, ...finished } = stack.reduce(
    (changed, layer) => layer.finishRequest?.(changed) ?? changed,
    request,
  );
  return closingPrompt === undefined ? finished : appendSystemPrompt(finished, closingPrompt);
}

/**
 * Nests the `wrapToolCall` of a stack around `call`, for one call. Once `call` has stopped to ask a person, so does
 * the whole stack, even if a wrapper takes the interrupt for an error, as those that retry do. `race` bounds its time.
 */
export function composeToolCall(
  stack: readonly Middleware[],
  call: ToolHandler,
  race: Deadline["race"],
): ToolHandler {
  let interrupted: { error: unknown } | undefined;
  const check = (): void => {
    if (interrupted) throw interrupted.error;
  };
  const innermost: ToolHandler = async (request) => {
    check();
    try {
      return await call(request);
    } catch (error) {
      if (isGraphBubbleUp(error)) interrupted = { error };
      throw error;
    }
  };
  const nested = stack.reduceRight<ToolHandler>((inner, layer) => {
    const wrap = layer.wrapToolCall?.bind(layer);
    return wrap ? (request) => wrap(request, inner) : inner;
  }, innermost);
  return (request) => race(nested(request)).finally(check);
}

/**
 * Runs all hooks of one kind: `before*` first to last, `after*` last to first. Each sees the changes of those before
 * it. The first one that jumps ends the round.
 */
export async function runHooks(
  stack: readonly Middleware[],
  hook: HookName,
  state: AgentState,
  runtime: AgentRuntime,
): Promise<{ update: StateUpdate; state: AgentState; jumpTo?: JumpTarget }> {
  const updates: StateUpdate[] = [];
  let current = state;
  for (const layer of hook.startsWith("after") ? stack.toReversed() : stack) {
    const { jumpTo, ...changes } = (await layer[hook]?.(current, runtime)) ?? {};
    const update = withoutEchoes(changes, current);
    updates.push(update);
    current = applyLocally(current, update);
    if (jumpTo) return { update: mergeUpdates(updates), state: current, jumpTo };
  }
  return { update: mergeUpdates(updates), state: current };
}

/** Leaves out values that a hook returned unchanged with the whole state; they would be added twice. */
function withoutEchoes(update: StateUpdate, state: AgentState): StateUpdate {
  const isEcho = ([channel, value]: [string, unknown]): boolean =>
    typeof value === "object" && value !== null && value === state[channel];
  return Object.fromEntries(Object.entries(update).filter((entry) => !isEcho(entry)));
}

/** The state for later hooks of the same round; the channels' reducers get the merged update once. */
function applyLocally(state: AgentState, { messages, files, ...rest }: StateUpdate): AgentState {
  return {
    ...state,
    ...rest,
    messages: messages ? foldMessages(state.messages, [messages]) : state.messages,
    files: files ? { ...state.files, ...files } : state.files,
  };
}

/** Gives a function that reports a warning about the run, the first time and only for the main agent. */
export function warnOnce(): (request: ModelRequest, message: string) => void {
  let isReported = false;
  return ({ runtime }, message) => {
    if (isReported || runtime.step.agent.length > 0) return;
    isReported = true;
    runtime.step.tell({ kind: "warning", message });
  };
}

/** LangChain keeps the prompt twice, as text and as message; whichever a wrapper changed wins. */
function withOneSystemPrompt(before: ModelRequest, after: ModelRequest): ModelRequest {
  if (after.systemMessage !== before.systemMessage) {
    return { ...after, systemPrompt: textOf(after.systemMessage) };
  }
  if (after.systemPrompt !== before.systemPrompt) {
    return { ...after, systemMessage: new SystemMessage(after.systemPrompt) };
  }
  return after;
}

/** Several updates of the state as one: messages in order, files by path, what was spent added up, else the last one counts. */
export function mergeUpdates(updates: readonly StateUpdate[]): StateUpdate {
  const messages = updates.flatMap((update) => update.messages ?? []);
  const files: StateUpdate["files"] = Object.assign({}, ...updates.map((update) => update.files ?? {}));
  const merged: StateUpdate = Object.assign({}, ...updates);
  const spent = updates.flatMap((update) => (update[SPENT] ? [update[SPENT] as Partial<Carried>] : [])); // our channel
  return {
    ...merged,
    ...(spent.length > 1 ? { [SPENT]: addSpent({}, spent) } : {}),
    ...(messages.length > 0 ? { messages } : {}),
    ...(Object.keys(files ?? {}).length > 0 ? { files } : {}),
  };
}

/** The code of errors of middleware that throws or answers in a wrong form. */
const MIDDLEWARE_ERROR = "middleware_error";

/** The place where middleware runs. */
export interface MiddlewareCall {
  middleware: string;
  hook: string;
  runtime: AgentRuntime;
  log: Logger;
}

/**
 * Runs a hook. What it throws itself becomes a failure of the middleware, and the log has cause and stack. Pauses,
 * aborts, expected errors and those in `passed` (failures from further in) are thrown on unchanged.
 */
export async function hooked<Result>(
  { middleware, hook, runtime, log }: MiddlewareCall,
  run: () => Result | Promise<Result>,
  passed: ReadonlySet<unknown> = new Set(),
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (passed.has(error) || isGraphBubbleUp(error) || runtime.signal?.aborted === true) throw error;
    throw failureOf(error, { middleware, hook, log });
  }
}

/** Makes a failure of the middleware of what a hook threw, and logs it. Expected errors are given back unchanged. */
export function failureOf(
  error: unknown,
  { middleware, hook, log }: Pick<MiddlewareCall, "middleware" | "hook" | "log">,
): unknown {
  if (error instanceof DeepAgentError && !(error instanceof MiddlewareFailure)) return error;
  log.error(MIDDLEWARE_ERROR, { middleware, hook, error });
  if (error instanceof MiddlewareFailure) return error;
  return new MiddlewareFailure(errorMessage(error), { cause: error });
}

/** Middleware threw, in its own words, or answered in a wrong form. */
export class MiddlewareFailure extends RunFailure {
  constructor(message: string, options?: { cause: unknown }) {
    super(MIDDLEWARE_ERROR, message, options);
  }
}

/** Wraps `next` and collects the errors that it throws. */
export function noting<Request, Result>(
  next: (request: Request) => Promise<Result>,
): { next: (request: Request) => Promise<Result>; thrown: Set<unknown> } {
  const thrown = new Set<unknown>();
  return {
    thrown,
    next: async (request) => {
      try {
        return await next(request);
      } catch (error) {
        thrown.add(error);
        throw error;
      }
    },
  };
}
