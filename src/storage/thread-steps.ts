import type { Statement, Transaction } from "better-sqlite3";
import { type SerializerProtocol, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { Database } from "./database.ts";

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

interface StepRow {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  number: number;
  time: string;
}

interface MessagesRow {
  checkpoint_id: string;
  type: string | null;
  value: Uint8Array;
}

/** A checkpoint of a thread, or with `null` its newest, and those it was made from. */
const CHAIN = `
WITH RECURSIVE chain (depth, id, parent) AS (
  SELECT * FROM (
    SELECT 0, checkpoint_id, parent_checkpoint_id FROM checkpoints
    WHERE thread_id = @thread AND checkpoint_ns = '' AND (@checkpoint IS NULL OR checkpoint_id = @checkpoint)
    ORDER BY checkpoint_id DESC LIMIT 1
  )
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent
)`;

/** Of input alone there is nothing yet in the channels. */
const STEPS = `${CHAIN}
SELECT c.checkpoint_id, c.parent_checkpoint_id, CAST(c.metadata AS TEXT) ->> '$.step' AS number,
  CAST(c.checkpoint AS TEXT) ->> '$.ts' AS time
FROM chain JOIN checkpoints AS c ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.id
WHERE CAST(c.metadata AS TEXT) ->> '$.source' <> 'input'
ORDER BY chain.depth DESC`;

const MESSAGES = `${CHAIN}
SELECT w.checkpoint_id, w.type, w.value FROM chain CROSS JOIN writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = chain.id
WHERE w.channel = 'messages' ORDER BY w.checkpoint_id, w.task_id, w.idx`;

const COPY_CHECKPOINTS = `
INSERT OR REPLACE INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
${CHAIN}
SELECT @target, '', c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, c.metadata
FROM chain JOIN checkpoints AS c ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.id`;

/**
 * What was written after an earlier checkpoint made the next one, and has no place behind a copy of it. Of
 * the newest, results of calls that had ended go along, but not what waits for an answer.
 */
const COPY_WRITES = `
INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
${CHAIN}
SELECT @target, '', w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.value
FROM chain CROSS JOIN writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = chain.id
WHERE chain.depth > 0 OR (
  w.channel NOT IN (SELECT value FROM json_each(@unfinished))
  AND w.checkpoint_id =
    (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')
)`;

/** Some of it may be used by later steps of the source only. */
const COPY_BLOB_USES = `
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT @target, '', blob FROM checkpoint_blob_uses WHERE thread_id = @thread AND checkpoint_ns = ''`;

const OLDEST = `${CHAIN} SELECT parent FROM chain ORDER BY depth DESC LIMIT 1`;

const THREADS = `
WITH RECURSIVE found (id) AS (
  SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints UNION ALL SELECT min(thread_id) FROM packed_checkpoints
  )
  UNION ALL
  SELECT (SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints WHERE thread_id > found.id
    UNION ALL SELECT min(thread_id) FROM packed_checkpoints WHERE thread_id > found.id
  )) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL`;

/** Errors, requests and answers: a task with other writes has finished. */
const UNFINISHED = JSON.stringify(Object.keys(WRITES_IDX_MAP));
/** Values revived between two turns of the event loop. */
const VALUES_PER_TURN = 64;

interface Place {
  thread: string;
  checkpoint: string | null;
}

/** The history of threads: which steps are kept, and copies of threads as they were at one. */
export class ThreadSteps {
  readonly #serde: SerializerProtocol;
  readonly #steps: Statement<[Place], StepRow>;
  readonly #messages: Statement<[Place], MessagesRow>;
  readonly #threads: Statement<[], string>;
  readonly #copy: Transaction<(place: Place & { target: string }) => "copied" | "gone" | "incomplete">;

  constructor(database: Database, serde: SerializerProtocol) {
    this.#serde = serde;
    this.#steps = database.prepare(STEPS);
    this.#messages = database.prepare(MESSAGES);
    const checkpoints = database.prepare<[Place & { target: string }]>(COPY_CHECKPOINTS);
    const writes = database.prepare<[Place & { target: string; unfinished: string }]>(COPY_WRITES);
    const uses = database.prepare<[{ thread: string; target: string }]>(COPY_BLOB_USES);
    const oldest = database.prepare<[Place], { parent: string | null }>(OLDEST);
    this.#threads = database.prepare<[], string>(THREADS).pluck();
    this.#copy = database.transaction(({ target, ...place }) => {
      const begin = oldest.get(place);
      if (begin === undefined) return "gone";
      if (begin.parent !== null) return "incomplete";
      uses.run({ thread: place.thread, target });
      writes.run({ ...place, target, unfinished: UNFINISHED });
      checkpoints.run({ ...place, target });
      return "copied";
    });
  }

  /** Oldest first. */
  async of(threadId: string): Promise<ThreadStep[]> {
    const place = { thread: threadId, checkpoint: null };
    const added = new Map<string, unknown[]>();
    for (const [index, { checkpoint_id, type, value }] of this.#messages.all(place).entries()) {
      if (index > 0 && index % VALUES_PER_TURN === 0) await new Promise(setImmediate);
      const values = added.get(checkpoint_id) ?? [];
      values.push(await this.#serde.loadsTyped(type ?? "json", value));
      added.set(checkpoint_id, values);
    }
    return this.#steps.all(place).map((row) => ({
      number: row.number,
      checkpointId: row.checkpoint_id,
      time: Date.parse(row.time),
      messages: added.get(row.parent_checkpoint_id ?? "") ?? [],
    }));
  }

  /** `gone`: there is no such checkpoint. `incomplete`: some it was made from are packed; nothing was copied. */
  copy(source: string, target: string, checkpointId?: string): "copied" | "gone" | "incomplete" {
    return this.#copy.immediate({ thread: source, target, checkpoint: checkpointId ?? null });
  }

  /** One look-up per thread, however many checkpoints each has. */
  threads(): string[] {
    return this.#threads.all();
  }
}
