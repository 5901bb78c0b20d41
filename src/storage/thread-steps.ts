import type { Statement } from "better-sqlite3";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { ownTurn } from "../core/turns.ts";
import type { Database } from "./database.ts";
import { bytesOf } from "./packed-checkpoints.ts";
import type { Link, ThreadChain } from "./thread-chain.ts";

/** A step on the way to the newest checkpoint of a thread. */
export interface ThreadStep {
  /** LangGraph's number of the step: grows along the thread. */
  number: number;
  checkpointId: string;
  /** Milliseconds since the epoch. */
  time: number;
  /** What the step added to the channel `messages`, one value for each task. */
  messages: unknown[];
}

interface StepFacts {
  number: number;
  source: string;
  time: string;
}
interface MessageWrite {
  type: string | null;
  value: Uint8Array | string;
}

const FACTS = `
SELECT CAST(metadata AS TEXT) ->> '$.step' AS number, CAST(metadata AS TEXT) ->> '$.source' AS source,
  CAST(checkpoint AS TEXT) ->> '$.ts' AS time
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?`;

const MESSAGES = `
SELECT type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = 'messages'
ORDER BY task_id, idx`;

const THREADS = `
WITH RECURSIVE found (id) AS (
  SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints WHERE thread_id > @after
    UNION ALL SELECT min(thread_id) FROM packed_checkpoints WHERE thread_id > @after
  )
  UNION ALL
  SELECT (SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints WHERE thread_id > found.id
    UNION ALL SELECT min(thread_id) FROM packed_checkpoints WHERE thread_id > found.id
  )) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL LIMIT @limit`;

/** Threads looked up between two turns of the event loop. */
const THREADS_PER_TURN = 500;
/** Steps read between two turns of the event loop. */
const STEPS_PER_TURN = 16;

/** The history of threads: which steps are kept. */
export class ThreadSteps {
  readonly #serde: SerializerProtocol;
  readonly #chain: ThreadChain;
  readonly #facts: Statement<[string, string], StepFacts>;
  readonly #messages: Statement<[string, string], MessageWrite>;
  readonly #threads: Statement<[{ after: string; limit: number }], string>;

  constructor(database: Database, serde: SerializerProtocol, chain: ThreadChain) {
    this.#serde = serde;
    this.#chain = chain;
    this.#facts = database.prepare(FACTS);
    this.#messages = database.prepare(MESSAGES);
    this.#threads = database.prepare<[{ after: string; limit: number }], string>(THREADS).pluck();
  }

  /** Oldest first. */
  async of(thread: string): Promise<ThreadStep[]> {
    const steps: ThreadStep[] = [];
    /** What was written at the checkpoint before makes the step. */
    let messages: unknown[] = [];
    const chain = (await this.#chain.to(thread, undefined)).reverse();
    for (const [index, { id, parent }] of chain.entries()) {
      if (index % STEPS_PER_TURN === STEPS_PER_TURN - 1) await ownTurn();
      const link = chain[index]?.packed ? chain[index] : await this.#chain.find(thread, id);
      if (link === undefined) continue; // deleted meanwhile
      const { number, source, time } = this.#factsOf(thread, link);
      // Of input alone there is nothing yet in the channels.
      if (source !== "input") {
        steps.push({
          number,
          checkpointId: id,
          time: Date.parse(time),
          messages: parent === null ? [] : messages,
        });
      }
      messages = await this.#messagesAt(thread, link);
    }
    return steps;
  }

  #factsOf(thread: string, { id, packed }: Link): StepFacts {
    if (packed === undefined) return this.#facts.get(thread, id) ?? { number: 0, source: "input", time: "" };
    // As LangGraph wrote them; of rows SQL reads the same.
    const { step, source } = JSON.parse(packed.metadata) as { step: number; source: string };
    return { number: step, source, time: (JSON.parse(packed.checkpoint) as { ts: string }).ts };
  }

  #messagesAt(thread: string, { id, packed }: Link): Promise<unknown[]> {
    const writes: MessageWrite[] =
      packed?.writes
        .filter(([, , channel]) => channel === "messages")
        .map(([, , , type, value]) => ({ type, value: bytesOf(type, value) })) ??
      this.#messages.all(thread, id);
    return Promise.all(writes.map(({ type, value }) => this.#serde.loadsTyped(type ?? "json", value)));
  }

  /** One look-up per thread, however many checkpoints each has. */
  async threads(): Promise<string[]> {
    const threads: string[] = [];
    for (;;) {
      const some = this.#threads.all({ after: threads.at(-1) ?? "", limit: THREADS_PER_TURN });
      // One by one: there may be more than a call takes arguments.
      for (const id of some) threads.push(id);
      if (some.length < THREADS_PER_TURN) return threads;
      await ownTurn();
    }
  }
}
