/** Runs in Postgres: its engine, and what Postgres does in a way of its own. */
import type { Pool, PoolConfig } from "pg";
import { ConfigurationError } from "../../core/errors.ts";
import type { RunRepository } from "../../runs/ports.ts";
import { StoredRuns } from "../sql/repository.ts";
import { postgresEngine } from "./engine.ts";
import { postgresError } from "./errors.ts";
import { assertWritable, planPrune, prune, statistics } from "./housekeeping.ts";
import { ChangeNews } from "./news.ts";
import { migratePostgres } from "./schema.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host/database`, with TLS as `pg` takes it. */
  url: string;
  /** Of this server's tables. Default `deepagent`. */
  schema?: string;
  /** Most connections of this process, besides the one that listens. Default 10. */
  connections?: number;
}

export interface PostgresRuns {
  runs: RunRepository;
  /** For what stores checkpoints and memories, which load more and are made when they are needed. */
  pool: Pool;
  close(): Promise<void>;
}

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPostgres(options: PostgresOptions): Promise<PostgresRuns> {
  const { url, schema = "deepagent", connections = 10 } = options;
  if (!SCHEMA.test(schema)) {
    throw new ConfigurationError(
      "INVALID_CONFIG",
      "The name of a Postgres schema has lowercase letters, digits and _ only, at most 40.",
    );
  }
  const { default: pg } = await import("pg");
  const config: PoolConfig = {
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "deepagent-mcp",
    // Numbers of ours are below 2 to the power of 53.
    types: {
      getTypeParser: (type, format) =>
        type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format),
    },
    options: `-c search_path=${schema} -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s`,
  };
  const pool = new pg.Pool(config);
  // An idle connection that breaks is replaced by the next query.
  pool.on("error", () => undefined);
  try {
    await migratePostgres(pool, schema);
  } catch (thrown) {
    await pool.end();
    throw postgresError(thrown);
  }
  const news = new ChangeNews(pool, () => new pg.Client(config), schema);
  const runs = new StoredRuns(postgresEngine(pool), {
    prune: (...args) => prune(pool, ...args),
    planPrune: (...args) => planPrune(pool, ...args),
    statistics: () => statistics(pool),
    assertWritable: () => assertWritable(pool),
    changed: (runId) => news.tell(runId),
    watchOthers: (listener) => news.listen(listener),
  });
  return {
    runs,
    pool,
    close: async () => {
      await news.close();
      await pool.end();
    },
  };
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Short enough to be a part of other names in Postgres, and the same with and without quotes. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,39}$/;
