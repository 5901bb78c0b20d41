import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import { monotonicClock } from "../../core/clock.ts";
import { DeepAgentError, errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { fill } from "../../core/text.ts";
import type { ModelHandler, ModelRequest } from "../contracts/middleware.ts";
import { type FailureFacts, failureFacts } from "./failure.ts";
import { modelName } from "./reply.ts";
import { LazyModel, type ModelSource } from "./resolve.ts";
import texts from "./texts.json" with { type: "json" };

/** Time during which a failed model is skipped, so that not every call waits for its retries. */
const REST_MS = 60_000;
/** And at most, whatever its provider asks for. */
const LONGEST_REST_MS = 3_600_000;
/** Failures that another model may not have, by their consequence for the failed one. */
const FALLBACK_REASONS: ReadonlySet<string> = new Set(
  "model_unavailable model_rate_limited model_not_found model_stream_broken".split(" "),
);

/**
 * Calls the next model of a list when one cannot answer: it is not reachable, limited, unknown to its
 * provider, lacks a feature, or broke off in the middle of its answers. Other failures would meet every model, or are the
 * person's to mend, and pass. While there are models to turn to, each gets a few tries; when all have
 * failed, the first that may yet answer is waited for. `models`: in their order, after the agent's model.
 */
export function modelFallbackMiddleware(models: readonly ModelSource[], log: Logger, clock = monotonicClock) {
  const spares = models.map((model) => new LazyModel(model));
  /** Until when a model is passed over. */
  const resting = new WeakMap<BaseChatModel, number>();

  const usable = async (lazy: LazyModel): Promise<BaseChatModel | undefined> => {
    const model = await lazy.get().catch((error: unknown) => {
      log.warn("fallback_model_unusable", { reason: errorMessage(error) });
    });
    return model && (resting.get(model) ?? 0) <= clock() ? model : undefined;
  };

  const wrapModelCall = async (request: ModelRequest, next: ModelHandler): Promise<AIMessage> => {
    const failures: Array<{ of: BaseChatModel; error: unknown; facts: FailureFacts; reason: string }> = [];
    for (const lazy of [new LazyModel(request.model), ...spares]) {
      const model = await usable(lazy);
      if (model === undefined || failures.some(({ of }) => of === model)) continue;
      const last = failures.at(-1);
      if (last) {
        const { of, facts, reason } = last;
        const [from, to] = [modelName(of), modelName(model)];
        const http = facts.status === undefined ? "" : `, HTTP ${facts.status}`;
        log.warn("model_fallback", { from, to, reason });
        const message = fill(texts.fellBack, from, reason, http, to);
        request.runtime.step.tell({ kind: "warning", message });
      }
      try {
        return await next({ ...request, model, hasSpare: true });
      } catch (error) {
        const facts = failureFacts(error);
        const reason = error instanceof DeepAgentError ? error.code : facts.reason;
        const isOther = FALLBACK_REASONS.has(reason) || facts.kind === "unsupported";
        if (request.runtime.signal?.aborted || !isOther) throw error;
        failures.push({ of: model, error, facts, reason });
        // After a broken answer the next one may be whole: its model is asked again.
        const restMs = Math.min(Math.max(REST_MS, facts.retryAfterMs ?? 0), LONGEST_REST_MS);
        if (facts.reason !== "model_stream_broken") resting.set(model, clock() + restMs);
      }
    }
    const last = failures.at(-1);
    // All have failed a moment ago: the first is waited for.
    if (last === undefined) return next(request);
    const isPatient = request.runtime.step.budget.limits.modelPatienceMs !== 0;
    const waitedFor = isPatient ? failures.find(({ facts }) => facts.retryable) : undefined;
    if (waitedFor === undefined) throw last.error;
    return next({ ...request, model: waitedFor.of });
  };

  return { name: "ModelFallbackMiddleware", wrapModelCall };
}
