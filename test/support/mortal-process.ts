import type { Checkpoint, CheckpointMetadata, PendingWrite } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  AgentEvent,
  CallIdentity,
  EffectLog,
  EventSink,
  StepEvent,
  StoredOutcome,
} from "../../src/agent/agent.ts";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { DurableSaver } from "../../src/storage/sqlite/checkpoints/saver.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";

/** When a process ends: after so many steps, killed at once or told to stop by its signal. */
export interface End {
  steps: number;
  how: "kill" | "abort";
}

/**
 * A process that ends in the middle of its work. Whatever leaves a trace outside counts as two steps,
 * before and after it; once killed, nothing leaves a trace any more and nobody hears an error.
 */
export class MortalProcess {
  readonly #controller = new AbortController();
  readonly #end: End | undefined;
  readonly #closing: Array<() => void> = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #steps = 0;
  #isDead = false;
  #tellDeath: () => void = () => undefined;
  /** Settles when the process is killed. */
  readonly died = new Promise<void>((resolve) => (this.#tellDeath = resolve));

  constructor(end?: End) {
    this.#end = end;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was killed or told to stop. */
  get isEnded(): boolean {
    return this.#isDead || this.signal.aborted;
  }

  /** Resolves when nothing that was begun is under way any more, as far as it ends by itself. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Does something that leaves a trace; of a process that was killed before or meanwhile, never settles. */
  trace<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#isOver()) return new Promise(() => undefined);
    const done = new Promise<T>((resolve) => resolve(work()));
    this.#underWay.add(done);
    void done.catch(() => undefined).finally(() => this.#underWay.delete(done));
    return new Promise((resolve, reject) => {
      done.then(
        (value) => this.#isOver() || resolve(value),
        (error: unknown) => this.#isDead || reject(error),
      );
    });
  }

  /** Adds events to `events`, each of which leaves a trace. */
  journal(events: AgentEvent[]): EventSink {
    const waiting: StepEvent[] = [];
    return {
      tell: (event) => void waiting.push(event),
      stored: async () => {
        for (const event of waiting.splice(0)) await this.trace(() => events.push(event));
      },
    };
  }

  /** A checkpointer with a connection of its own, which is lost with the process; `stored` is told what tasks wrote. */
  checkpointer(file: string, stored: (writes: PendingWrite[]) => void): SqliteCheckpointer {
    const database = openDatabase(file, { synchronous: "NORMAL" });
    this.#closing.push(() => database.close());
    createCheckpointer(database); // makes the tables
    return new MortalCheckpointer(database, this, stored);
  }

  /** Ends what is left of it. */
  close(): void {
    this.#isDead = true;
    for (const close of this.#closing.splice(0)) close();
  }

  #isOver(): boolean {
    this.#steps += 1;
    if (this.#steps === this.#end?.steps) {
      if (this.#end.how === "abort") this.#controller.abort(new Error("told to stop"));
      else {
        this.close();
        this.#tellDeath();
      }
    }
    return this.#isDead;
  }
}

class MortalCheckpointer extends DurableSaver {
  private readonly process: MortalProcess;
  private readonly stored: (writes: PendingWrite[]) => void;

  constructor(
    database: ReturnType<typeof openDatabase>,
    process: MortalProcess,
    stored: (writes: PendingWrite[]) => void,
  ) {
    super(database);
    this.process = process;
    this.stored = stored;
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    return this.process.trace(() => super.put(config, checkpoint, metadata));
  }

  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    return this.process.trace(async () => {
      await super.putWrites(config, writes, taskId);
      this.stored(writes);
    });
  }
}

/** What a log of effects keeps, by the call's identity. */
export type StoredEffects = Map<string, { outcome?: StoredOutcome; handle?: Uint8Array }>;

/** The log of effects as a process sees it. */
export function effectLogOf(process: MortalProcess, known: StoredEffects): EffectLog {
  const key = (call: CallIdentity): string => JSON.stringify(call);
  return {
    find: (call) => process.trace(() => known.get(key(call))),
    begin: (call) =>
      process.trace(() => {
        if (known.has(key(call))) throw new Error("begun already");
        known.set(key(call), {});
      }),
    finish: (call, outcome) => process.trace(() => void known.set(key(call), { outcome })),
    keep: (call, handle) => process.trace(() => void known.set(key(call), { handle })),
    withdraw: (call) => process.trace(() => void known.delete(key(call))),
  };
}
