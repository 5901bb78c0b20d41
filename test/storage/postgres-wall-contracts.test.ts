// @module-tag long
import * as vitest from "vitest";
import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import { silentLogger as logger } from "../../src/core/logger.ts";
import type { Access } from "../../src/storage/postgres/access.ts";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints/checkpointer.ts";
import {
  PostgresEmbeddingIndex,
  forgetUnusedModels,
} from "../../src/storage/postgres/memories/embedding-index.ts";
import { PostgresStore } from "../../src/storage/postgres/memories/store.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";
import { type KeptVectors, embeddingsContract } from "./embeddings.contract.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { runRepositoryContract } from "./run-repository.contract.ts";
import { storeContract } from "./store.contract.ts";
import { streamStoreContract } from "./stream-store.contract.ts";

const { describe } = vitest;
const tags = "postgres";

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

    runRepositoryContract("Postgres", async () => {
      const { connect, close } = data();
      return { connect: async () => (await connect()).runs, close };
    });
    streamStoreContract("Postgres", async () => {
      const { connect, close } = data();
      return { connect: async () => (await connect()).openStreams(), close };
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
    storeContract("as LangGraph's stores", async () => new PostgresStore((await open()).within(EVERYWHERE)));
  });

  describe("memories and their vectors", { tags }, () => {
    const open = walled();
    memoryStoreContract(
      "Postgres",
      async (options) => new PostgresStore((await open()).within(EVERYWHERE), options),
    );
    let schemas = 0;
    const keptIn = async (schema: string): Promise<KeptVectors> => {
      const access = await open(schema);
      return {
        store: new PostgresStore(access.within(EVERYWHERE)),
        indexOf: (embedder, clock) => new PostgresEmbeddingIndex(access, embedder, clock),
        forgetUnused: (options) => forgetUnusedModels(access, options),
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
