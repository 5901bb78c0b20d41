/** A Postgres that any number of servers share. */
import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { storedRuns } from "../../runs/sql/repository.ts";
import type { AgentStorage, SharedStorage } from "../storage.ts";
import { type Access, NOW, postgresEngine, query, translated, sendable } from "./engine.ts";
import { type ObjectPlace, LargeObjects, assertPlace, sweepObjects } from "./checkpoints/objects.ts";
import { assertWritable, prune, storedBytes } from "./housekeeping.ts";
import { ChangeNews } from "./news.ts";
import { type PostgresOptions, openPool } from "./pool.ts";
import { sessionStore } from "./sessions.ts";
import { isNewer } from "./schema.ts";
import { secret, streamStore } from "./streams.ts";
import type { SharedState } from "../../runs/server-ports.ts";

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPostgres(
  given: PostgresOptions & { logger: Logger; largeValues?: ObjectPlace | undefined },
): Promise<SharedStorage> {
  const { logger, largeValues, ...options } = given;
  const { access, schema, newClient } = await openPool(options);
  const { pool } = access;
  const news = new ChangeNews(pool, newClient, schema);
  const facts = await sharedFacts(access, logger);
  const servers = serverList(access, logger);
  const objects = largeValues && new LargeObjects(access, largeValues);
  const engine = postgresEngine(access);
  return {
    runs: storedRuns(engine, {
      prune: async (retention, context) => {
        const report = await translated(() => prune(pool, engine, retention, context));
        if (objects !== undefined) {
          const swept = sweepObjects(access, objects, context.signal);
          await swept.catch((error: unknown) => logger.warn("storage.s3_not_swept", { error }));
        }
        return report;
      },
      storedBytes: () => translated(() => storedBytes(pool)),
      assertWritable: () => translated(() => assertWritable(pool)),
      changed: (runId) => news.tell(runId),
      lag: () => news.lag(),
      watchOthers: (listener) => news.listen(listener),
    }),
    clock: facts.clock,
    isOutdated: facts.isOutdated,
    forAgents: () => agentStorage(access, objects, facts.clock),
    sessions: sessionStore(access),
    rates: rateStore(access),
    enter: async (environment) => {
      await assertPlace(access, objects, logger);
      return servers.enter(environment);
    },
    tryLargeValues: async () => {
      await assertPlace(access, objects, logger);
      await objects?.tryOut();
    },
    openStreams: async () => streamStore(access),
    secret: (name) => secret(access, name),
    close: async () => {
      facts.close();
      await servers.leave();
      await news.close();
      await objects?.close();
      await pool.end();
    },
  };
}

/** Loads LangGraph. */
async function agentStorage(
  access: Access,
  objects: LargeObjects | undefined,
  clock: Clock,
): Promise<AgentStorage> {
  const [{ PostgresCheckpointer }, { StoredMemories }, { memoriesInPostgres }, { storeEmbeddings }] =
    await Promise.all([
      import("./checkpoints/checkpointer.ts"),
      import("../memories/store.ts"),
      import("./memories/database.ts"),
      import("../memories/hybrid-search.ts"),
    ]);
  const memories = memoriesInPostgres(access);
  // Housekeeping sweeps, and no write of a principal.
  const store = new StoredMemories(memories, { clock, ttl: { sweepIntervalMinutes: Infinity } });
  const checkpointer = new PostgresCheckpointer(access, objects);
  return {
    checkpointer,
    store,
    embeddings: storeEmbeddings(memories, (namespace) => store.within(namespace), clock),
    of: (principal, memories) => ({
      checkpointer: checkpointer.of(principal),
      store: store.within(memories),
    }),
  };
}

/** Facts that all servers on one Postgres share, asked for now and then. */
async function sharedFacts(access: Access, logger: Logger) {
  /** Milliseconds that the clock of Postgres is ahead of ours. */
  let ahead = 0;
  let isOutdated = false;
  const ask = async (): Promise<void> => {
    const before = systemClock();
    const [row] = await query<{ now: number }>(access, `SELECT ${NOW} AS now`);
    const after = systemClock();
    const difference = (row?.now ?? after) - (before + after) / 2;
    // A difference within the time of the answer is not significant.
    ahead = Math.abs(difference) <= (after - before) / 2 + 1 ? 0 : Math.round(difference);
    isOutdated = await isNewer(access);
  };
  const timer = setInterval(() => {
    ask().catch((error: unknown) => logger.warn("storage.not_asked", { error }));
    // Interval at which a server asks Postgres for the time and for the version of the tables, in ms.
  }, 10_000).unref();
  await ask();
  return {
    /** The time of Postgres: leases of one server end for the others when they end for it. */
    clock: () => systemClock() + ahead,
    isOutdated: () => isOutdated,
    close: () => clearInterval(timer),
  };
}

const rateStore = (access: Access): SharedState["rates"] => ({
  spend: async (spent, perMinute) => {
    const values = { keys: [...spent.keys()].map(sendable), counts: [...spent.values()], perMinute };
    // Rows are locked in the order of their keys. What several servers allowed at once is owed, for a minute at most.
    const sql = `
INSERT INTO rate_buckets AS bucket (key, tokens, filled)
SELECT key, @perMinute::float8 - sum(count), ${NOW}
FROM unnest(@keys::text[], @counts::float8[]) AS spent(key, count) GROUP BY key ORDER BY key
ON CONFLICT (key) DO UPDATE SET filled = excluded.filled, tokens = greatest(-@perMinute::float8, excluded.tokens
  + least(0, bucket.tokens - @perMinute::float8
    + greatest(0, excluded.filled - bucket.filled) * @perMinute::float8 / 60000))
RETURNING key, tokens`;
    const left = await query<{ key: string; tokens: number }>(access, sql, values);
    // After two minutes every bucket is full, which is as good as none.
    await query(access, `DELETE FROM rate_buckets WHERE filled < ${NOW} - 120000`);
    return new Map(left.map(({ key, tokens }) => [key, tokens]));
  },
});

const SAY = `
INSERT INTO servers (id, environment, seen_at) VALUES (@id, @environment, ${NOW})
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING number`;

/** Announces this server to the others until it leaves. */
function serverList(access: Access, logger: Logger) {
  const id = randomUUID();
  let timer: NodeJS.Timeout | undefined;
  return {
    /** Reports from now on that this server works there. Returns the environments of the servers before it. */
    enter: async (environment: string): Promise<string[]> => {
      const [own] = await query<{ number: number }>(access, SAY, { id, environment });
      timer ??= setInterval(() => {
        const said = query(access, SAY, { id, environment });
        // The next time, or another server that ended, is soon enough for either.
        said.catch((error: unknown) => logger.debug("storage.not_said", { error }));
      }, 10_000).unref();
      await query(access, `DELETE FROM servers WHERE seen_at <= ${NOW} - @holds`, { holds: 30_000 });
      const others = `SELECT DISTINCT environment FROM servers WHERE number < @number`;
      const rows = await query<{ environment: string }>(access, others, { number: own?.number ?? 0 });
      return rows.map((row) => row.environment);
    },
    leave: async (): Promise<void> => {
      clearInterval(timer);
      if (timer === undefined) return;
      // A server that cannot report this is dropped after a while.
      await query(access, "DELETE FROM servers WHERE id = @id", { id }).catch(() => undefined);
    },
  };
}
