import type { Database } from "./database.ts";
import { storageError } from "./errors.ts";

/**
 * Makes `database` throw `StorageError` for every known failure of its file, whichever way it is used:
 * statements, transactions, pragmas, scripts. `name`: what messages call it.
 */
export function throwKnownErrors(database: Database, name: string): Database {
  const known =
    <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    (...args: Args): Result => {
      try {
        return method(...args);
      } catch (thrown) {
        throw storageError(thrown, name);
      }
    };
  const prepare = known(database.prepare.bind(database));
  const transaction = database.transaction.bind(database);
  return Object.assign(database, {
    exec: known(database.exec.bind(database)),
    pragma: known(database.pragma.bind(database)),
    prepare: (source: string) => {
      const statement = prepare(source);
      return Object.assign(statement, {
        run: known(statement.run.bind(statement)),
        get: known(statement.get.bind(statement)),
        all: known(statement.all.bind(statement)),
      });
    },
    transaction: (work: (...args: unknown[]) => unknown) => {
      const made = transaction(work);
      return Object.assign(known(made), {
        deferred: known((...args) => made.deferred(...args)),
        immediate: known((...args) => made.immediate(...args)),
        exclusive: known((...args) => made.exclusive(...args)),
        database,
      });
    },
  });
}
