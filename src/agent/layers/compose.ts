/** Nests the layers of an agent around its model, and runs their hooks. */
import { SystemMessage } from "@langchain/core/messages";
import type {
  AgentRuntime,
  HookName,
  Middleware,
  ModelHandler,
  ModelRequest,
} from "../contracts/middleware.ts";
import type { AgentState, JumpTarget, StateUpdate } from "../contracts/state.ts";
import { foldMessages, textOf } from "../messages/messages.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { mergeUpdates } from "../budget/meter.ts";

export const composeModelCall = (stack: readonly Middleware[], call: ModelHandler): ModelHandler =>
  stack.reduceRight<ModelHandler>((inner, layer) => {
    const wrap = layer.wrapModelCall?.bind(layer);
    if (!wrap) return inner;
    return (request) => wrap(request, (changed) => inner(withOneSystemPrompt(request, changed)));
  }, call);

/** A request as it leaves the stack, with its system prompt in one message. */
export function finishRequest(stack: readonly Middleware[], request: ModelRequest): ModelRequest {
  const { closingPrompt, ...finished } = stack.reduce(
    (changed, layer) => layer.finishRequest?.(changed) ?? changed,
    request,
  );
  return closingPrompt === undefined ? finished : appendSystemPrompt(finished, closingPrompt);
}

/** Runs hooks: `before*` first to last, `after*` last to first, each on the changes before it, until one jumps. */
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
    // Leaves out values that a hook returned unchanged with the whole state; they would be added twice.
    const isEcho = ([channel, value]: [string, unknown]): boolean =>
      typeof value === "object" && value !== null && value === current[channel];
    const update: StateUpdate = Object.fromEntries(Object.entries(changes).filter((entry) => !isEcho(entry)));
    updates.push(update);
    // The state for later hooks of the same round; the channels' reducers get the merged update once.
    const { messages, files, ...rest } = update;
    current = {
      ...current,
      ...rest,
      messages: messages ? foldMessages(current.messages, [messages]) : current.messages,
      files: files ? { ...current.files, ...files } : current.files,
    };
    if (jumpTo) return { update: mergeUpdates(updates), state: current, jumpTo };
  }
  return { update: mergeUpdates(updates), state: current };
}

/** Returns a function that reports a warning about the run once, and only for the main agent. */
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
  const { systemMessage, systemPrompt } = after;
  if (systemMessage !== before.systemMessage) return { ...after, systemPrompt: textOf(systemMessage) };
  if (systemPrompt === before.systemPrompt) return after;
  return { ...after, systemMessage: new SystemMessage(systemPrompt) };
}
