/** The pause between attempts to connect to a server that failed, so that it is not asked by each use of its tools. */
import { type Clock, durationText } from "../../core/clock.ts";
import { McpUnavailableError, httpStatusOf } from "./failure-reasons.ts";

const FIRST_MS = 1000;
const LONGEST_MS = 60_000;

export class RetryPause {
  readonly #clock: Clock;
  #failures = 0;
  #until = 0;
  #reason: unknown;

  /** `clock`: for durations. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins or lengthens the pause. A server that wants a log-in gets none: the log-in may come from any process. */
  failed(error: unknown): void {
    if (httpStatusOf(error) === 401) return this.end();
    this.#failures += 1;
    this.#until = this.#clock() + Math.min(FIRST_MS * 2 ** (this.#failures - 1), LONGEST_MS);
    this.#reason = error;
  }

  end(): void {
    this.#failures = 0;
    this.#until = 0;
    this.#reason = undefined;
  }

  /** The last failure, and when the next attempt is made; `undefined` if one may be made now. */
  problem(reasonOf: (error: unknown) => string): McpUnavailableError | undefined {
    const left = this.#until - this.#clock();
    if (left <= 0) return undefined;
    const wait = durationText(Math.ceil(left / 1000) * 1000);
    return new McpUnavailableError(`${reasonOf(this.#reason)}; the next attempt is in ${wait}`, {
      cause: this.#reason,
    });
  }
}
