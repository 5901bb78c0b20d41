/** Values by key, of which only the `most` that were kept last stay. */
export class NewestOf<Value> extends Map<string, Value> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** Makes `value` the newest, and removes the oldest one beyond the limit. */
  keep(key: string, value: Value): void {
    this.delete(key);
    this.set(key, value);
    const [oldest] = this.keys();
    if (this.size > this.#most && oldest !== undefined) this.delete(oldest);
  }
}
