/** The pause between attempts to connect to a server that failed, so that it is not asked by each use of its tools. */
import { type Clock, durationText } from "../../core/clock.ts";
import { McpUnavailableError, findHttpStatus } from "./failure-reasons.ts";

/** `clock`: for durations. */
export function retryPause(clock: Clock) {
  let last: { failures: number; until: number; reason: unknown } | undefined;
  return {
    /** Begins or lengthens the pause. A server that wants a log-in gets none: the log-in may come from any process. */
    failed(reason: unknown): void {
      const failures = (last?.failures ?? 0) + 1;
      const until = clock() + Math.min(1000 * 2 ** (failures - 1), 60_000);
      last = findHttpStatus(reason) === 401 ? undefined : { failures, until, reason };
    },
    end: (): void => void (last = undefined),
    /** The last failure, and when the next attempt is made; `undefined` if one may be made now. */
    problem(reasonOf: (error: unknown) => string): McpUnavailableError | undefined {
      const { until = 0, reason: cause } = last ?? {};
      const left = until - clock();
      if (left <= 0) return undefined;
      const wait = durationText(Math.ceil(left / 1000) * 1000);
      return new McpUnavailableError(`${reasonOf(cause)}; the next attempt is in ${wait}`, { cause });
    },
  };
}
