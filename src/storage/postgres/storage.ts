/** A Postgres that any number of servers share. */
import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { StoredRuns } from "../sql/repository.ts";
import type { SharedStorage } from "../storage.ts";
import { postgresEngine, query, translated } from "./engine.ts";
import { assertWritable, planPrune, prune, statistics } from "./housekeeping.ts";
import { ChangeNews } from "./news.ts";
import { type PostgresOptions, openPool } from "./pool.ts";
import { rateStore } from "./rates.ts";
import { isNewer } from "./schema.ts";
import { sessionStore } from "./sessions.ts";
import { ServerList } from "./servers.ts";
import { streamStore } from "./streams.ts";

/** How often a server asks Postgres for the time and for the version of the tables, in milliseconds. */
const ASK_MS = 10_000;

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPostgres({
  logger,
  ...options
}: PostgresOptions & { logger: Logger }): Promise<SharedStorage> {
  const { pool, schema, newClient } = await openPool(options);
  const news = new ChangeNews(pool, newClient, schema);
  const facts = await SharedFacts.open(pool, logger);
  const servers = new ServerList(pool, logger);
  return {
    runs: new StoredRuns(postgresEngine(pool), {
      prune: (...args) => translated(() => prune(pool, ...args)),
      planPrune: (...args) => translated(() => planPrune(pool, ...args)),
      statistics: () => translated(async () => ({ ...(await statistics(pool)), ...news.lag() })),
      assertWritable: () => translated(() => assertWritable(pool)),
      changed: (runId) => news.tell(runId),
      watchOthers: (listener) => news.listen(listener),
    }),
    clock: facts.clock,
    isOutdated: () => facts.isOutdated,
    forAgents: async () => {
      const [{ PostgresCheckpointer }, { PostgresStore }, embedding, { storeEmbeddings }] = await Promise.all(
        [
          import("./checkpoints/checkpointer.ts"),
          import("./memories/store.ts"),
          import("./memories/embedding-index.ts"),
          import("../memories/hybrid-search.ts"),
        ],
      );
      const { clock } = facts;
      const store = new PostgresStore(pool, { clock });
      const embeddings = storeEmbeddings(
        store,
        (embedder) => new embedding.PostgresEmbeddingIndex(pool, embedder, clock),
        (options) => embedding.forgetUnusedModels(pool, options),
      );
      return { checkpointer: new PostgresCheckpointer(pool), store, embeddings };
    },
    sessions: sessionStore(pool, news),
    rates: rateStore(pool),
    enter: (environment) => servers.enter(environment),
    openStreams: async () => streamStore(pool),
    secret: (name) => secret(pool, name),
    close: async () => {
      facts.close();
      await servers.leave();
      await news.close();
      await pool.end();
    },
  };
}

/** The first server that asks makes it. */
async function secret(pool: Pool, name: string): Promise<Uint8Array> {
  const made = { name, value: randomBytes(32) };
  await query(pool, "INSERT INTO secrets (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING", made);
  const [row] = await query<{ value: Uint8Array }>(pool, "SELECT value FROM secrets WHERE name = @name", {
    name,
  });
  return row?.value ?? made.value;
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
