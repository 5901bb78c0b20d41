import { silentLogger, type Logger } from "../../core/logger.ts";
import { failureFacts } from "./failure-facts.ts";

/** Longest pause a provider may ask for before the call is given up instead. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * Decides after a failed attempt whether the next one may succeed: throws the error when not. Tried again
 * are rate limits, overload, server errors, lost connections and timeouts; never a cancelled call, a
 * refused request or a used-up quota. A pause the provider asks for is kept.
 */
export function retryPolicy(log: Logger = silentLogger): (error: unknown) => void {
  return (error) => {
    const facts = failureFacts(error);
    const pause = facts.retryAfterMs ?? 0;
    if (!facts.retryable || pause > LONGEST_PAUSE_MS) throw error;
    // The caller of this hook waits for at least `retryAfterMs` of the error before the next attempt.
    if (pause > 0) Object.assign(error as object, { retryAfterMs: pause }); // facts with a pause come from objects
    log.warn("model_call_retried", { reason: facts.reason, status: facts.status, pauseMs: pause });
  };
}
