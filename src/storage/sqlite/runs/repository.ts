import type { RunRepository } from "../../../runs/ports.ts";
import { storedRuns } from "../../sql/repository.ts";
import type { Database } from "../database.ts";
import { sqliteEngine } from "../engine.ts";
import { assertWritable, prune, storedBytes } from "./housekeeping.ts";
import { textIndex } from "./text-index.ts";

/** Makes the port over `database`, which `RUN_MIGRATIONS` have migrated. The caller closes it after the last use. */
export function sqliteRuns(database: Database): RunRepository {
  const engine = sqliteEngine(database);
  return storedRuns(engine, {
    watchOthers: (listener, pollMs) => {
      // `data_version` changes when another connection commits.
      const read = (): unknown => database.pragma("data_version", { simple: true });
      let version = read();
      const timer = setInterval(() => {
        try {
          const newest = read();
          if (newest === version) return;
          version = newest;
          listener.changedElsewhere();
        } catch (error) {
          listener.failed(error);
        }
      }, pollMs).unref();
      return { close: () => clearInterval(timer) };
    },
    prune: (...args) => prune(database, engine, ...args),
    storedBytes: (checkpoints) => storedBytes(database, checkpoints),
    assertWritable: () => assertWritable(database),
    textIndex,
  });
}
