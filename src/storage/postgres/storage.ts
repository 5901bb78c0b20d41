/** A Postgres that any number of servers share. */
import type { Pool } from "pg";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { StoredRuns } from "../sql/repository.ts";
import type { AgentStorage, SharedStorage } from "../storage.ts";
import { postgresEngine, query, translated } from "./engine.ts";
import { type ObjectPlace, LargeObjects, assertPlace, sweepObjects } from "./checkpoints/objects.ts";
import { assertWritable, planPrune, prune, statistics } from "./housekeeping.ts";
import { ChangeNews } from "./news.ts";
import { type PostgresOptions, openPool } from "./pool.ts";
import { rateStore } from "./rates.ts";
import { isNewer } from "./schema.ts";
import { sessionStore } from "./sessions.ts";
import { ServerList } from "./servers.ts";
import { secret, streamStore } from "./streams.ts";

/** How often a server asks Postgres for the time and for the version of the tables, in milliseconds. */
const ASK_MS = 10_000;

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPostgres({
  logger,
  largeValues,
  ...options
}: PostgresOptions & { logger: Logger; largeValues?: ObjectPlace | undefined }): Promise<SharedStorage> {
  const { pool, schema, newClient } = await openPool(options);
  const news = new ChangeNews(pool, newClient, schema);
  const facts = await SharedFacts.open(pool, logger);
  const servers = new ServerList(pool, logger);
  const objects = largeValues && new LargeObjects(pool, largeValues);
  return {
    runs: new StoredRuns(postgresEngine(pool), {
      prune: async (retention, context) => {
        const report = await translated(() => prune(pool, retention, context));
        if (objects !== undefined) {
          const swept = sweepObjects(pool, objects, context.signal);
          await swept.catch((error: unknown) => logger.warn("storage.s3_not_swept", { error }));
        }
        return report;
      },
      planPrune: (...args) => translated(() => planPrune(pool, ...args)),
      statistics: () => translated(async () => ({ ...(await statistics(pool)), ...news.lag() })),
      assertWritable: () => translated(() => assertWritable(pool)),
      changed: (runId) => news.tell(runId),
      watchOthers: (listener) => news.listen(listener),
    }),
    clock: facts.clock,
    isOutdated: () => facts.isOutdated,
    forAgents: () => agentStorage(pool, objects, facts.clock),
    sessions: sessionStore(pool, news),
    rates: rateStore(pool),
    enter: async (environment) => {
      await assertPlace(pool, objects, logger);
      return servers.enter(environment);
    },
    tryLargeValues: async () => {
      await assertPlace(pool, objects, logger);
      await objects?.tryOut();
    },
    openStreams: async () => streamStore(pool),
    secret: (name) => secret(pool, name),
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
  pool: Pool,
  objects: LargeObjects | undefined,
  clock: Clock,
): Promise<AgentStorage> {
  const [{ PostgresCheckpointer }, { PostgresStore }, embedding, { storeEmbeddings }] = await Promise.all([
    import("./checkpoints/checkpointer.ts"),
    import("./memories/store.ts"),
    import("./memories/embedding-index.ts"),
    import("../memories/hybrid-search.ts"),
  ]);
  const store = new PostgresStore(pool, { clock });
  const embeddings = storeEmbeddings(
    store,
    (embedder) => new embedding.PostgresEmbeddingIndex(pool, embedder, clock),
    (options) => embedding.forgetUnusedModels(pool, options),
  );
  return { checkpointer: new PostgresCheckpointer(pool, objects), store, embeddings };
}

/** What all servers on one Postgres have to agree on, asked for now and then. */
class SharedFacts {
  readonly #pool: Pool;
  readonly #timer: NodeJS.Timeout;
  /** Milliseconds that the clock of Postgres is ahead of ours. */
  #ahead = 0;
  #isOutdated = false;

  private constructor(pool: Pool, logger: Logger) {
    this.#pool = pool;
    this.#timer = setInterval(() => {
      this.#ask().catch((error: unknown) => logger.warn("storage.not_asked", { error }));
    }, ASK_MS).unref();
  }

  static async open(pool: Pool, logger: Logger): Promise<SharedFacts> {
    const facts = new SharedFacts(pool, logger);
    await facts.#ask();
    return facts;
  }

  /** The time of Postgres: leases of one server end for the others when they end for it. */
  readonly clock: Clock = () => systemClock() + this.#ahead;

  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  async #ask(): Promise<void> {
    const before = systemClock();
    const [row] = await query<{ now: number }>(
      this.#pool,
      "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now",
    );
    const after = systemClock();
    const ahead = (row?.now ?? after) - (before + after) / 2;
    // A difference within the time of the answer says nothing.
    this.#ahead = Math.abs(ahead) <= (after - before) / 2 + 1 ? 0 : Math.round(ahead);
    this.#isOutdated = await isNewer(this.#pool);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
