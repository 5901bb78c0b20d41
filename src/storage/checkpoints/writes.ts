/** Checkpoints and writes of tasks on their way into a database and out of it. */
import { isDeepStrictEqual } from "node:util";
import {
  type Checkpoint,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
  maxChannelVersion,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { mapAtMost } from "../../core/concurrency.ts";
import type { GraphAddress } from "./address.ts";

export interface WriteRow {
  task_id: string;
  channel: string;
  type: string | null;
  value: Uint8Array | string | null;
}

/** Channels of errors, requests and answers: a task with other writes has finished. */
export const UNFINISHED_CHANNELS = Object.keys(WRITES_IDX_MAP);

/** Decodes writes in their order, so many at a time; a long history lets other work run in between. */
export async function revive(
  rows: readonly WriteRow[],
  serde: Pick<SerializerProtocol, "loadsTyped">,
  atOnce = 1,
): Promise<CheckpointPendingWrite[]> {
  let [values, bytes] = [0, 0];
  return mapAtMost(atOnce, rows, async ({ task_id, channel, type, value }) => {
    if (values >= 64 || bytes >= 200_000) {
      [values, bytes] = [0, 0];
      await new Promise(setImmediate);
    }
    values += 1;
    bytes += value?.length ?? 0;
    return [task_id, channel, await serde.loadsTyped(type ?? "json", value ?? "")];
  });
}

/** Before version 4, checkpoints had the tasks to start among the writes of the one before: `writes`. */
export function addSends(
  checkpoint: Checkpoint,
  writes: readonly CheckpointPendingWrite[],
  first: () => number,
): void {
  const sends = writes.filter(([, channel]) => channel === TASKS);
  checkpoint.channel_values[TASKS] = sends.map(([, , value]) => value);
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : first();
}

/** True if a checkpoint has all of these facts; `undefined` facts are ignored. */
export function hasMetadata({ metadata }: CheckpointTuple, wanted: Readonly<Record<string, unknown>>) {
  const facts: Record<string, unknown> = { ...metadata };
  return Object.entries(wanted).every(
    ([key, value]) => value === undefined || isDeepStrictEqual(facts[key], value),
  );
}

/**
 * A promise that may be awaited late. A rejection before that does not end the process, also not of a promise that
 * is chained to it; whoever awaits it still gets the rejection.
 */
export class ObservedPromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

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

/** Marks the promise as handled. Calling `catch` would make one more promise to handle. */
const observe = (promise: Promise<unknown>): void =>
  void Promise.prototype.then.call(promise, undefined, () => undefined);

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

/** Channel of writes that count only until the next checkpoint: the calls of a program that has not ended. */
export const PASSING = "__deepagent_program";

/** Knows which checkpoints have such writes, so that those can be deleted when the next checkpoint is stored. */
export class PassingWrites {
  readonly #places = new Set<string>();

  /** `writes`: to a checkpoint, with or without their tasks. */
  note(graph: GraphAddress, checkpoint: string, writes: readonly (readonly unknown[] | PendingWrite)[]) {
    if (writes.some((write) => write.includes(PASSING))) this.#places.add(checkpointKey(graph, checkpoint));
  }

  /** True once for a checkpoint that has such writes. */
  take(graph: GraphAddress, checkpoint: string | undefined): checkpoint is string {
    return checkpoint !== undefined && this.#places.delete(checkpointKey(graph, checkpoint));
  }
}

const checkpointKey = ({ thread, namespace }: GraphAddress, checkpoint: string): string =>
  JSON.stringify([thread, namespace, checkpoint]);
