/** A place in the order of writes. */
export interface WriteTurn {
  /** Resolves when all earlier writes of the same items are done, well or not. */
  readonly come: Promise<unknown>;
  /** Lets later writes go on. */
  readonly done: () => void;
}

/** Keeps the writes of one item in the order of their calls, however long each takes to prepare. */
export class ItemTurns {
  readonly #last = new Map<string, Promise<void>>();

  /** Takes a place after all earlier ones of any of these items. */
  take(items: ReadonlySet<string>): WriteTurn {
    const before = [...items].flatMap((item) => this.#last.get(item) ?? []);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    for (const item of items) this.#last.set(item, ended);
    const done = (): void => {
      end();
      for (const item of items) if (this.#last.get(item) === ended) this.#last.delete(item);
    };
    return { come: Promise.all(before), done };
  }
}
