/** Files of one machine that keep runs, memories and checkpoints. */
import { join } from "node:path";
import { systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { RUN_MIGRATIONS } from "../../runs/sql/schema.ts";
import type { Storage } from "../storage.ts";
import { CHECKPOINT_MIGRATIONS } from "./checkpoints/schema.ts";
import { GroupCommit, writeLogInThread } from "./commit.ts";
import { type Database, type DatabaseOptions, openDatabaseInTurns } from "./database.ts";
import { STORE_MIGRATIONS } from "./memories/database.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import { sqliteRuns } from "./runs/repository.ts";

/** Opens the files of the data directory, and makes those that are missing. @throws StorageError */
export async function openSqlite(dataDir: string, logger: Logger): Promise<Storage> {
  const opened: Database[] = [];
  const open = async (file: string, options?: DatabaseOptions): Promise<Database> => {
    const database = await openDatabaseInTurns(join(dataDir, file), options);
    opened.push(database);
    return database;
  };
  const logs: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(logs.map((end) => end()));
    await Promise.all(opened.map((database) => GroupCommit.of(database).settled()));
    for (const database of opened.toReversed()) database.close();
  };
  try {
    const runs = await open("deepagent.db");
    const checkpoints = await open("checkpoints.db", { synchronous: "NORMAL" });
    const components = [
      [runs, "runs", RUN_MIGRATIONS],
      [runs, "store", STORE_MIGRATIONS],
      [checkpoints, "checkpoints", CHECKPOINT_MIGRATIONS],
    ] as const;
    for (const [file, name, known] of components) migrate(file, name, known);
    const warn = (error: unknown): void => logger.warn("storage.log_not_written", { error });
    logs.push(...opened.map((one) => writeLogInThread(one, warn)));
    return {
      runs: sqliteRuns(runs),
      clock: systemClock,
      // Servers with the same files are on one machine, and see the same folders.
      enter: async () => [],
      forAgents: async () => {
        const [{ createCheckpointer }, { createStore }, { memoriesInSqlite }, { storeEmbeddings }] =
          await Promise.all([
            import("./checkpoints/checkpointer.ts"),
            import("./memories/store.ts"),
            import("./memories/database.ts"),
            import("../memories/hybrid-search.ts"),
          ]);
        const store = createStore(runs);
        const stores = { checkpointer: createCheckpointer(checkpoints), store };
        return {
          ...stores,
          embeddings: storeEmbeddings(memoriesInSqlite(runs), () => store),
          of: () => stores,
        };
      },
      isOutdated: () => components.some(([file, name, known]) => schemaVersion(file, name) > known.length),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
