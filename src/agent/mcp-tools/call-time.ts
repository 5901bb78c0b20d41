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
    if (this.#open === 0 && !this.#own.signal.aborted)
      this.#timer = setTimeout(() => this.#own.abort(timedOut(this.#ms)), this.#ms);
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

/** Has the code that the client's package uses for a request without an answer. */
const timedOut = (ms: number): Error =>
  Object.assign(new Error(`Request timed out after ${ms} ms`), { code: "REQUEST_TIMEOUT" });
