/** The time that a server has for a call. It stands still while a person is asked. */
export class CallTime {
  readonly signal: AbortSignal;
  readonly #own = new AbortController();
  readonly #ms: number;
  #timer: NodeJS.Timeout | undefined;
  /** Questions that the time stands still for. */
  #open = 0;

  /** The time begins now. `signal` ends the call too. */
  constructor(ms: number, signal: AbortSignal) {
    this.#ms = ms;
    this.signal = AbortSignal.any([signal, this.#own.signal]);
    this.restart();
  }

  /** Stands still until all that is `asked` is answered. */
  async during<T>(asked: Promise<T>): Promise<T> {
    this.#open += 1;
    this.stop();
    return asked.finally(() => {
      this.#open -= 1;
      this.restart();
    });
  }

  /** Does nothing while a question is open, or once the call has ended. */
  restart(): void {
    this.stop();
    if (this.#open > 0 || this.#own.signal.aborted) return;
    // The client's package uses this code for a request without an answer.
    const late = new Error(`Request timed out after ${this.#ms} ms`);
    const reason = Object.assign(late, { code: "REQUEST_TIMEOUT" });
    this.#timer = setTimeout(() => this.#own.abort(reason), this.#ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the call, and withdraws the questions that it still asks. */
  end(reason?: Error): void {
    this.stop();
    this.#own.abort(reason);
  }
}
