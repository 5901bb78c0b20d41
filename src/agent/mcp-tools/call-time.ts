/**
 * The time that a server has for a call. It begins now, and stands still while a person is asked. `signal` ends the
 * call too.
 */
export function callTimer(ms: number, signal: AbortSignal) {
  const own = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  /** Questions that the time stands still for. */
  let open = 0;
  /** Does nothing while a question is open, or once the call has ended. */
  const restart = (): void => {
    clearTimeout(timer);
    if (open > 0 || own.signal.aborted) return;
    // The client's package uses this code for a request without an answer.
    const late = new Error(`Request timed out after ${ms} ms`);
    timer = setTimeout(() => own.abort(Object.assign(late, { code: "REQUEST_TIMEOUT" })), ms);
  };
  restart();
  return {
    signal: AbortSignal.any([signal, own.signal]),
    restart,
    /** Stands still until all that is `asked` is answered. */
    async during<T>(asked: Promise<T>): Promise<T> {
      open += 1;
      clearTimeout(timer);
      return asked.finally(() => {
        open -= 1;
        restart();
      });
    },
    /** Ends the call, and withdraws the questions that it still asks. */
    end(reason?: Error): void {
      clearTimeout(timer);
      own.abort(reason);
    },
  };
}
