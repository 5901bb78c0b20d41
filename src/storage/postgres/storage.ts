/** A Postgres that any number of servers share. */
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { StoredRuns } from "../sql/repository.ts";
import type { AgentStorage, SharedStorage } from "../storage.ts";
import type { Access } from "./access.ts";
import { postgresEngine, query, translated } from "./engine.ts";
import { type ObjectPlace, LargeObjects, assertPlace, sweepObjects } from "./checkpoints/objects.ts";
import { assertWritable, findOrphans, prune, storedBytes } from "./housekeeping.ts";
import { ChangeNews } from "./news.ts";
import { type PostgresOptions, openPool } from "./pool.ts";
import { rateStore } from "./rates.ts";
import { isNewer } from "./schema.ts";
import { sessionStore } from "./sessions.ts";
import { ServerList } from "./servers.ts";
import { secret, streamStore } from "./streams.ts";

/** Interval at which a server asks Postgres for the time and for the version of the tables, in ms. */
const ASK_MS = 10_000;

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPostgres({
  logger,
  largeValues,
  ...options
}: PostgresOptions & { logger: Logger; largeValues?: ObjectPlace | undefined }): Promise<SharedStorage> {
  const { access, schema, newClient } = await openPool(options);
  const { pool } = access;
  const news = new ChangeNews(pool, newClient, schema);
  const facts = await SharedFacts.open(access, logger);
  const servers = new ServerList(access, logger);
  const objects = largeValues && new LargeObjects(access, largeValues);
  return {
    runs: new StoredRuns(postgresEngine(access), {
      prune: async (retention, context) => {
        const report = await translated(() => prune(pool, retention, context));
        if (objects !== undefined) {
          const swept = sweepObjects(access, objects, context.signal);
          await swept.catch((error: unknown) => logger.warn("storage.s3_not_swept", { error }));
        }
        return report;
      },
      storedBytes: () => translated(() => storedBytes(pool)),
      orphans: (checkpoints) => translated(() => findOrphans(pool, checkpoints)),
      assertWritable: () => translated(() => assertWritable(pool)),
      changed: (runId) => news.tell(runId),
      lag: () => news.lag(),
      watchOthers: (listener) => news.listen(listener),
    }),
    clock: facts.clock,
    isOutdated: () => facts.isOutdated,
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
  const [
    { PostgresCheckpointer },
    { StoredMemories },
    { memoriesInPostgres },
    { EmbeddingIndex, forgetUnusedModels },
    { storeEmbeddings },
  ] = await Promise.all([
    import("./checkpoints/checkpointer.ts"),
    import("../memories/store.ts"),
    import("./memories/database.ts"),
    import("../memories/embedding-index.ts"),
    import("../memories/hybrid-search.ts"),
  ]);
  const memories = memoriesInPostgres(access);
  // Housekeeping sweeps, and no write of a principal.
  const store = new StoredMemories(memories, { clock, ttl: { sweepIntervalMinutes: Infinity } });
  const checkpointer = new PostgresCheckpointer(access, objects);
  const embeddings = storeEmbeddings(
    (namespace) => store.within(namespace),
    (embedder) => new EmbeddingIndex(memories, embedder, clock),
    (options) => forgetUnusedModels(memories, options),
  );
  return {
    checkpointer,
    store,
    embeddings,
    of: (principal, memories) => ({
      checkpointer: checkpointer.of(principal),
      store: store.within(memories),
    }),
  };
}

/** Facts that all servers on one Postgres share, asked for now and then. */
class SharedFacts {
  readonly #access: Access;
  readonly #timer: NodeJS.Timeout;
  /** Milliseconds that the clock of Postgres is ahead of ours. */
  #ahead = 0;
  #isOutdated = false;

  private constructor(access: Access, logger: Logger) {
    this.#access = access;
    this.#timer = setInterval(() => {
      this.#ask().catch((error: unknown) => logger.warn("storage.not_asked", { error }));
    }, ASK_MS).unref();
  }

  static async open(access: Access, logger: Logger): Promise<SharedFacts> {
    const facts = new SharedFacts(access, logger);
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
      this.#access,
      "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now",
    );
    const after = systemClock();
    const ahead = (row?.now ?? after) - (before + after) / 2;
    // A difference within the time of the answer says nothing.
    this.#ahead = Math.abs(ahead) <= (after - before) / 2 + 1 ? 0 : Math.round(ahead);
    this.#isOutdated = await isNewer(this.#access);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
