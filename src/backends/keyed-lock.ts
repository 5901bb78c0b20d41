/** Runs one task per key at a time, in order of arrival. Different keys do not wait for each other. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    let release = (): void => {};
    const own = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tail = before.then(() => own);
    this.#tails.set(key, tail);
    await before;
    try {
      return await task();
    } finally {
      release();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}

/**
 * The locks of files, shared by the process, because several backends (one for each run, call or subagent) may work on
 * the same file.
 */
export const fileLocks = new KeyedLock();
