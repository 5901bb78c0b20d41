import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import { type Clock, monotonicClock } from "../../core/clock.ts";
import { DeepAgentError, errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { Middleware, ModelHandler, ModelRequest } from "../contracts/middleware.ts";
import { failureFacts } from "./failure.ts";
import { modelName } from "./reply.ts";
import { LazyModel, type ModelSource } from "./resolve.ts";

export interface FallbackOptions {
  /** Tried in this order after the agent's model. */
  models: readonly ModelSource[];
  log: Logger;
  clock?: Clock;
}

/** Time during which a failed model is skipped, so that not every call waits for its retries. */
const REST_MS = 60_000;
/** And at most, whatever its provider asks for. */
const LONGEST_REST_MS = 3_600_000;
/** Failures that another model may not have, by their consequence for the failed one. */
const REASONS: ReadonlySet<string> = new Set([
  "model_unavailable",
  "model_rate_limited",
  "model_not_found",
  "model_stream_broken",
]);

/**
 * Calls the next model of a list when one cannot answer: it is not reachable, limited, unknown to its
 * provider, or broke off in the middle of its answers. Other failures would meet every model, or are the
 * person's to mend, and pass. While there are models to turn to, each is given a few tries; when all have
 * failed, the first that may yet answer is waited for.
 */
export function modelFallbackMiddleware({
  models,
  log,
  clock = monotonicClock,
}: FallbackOptions): Middleware {
  const chain = new FallbackChain(models, log, clock);
  return {
    name: "ModelFallbackMiddleware",
    wrapModelCall: (request, next) => chain.call(request, next),
  };
}

interface Failure {
  of: BaseChatModel;
  error: unknown;
}

class FallbackChain {
  readonly #models: readonly LazyModel[];
  readonly #log: Logger;
  readonly #clock: Clock;
  /** Until when a model is passed over. */
  readonly #resting = new WeakMap<BaseChatModel, number>();

  constructor(models: readonly ModelSource[], log: Logger, clock: Clock) {
    this.#models = models.map((model) => new LazyModel(model));
    this.#log = log;
    this.#clock = clock;
  }

  async call(request: ModelRequest, next: ModelHandler): Promise<AIMessage> {
    const failures: Failure[] = [];
    for (const lazy of [new LazyModel(request.model), ...this.#models]) {
      const model = await this.#resolve(lazy);
      if (model === undefined || this.#rests(model) || failures.some(({ of }) => of === model)) continue;
      const last = failures.at(-1);
      if (last) this.#tell(request, last, model);
      try {
        return await next({ ...request, model, hasSpare: true });
      } catch (error) {
        failures.push({ of: model, error: this.#passable(error, request) });
        this.#rest(model, error);
      }
    }
    const last = failures.at(-1);
    // All have failed a moment ago: the first is waited for.
    if (last === undefined) return next(request);
    const { modelPatienceMs } = request.runtime.step.budget.limits;
    const waitedFor =
      modelPatienceMs === 0 ? undefined : failures.find(({ error }) => failureFacts(error).retryable);
    if (waitedFor === undefined) throw last.error;
    return next({ ...request, model: waitedFor.of });
  }

  /** The error, if another model may do better. @throws it otherwise. */
  #passable(error: unknown, { runtime }: ModelRequest): unknown {
    const reason = error instanceof DeepAgentError ? error.code : failureFacts(error).reason;
    if (runtime.signal?.aborted || !REASONS.has(reason)) throw error;
    return error;
  }

  /** A broken answer says nothing about the next one: its model is asked again. */
  #rest(model: BaseChatModel, error: unknown): void {
    const { reason, retryAfterMs = 0 } = failureFacts(error);
    if (reason === "model_stream_broken") return;
    this.#resting.set(model, this.#clock() + Math.min(Math.max(REST_MS, retryAfterMs), LONGEST_REST_MS));
  }

  #rests(model: BaseChatModel): boolean {
    return (this.#resting.get(model) ?? 0) > this.#clock();
  }

  async #resolve(lazy: LazyModel): Promise<BaseChatModel | undefined> {
    try {
      return await lazy.get();
    } catch (error) {
      this.#log.warn("fallback_model_unusable", { reason: errorMessage(error) });
      return undefined;
    }
  }

  #tell({ runtime }: ModelRequest, { of, error }: Failure, to: BaseChatModel): void {
    const { reason, status } = failureFacts(error);
    const why = error instanceof DeepAgentError ? error.code : reason;
    const http = status === undefined ? "" : `, HTTP ${status}`;
    const message = `The model ${modelName(of)} could not answer (${why}${http}). The agent continues with ${modelName(to)}.`;
    this.#log.warn("model_fallback", { from: modelName(of), to: modelName(to), reason: why });
    runtime.step.tell({ kind: "warning", message });
  }
}
