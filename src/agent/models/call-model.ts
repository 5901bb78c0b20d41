import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { monotonicClock, pause } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { ordinal } from "../../core/text.ts";
import type { ModelRequest } from "../middleware/middleware.ts";
import { agentPath, emit, meterOf, type Scope, traceOf } from "../step.ts";
import { problemOf } from "./failure.ts";
import { type FailureFacts, failureFacts } from "./failure-facts.ts";
import { joinStream } from "./joined-stream.ts";
import { modelName } from "./reply.ts";

/** How long a failed call is tried again when the agent has no limit of its own, in milliseconds. */
const PATIENCE_MS = 60_000;
/** The same while another model is ready to take over. */
const SPARE_PATIENCE_MS = 5_000;
/** The first pause between two tries, and the longest; each is twice the one before. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;

/** Keeps LangChain's packages from retrying by themselves; some read it here only, not where they are built. */
export interface OneTry {
  maxRetries: 0;
}

/**
 * Calls a model. This is the only place where a failed call is tried again: after growing pauses, while the
 * failure may pass, until the patience of the agent is over (`limits.modelPatienceMs`). Each retry is told to
 * whoever watches, each try to whoever traces the run. Nothing of a broken answer is used.
 *
 * @throws what the model threw last; the reason of the signal, at once, when the run is stopped in a pause.
 */
export async function callModel(
  { model, hasSpare }: Pick<ModelRequest, "model" | "hasSpare">,
  ask: (options: OneTry) => Promise<unknown>,
  { scope, log }: { scope: Scope; log: Logger },
): Promise<AIMessage> {
  const { modelPatienceMs = PATIENCE_MS } = meterOf(scope, {}).limits;
  const patienceMs = hasSpare ? Math.min(modelPatienceMs, SPARE_PATIENCE_MS) : modelPatienceMs;
  let givenUpAt: number | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(scope, model, ask);
    } catch (error) {
      if (scope.signal?.aborted || error instanceof DeepAgentError) throw error;
      const facts = failureFacts(error);
      const now = monotonicClock();
      givenUpAt ??= now + patienceMs;
      const pauseMs = pauseAfter(facts, { attempt, leftMs: givenUpAt - now, chance: Math.random() });
      if (pauseMs === undefined) throw error;
      const { reason, status } = facts;
      const seconds = Math.ceil(pauseMs / 1000);
      const message = `${problemOf(facts)}, trying again in ${seconds} s (${ordinal(attempt)} time)`;
      log.warn("model_call_retried", { model: modelName(model), reason, status, attempt, pauseMs });
      const told = { model: modelName(model), reason, message, attempt, pauseMs };
      emit(scope, { kind: "model_retry", agent: agentPath(scope), ...told });
      await pause(pauseMs, scope.signal);
    }
  }
}

/**
 * How long to wait before a call that failed is made again, in milliseconds. `undefined`: it is given up.
 * `chance`, from 0 to 1, spreads the tries of agents that failed together; the pause that the provider asks for
 * is never cut short.
 */
export function pauseAfter(
  { retryable, retryAfterMs = 0 }: Pick<FailureFacts, "retryable" | "retryAfterMs">,
  { attempt, leftMs, chance }: { attempt: number; leftMs: number; chance: number },
): number | undefined {
  if (!retryable || leftMs <= 0 || retryAfterMs > leftMs) return undefined;
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  const own = Math.min((longest * (1 + chance)) / 2, leftMs);
  return Math.ceil(Math.max(own, retryAfterMs));
}

async function callOnce(
  scope: Scope,
  model: BaseChatModel,
  ask: (options: OneTry) => Promise<unknown>,
): Promise<AIMessage> {
  joinStream(model);
  const trace = traceOf(scope)?.modelCall(agentPath(scope), model);
  try {
    const reply = await ask({ maxRetries: 0 });
    if (!AIMessage.isInstance(reply)) {
      throw new Error("The model answered with something that is not an assistant message.");
    }
    trace?.answered(reply);
    return reply;
  } catch (error) {
    trace?.failed(error);
    throw error;
  }
}
