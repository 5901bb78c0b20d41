/**
 * A promise that may be waited for late. What is chained to it counts as observed, so that a rejection in
 * between does not end the process; whoever waits gets it all the same.
 */
export class ObservedPromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** The outcome of `promise`. */
  static of<T>(promise: Promise<T>): ObservedPromise<T> {
    const observed = new ObservedPromise<T>((resolve, reject) => void promise.then(resolve, reject));
    observe(observed);
    return observed;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a subclass of Promise is one
  override then<Fulfilled = T, Rejected = never>(
    onFulfilled?: ((value: T) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    const next = super.then(onFulfilled, onRejected);
    observe(next);
    return next;
  }
}

/** Not by `catch`, which would observe what it makes, too. */
const observe = (promise: Promise<unknown>): void =>
  void Promise.prototype.then.call(promise, undefined, () => undefined);
