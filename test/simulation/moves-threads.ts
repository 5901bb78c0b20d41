/** The conversations of agents that make moves, as checkpoints have them: whatever a server wrote before it ended. */
import { FencedOffError, type FencingToken } from "../../src/runs/thread-ports.ts";
import type { Part } from "./moves.ts";
import { type Place, later } from "./virtual-machine.ts";

/** By the run that works, or worked, in the thread. */
export type Parts = Map<string, Part>;

/** A thread that a server has taken. */
export interface TakenThread {
  readonly parts: Parts;
  /** Carries out a change of the parts. Throws `FencedOffError` once another server has taken the thread. */
  write(change: () => void): Promise<void>;
}

export interface MovesThreads {
  startOver(place: Place, threadId: string, token: FencingToken): Promise<void>;
  open(place: Place, threadId: string): Promise<TakenThread>;
  delete(threadId: string): Promise<void>;
  ids(): Promise<string[]>;
}

/** Threads in the memory that all servers of a simulated world share. */
export class ThreadsInMemory implements MovesThreads {
  readonly #threads = new Map<string, { token: FencingToken | undefined; parts: Parts }>();
  /** The token that a server took a thread with, by both. */
  readonly #taken = new Map<string, FencingToken>();

  #of(id: string) {
    const known = this.#threads.get(id) ?? { token: undefined, parts: new Map() };
    this.#threads.set(id, known);
    return known;
  }

  async startOver({ name }: Place, threadId: string, token: FencingToken): Promise<void> {
    await later();
    const thread = this.#of(threadId);
    if (thread.token !== undefined && isEarlier(token, thread.token)) throw new FencedOffError(threadId);
    thread.token = token;
    this.#taken.set(`${name} ${threadId}`, token);
    await later();
  }

  async open({ name }: Place, threadId: string): Promise<TakenThread> {
    const thread = this.#of(threadId);
    const token = this.#taken.get(`${name} ${threadId}`);
    const write = async (change: () => void): Promise<void> => {
      if (thread.token !== token) throw new FencedOffError(threadId);
      change();
      await later();
    };
    return { parts: thread.parts, write };
  }

  async delete(threadId: string): Promise<void> {
    await later();
    this.#threads.delete(threadId);
  }

  ids = async (): Promise<string[]> => [...this.#threads.keys()];
  all = (): Parts[] => [...this.#threads.values()].map(({ parts }) => parts);
}

const isEarlier = (one: FencingToken, other: FencingToken): boolean =>
  one.run < other.run || (one.run === other.run && one.claim < other.claim);

/** Tokens that threads count for these runs. */
export const tokensIn = (threads: readonly Parts[], runIds: readonly string[]): number =>
  threads
    .flatMap((parts) => [...parts])
    .reduce((sum, [runId, { tokens }]) => sum + (runIds.includes(runId) ? tokens : 0), 0);

/** All messages from outside in threads. */
export const messagesIn = (threads: readonly Parts[]) =>
  threads
    .flatMap((parts) => [...parts])
    .flatMap(([runId, { inbox }]) =>
      [...inbox.values()].map(({ text, from }) => ({ text, from: from?.threadId, runId })),
    );
