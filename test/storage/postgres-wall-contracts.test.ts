// @module-tag long
import * as vitest from "vitest";
import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import pg from "pg";
import { silentLogger as logger } from "../../src/core/logger.ts";
import type { Access } from "../../src/storage/postgres/engine.ts";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints/checkpointer.ts";
import { EmbeddingIndex, forgetUnusedModels } from "../../src/storage/memories/embedding-index.ts";
import { StoredMemories } from "../../src/storage/memories/store.ts";
import { memoriesInPostgres } from "../../src/storage/postgres/memories/database.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import { TABLES_OF_RUN } from "../../src/runs/sql/schema.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";
import { type KeptVectors, embeddingsContract } from "./embeddings.contract.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { type RunData, runRepositoryContract } from "./run-repository.contract.ts";
import { newsRepositoryContract } from "./news-repository.contract.ts";
import { childrenRepositoryContract } from "./children-repository.contract.ts";
import { scheduleRepositoryContract } from "./schedule-repository.contract.ts";
import { storeContract } from "./store.contract.ts";
import { streamStoreContract } from "./stream-store.contract.ts";

const { afterAll, beforeAll, describe, expect, test } = vitest;
const tags = "postgres";

/** What goes over the runs of all principals: the queue and leases, schedules, numbers, what is too old, the wall itself. */
const OWN_WORK = [
  "SELECT id FROM runs WHERE environment =",
  "WITH RECURSIVE waiting (principal)",
  "SELECT principal, count(*) AS count FROM runs WHERE lease_owner",
  "SELECT * FROM runs WHERE number = $1 AND environment =",
  "UPDATE runs SET lease_owner = $1, lease_epoch = lease_epoch + 1",
  // In the transaction of a claim, of a run that was broken off.
  "UPDATE runs SET last_seq = last_seq + 1",
  "INSERT INTO run_events",
  "SELECT environment FROM runs",
  "SELECT id, principal, number +",
  "SELECT id, lease_epoch AS epoch, status FROM runs WHERE lease_owner =",
  'SELECT id AS "runId", lease_owner AS owner',
  "UPDATE runs SET lease_expires_at",
  "UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL WHERE id = $1 AND lease_epoch = $2 AND heartbeat_at",
  "SELECT questions.*, principal FROM questions JOIN runs ON runs.id = run_id WHERE questions.status = 'pending'",
  "SELECT count(*) AS waiting, min(updated_at) AS since FROM runs",
  "SELECT count(*) AS count FROM runs",
  "SELECT status, count(*) AS count, max(number) AS last FROM ( SELECT status, number FROM runs",
  "SELECT count(*) AS count FROM questions",
  "SELECT count(*) FROM",
  // For the operator, of all principals.
  "SELECT id, thread_id, principal, environment, task, status, created_at, updated_at, last_seq, name, lease_expires_at, runnable, schedule_id, schedule_name, occurrence FROM runs WHERE number <",
  // The wall would refuse a row that is no longer the principal's.
  "UPDATE runs SET principal = '', idempotency_key = NULL, ended_at = -1, unapplied = 0 WHERE id = $1 AND principal = $2",
  "UPDATE runs SET principal = '', idempotency_key = NULL, ended_at = -1, unapplied = 0 WHERE parent_id =",
  // Whoever follows a link to a run is not known before its row is.
  "SELECT s.*, r.principal FROM run_shares AS s",
  "SELECT id FROM unnest($1::text[]) AS id WHERE id NOT IN ( SELECT id FROM threads",
  "SELECT id, thread_id FROM runs WHERE ended_at <",
  ...[...TABLES_OF_RUN.map((table) => `${table} WHERE run_id`), "runs WHERE id"].map(
    (rows) => `DELETE FROM ${rows} IN (SELECT value FROM jsonb_array_elements_text($1::jsonb))`,
  ),
  "SELECT id, thread_id FROM runs WHERE parent_id IN (SELECT value FROM jsonb_array_elements_text($1::jsonb))",
  "DELETE FROM threads WHERE id IN (SELECT value FROM jsonb_array_elements_text($1::jsonb))",
  "DELETE FROM runs WHERE false",
  "SELECT * FROM schedules WHERE environment =",
  "SELECT DISTINCT principal FROM schedules",
  "SELECT min(due_at) AS next FROM schedules WHERE environment =",
  // News go to the operator.
  "SELECT count(*) AS count FROM run_events",
  "SELECT target, min(due_at)",
  "UPDATE news_deliveries SET",
  "DELETE FROM news_deliveries WHERE",
  "SELECT e.run_id, e.seq, e.time, e.agent, e.kind, e.data, r.thread_id, r.name, r.task, r.schedule_name FROM run_events AS e JOIN runs AS r ON r.id = e.run_id WHERE e.run_id =",
  "SELECT * FROM news_subscriptions WHERE id = $1",
  "SELECT id FROM news_subscriptions WHERE expires_at >",
  "SELECT d.*, r.name, r.task FROM news_deliveries",
  "SELECT pg_advisory_xact_lock(7310518093242); DROP POLICY",
];

/** Of all memories: every encoded namespace begins so. */
const EVERYWHERE = '"';

describe("behind the second wall", () => {
  describe("what runs and servers keep", { tags }, () => {
    const { url, newSchema, newRole } = postgresSuite();
    const data = () => {
      const schema = newSchema();
      const opened: SharedStorage[] = [];
      const connect = async (): Promise<SharedStorage> => {
        const role = await newRole();
        opened.push(await openPostgres({ url: url(), schema, connections: 3, logger, role }));
        return opened.at(-1)!;
      };
      return { connect, close: async () => void (await Promise.all(opened.map((one) => one.close()))) };
    };

    const own = recordOwnStatements();
    const openData = async (): Promise<RunData> => {
      const { connect, close } = data();
      return { connect: async () => (await connect()).runs, close };
    };
    runRepositoryContract("Postgres", openData);
    scheduleRepositoryContract("Postgres", openData);
    childrenRepositoryContract("Postgres", openData);
    newsRepositoryContract("Postgres", openData);
    streamStoreContract("Postgres", async () => {
      const { connect, close } = data();
      return { connect: async () => (await connect()).openStreams(), close };
    });
    test("without a principal nothing is done but the server's own work", () => {
      const others = [...own()].filter((text) => !OWN_WORK.some((begin) => text.startsWith(begin)));
      expect(others).toEqual([]);
    });
  });

  describe("checkpoints", { tags }, async () => {
    const open = walled();
    let schemas = 0;
    checkpointsContract("Postgres", async () => {
      const schema = `shared_${(schemas += 1)}`;
      const connect = async () => new PostgresCheckpointer(ownThreads(await open(schema))).of("me");
      return { connect, close: async () => undefined };
    });
    // All in one schema, one after the other.
    let opened: Promise<Access> | undefined;
    const initializer: CheckpointSaverTestInitializer<PostgresCheckpointer> = {
      // So it leaves out the one test that asks for a table of values per channel.
      checkpointerName: "@langchain/langgraph-checkpoint-sqlite",
      createCheckpointer: async () => {
        opened ??= open().then(ownThreads);
        return new PostgresCheckpointer(await opened).of("me");
      },
      destroyCheckpointer: async () => {
        const tables = ["checkpoints", "checkpoint_writes", "checkpoint_blobs", "thread_fences", "threads"];
        for (const table of tables) await (await opened)?.pool.query(`DELETE FROM ${table}`);
      },
    };
    Object.assign(globalThis, vitest);
    const { validate, deltaChannelHistoryTests } = await import("@langchain/langgraph-checkpoint-validation");
    validate(initializer);
    deltaChannelHistoryTests(initializer);
  });

  describe("memories", { tags }, () => {
    const open = walled();
    storeContract(
      "as LangGraph's stores",
      async () => new StoredMemories(memoriesInPostgres((await open()).within(EVERYWHERE))),
    );
  });

  describe("memories and their vectors", { tags }, () => {
    const open = walled();
    memoryStoreContract(
      "Postgres",
      async (options) => new StoredMemories(memoriesInPostgres((await open()).within(EVERYWHERE)), options),
    );
    let schemas = 0;
    const keptIn = async (schema: string): Promise<KeptVectors> => {
      const access = await open(schema);
      return {
        store: new StoredMemories(memoriesInPostgres(access.within(EVERYWHERE))),
        indexOf: (embedder, clock) => new EmbeddingIndex(memoriesInPostgres(access), embedder, clock),
        forgetUnused: (options) => forgetUnusedModels(memoriesInPostgres(access), options),
        again: () => keptIn(schema),
        count: async (table) =>
          (await access.pool.query<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)).rows[0]?.n ?? 0,
        keyOf: async (id) => {
          const sql = "SELECT key FROM store_items WHERE id = $1";
          return (await access.pool.query<{ key: string }>(sql, [id])).rows[0]?.key ?? "";
        },
      };
    };
    embeddingsContract("vectors in Postgres", () => keptIn(`shared_${(schemas += 1)}`));
  });
});

/** Gives the statements on rows of principals that were carried out as the server itself. */
function recordOwnStatements(): () => Set<string> {
  const own = new Set<string>();
  const confined = new WeakSet<object>();
  const { query } = pg.Client.prototype;
  function recorded(this: pg.Client, ...given: [string | { text: string }]): unknown {
    const text = typeof given[0] === "string" ? given[0] : given[0].text;
    if (text.includes("set_config('role'")) confined.add(this);
    if (
      !confined.has(this) &&
      /\b(FROM|INTO|UPDATE) (threads|runs|run_|questions|effects|used_|model_|schedules|schedule_)/.test(text)
    ) {
      own.add(text.replaceAll(/\s+/g, " ").trim());
    }
    if (/^(COMMIT|ROLLBACK)/.test(text)) confined.delete(this);
    return Reflect.apply(query, this, given);
  }
  beforeAll(() => void Object.assign(pg.Client.prototype, { query: recorded }));
  afterAll(() => void Object.assign(pg.Client.prototype, { query }));
  return () => own;
}

/** Opens schemas with a wall, in a server of the `describe` that calls this. */
function walled(): (schema?: string) => Promise<Access> {
  const { url, newSchema, newRole, closeAtEnd } = postgresSuite();
  return async (schema = newSchema()) => {
    const { access } = await openPool({ url: url(), schema, connections: 3, role: await newRole() });
    closeAtEnd(() => access.pool.end());
    return access;
  };
}

/** Makes threads before something is stored in them, as runs do: any text of the statement may be the thread's id. */
function ownThreads(access: Access): Access {
  const { pool } = access;
  const own = `INSERT INTO threads (id, principal, created_at)
    SELECT id, current_setting('deepagent.principal'), 0 FROM unnest($1::text[]) AS id ON CONFLICT DO NOTHING`;
  const connect = pool.connect.bind(pool);
  const patched = new WeakSet<object>();
  const patchedConnect = async (callback?: Parameters<typeof connect>[0]) => {
    // By `pool.query`, which the server itself uses.
    if (callback !== undefined) return connect(callback);
    const client = await connect();
    if (patched.has(client)) return client;
    patched.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    const ownFirst = async (...given: [{ text?: string; values?: unknown[] }, ...unknown[]]) => {
      const [{ text = "", values = [] }] = given;
      if (/INSERT INTO (checkpoint|thread_f)/.test(text)) {
        await query(own, [values.filter((value) => typeof value === "string")]);
      }
      return query(...given);
    };
    return Object.assign(client, { query: ownFirst });
  };
  Object.assign(pool, { connect: patchedConnect });
  return access;
}
