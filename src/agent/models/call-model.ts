/** Calls a model and tries again while its failure may pass. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { monotonicClock, pause } from "../../core/clock.ts";
import { DeepAgentError, RunFailure } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { capital, oneLine } from "../../core/text.ts";
import type { ModelRequest, Step } from "../contracts/middleware.ts";
import { type FailureFacts, failureFacts, describeFailure } from "./failure.ts";
import { findExchange } from "./exchange.ts";
import { isEnd } from "./provider-words.ts";
import { readFinishReason, modelName, withRefusal } from "./reply.ts";
import { ModelStreamBrokenError } from "./stream-guard.ts";
import { readTextReply } from "./text-reply.ts";
import texts from "./texts.json" with { type: "json" };

/**
 * Calls a model. This is the only place that retries a failed call: after growing pauses, while the failure may pass
 * and the agent's patience lasts (`limits.modelPatienceMs`). Nothing of a broken answer is used, but a call of one of
 * `toolNames` that the provider could not read is.
 *
 * @throws the last error of the model; the reason of the signal, at once, when the run is stopped in a pause.
 */
export async function callModel(
  { model, hasSpare }: Pick<ModelRequest, "model" | "hasSpare">,
  ask: Ask,
  {
    step,
    signal,
    log,
    toolNames = [],
  }: { step: Step; signal: AbortSignal | undefined; log: Logger; toolNames?: readonly string[] },
): Promise<AIMessage> {
  // Default retry time of a failed call if the agent has no limit of its own, in ms.
  const { modelPatienceMs = 60_000 } = step.budget.limits;
  const patienceMs = hasSpare ? Math.min(modelPatienceMs, 5_000) : modelPatienceMs;
  let givenUpAt: number | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(step, model, ask);
    } catch (error) {
      if (signal?.aborted || error instanceof DeepAgentError) throw error;
      const facts = failureFacts(error);
      const { refusedCall } = facts;
      if (refusedCall !== undefined && readTextReply(refusedCall, toolNames).calls.length > 0)
        return new AIMessage(refusedCall);
      const now = monotonicClock();
      givenUpAt ??= now + patienceMs;
      // A call that nobody could read was the model's mistake: time changes nothing.
      const pauseMs =
        facts.kind === "call"
          ? [0, 0][attempt - 1]
          : pauseAfter(facts, { attempt, leftMs: givenUpAt - now, chance: Math.random() });
      if (pauseMs === undefined) throw error;
      const message = `${capital(describeFailure(facts, "short"))}. Attempt ${attempt + 1} in ${Math.ceil(pauseMs / 1000)} s.`;
      const told = { model: modelName(model), reason: facts.reason, attempt, pauseMs };
      log.warn("model_call_retried", { ...told, status: facts.status });
      step.tell({ kind: "model_retry", ...told, message });
      await pause(pauseMs, signal);
    }
  }
}

/**
 * Pause before a failed call is retried, in ms; undefined for no retry. `chance`, from 0 to 1, spreads the tries
 * of agents that failed together. The pause that the provider asks for is never cut short.
 */
export function pauseAfter(
  { retryable, retryAfterMs = 0 }: Pick<FailureFacts, "retryable" | "retryAfterMs">,
  { attempt, leftMs, chance }: { attempt: number; leftMs: number; chance: number },
): number | undefined {
  if (!retryable || leftMs <= 0 || retryAfterMs > leftMs) return undefined;
  const longest = Math.min(500 * 2 ** (attempt - 1), 60_000);
  const own = Math.min((longest * (1 + chance)) / 2, leftMs);
  return Math.ceil(Math.max(own, retryAfterMs));
}

/** Keeps LangChain's packages from retrying by themselves; some read it here only, not where they are built. */
type Ask = (options: { maxRetries: 0 }) => Promise<unknown>;

async function callOnce(step: Step, model: BaseChatModel, ask: Ask): Promise<AIMessage> {
  const trace = step.traceModel(model);
  const exchange = findExchange(model);
  try {
    const reply = await ask({ maxRetries: 0 });
    if (!AIMessage.isInstance(reply)) throw new RunFailure("model_error", texts.notAMessage);
    const reason = readFinishReason(reply);
    if (reason !== undefined && !isEnd(reason))
      throw new ModelStreamBrokenError(`the provider ended the answer with '${oneLine(reason, 60)}'`);
    trace?.answered(reply);
    return withRefusal(reply);
  } catch (error) {
    trace?.failed(error);
    throw error;
  } finally {
    for (const message of exchange?.takeNotices() ?? []) step.tell({ kind: "warning", message });
  }
}
