import type { GraphAddress } from "./address.ts";

/** Results of tasks that are being stored, or could not be. No checkpoint may follow one whose results are missing. */
export class TaskResults {
  /** By thread, then by checkpoint, then by task. */
  readonly #threads = new Map<string, Map<string, Map<string, Promise<void>>>>();

  /**
   * Keeps a result until it is stored. A failed one stays until the thread is taken again or the result is added again.
   */
  add({ thread, namespace }: GraphAddress, checkpoint: string, task: string, stored: Promise<void>): void {
    const checkpoints = this.#threads.get(thread) ?? new Map<string, Map<string, Promise<void>>>();
    const key = resultKey(namespace, checkpoint);
    const tasks = checkpoints.get(key) ?? new Map<string, Promise<void>>();
    this.#threads.set(thread, checkpoints.set(key, tasks.set(task, stored)));
    const forget = (): void => {
      if (tasks.get(task) === stored) tasks.delete(task);
      if (tasks.size === 0 && checkpoints.get(key) === tasks) checkpoints.delete(key);
      if (checkpoints.size === 0 && this.#threads.get(thread) === checkpoints) this.#threads.delete(thread);
    };
    stored.then(forget, () => undefined);
  }

  /** The results that a checkpoint after this one has to wait for. */
  of({ thread, namespace }: GraphAddress, checkpoint: string | undefined): Promise<void>[] {
    return [...(this.#threads.get(thread)?.get(resultKey(namespace, checkpoint))?.values() ?? [])];
  }

  /** Drops results that an earlier claim of the thread could not store. */
  startOver(thread: string): void {
    this.#threads.delete(thread);
  }
}

const resultKey = (namespace: string, checkpoint = ""): string =>
  `${namespace.length}:${namespace}${checkpoint}`;
