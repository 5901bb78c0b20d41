/** A place in the order of writes. */
export interface Turn {
  /** Resolves when all earlier writes of the same items are done, well or not. */
  readonly come: Promise<unknown>;
  /** Lets later ones go on. */
  readonly done: () => void;
}

/** Writes of one item happen in the order they were asked for, however long each takes to prepare. */
export class ItemTurns {
  readonly #last = new Map<string, Promise<void>>();

  /** A place behind all that were taken for any of these items. */
  take(items: ReadonlySet<string>): Turn {
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
