import type { Database } from "./database.ts";
import { isBusy, storageError } from "./errors.ts";
import { withLongWait } from "./lock-wait.ts";

/**
 * Makes `database` throw `StorageError` for every known failure of its file, whichever way it is used:
 * statements, transactions, pragmas, scripts. `name`: what messages call it. `assertInPlace` is called before
 * anything is written by a statement or a transaction.
 */
export function throwKnownErrors(database: Database, name: string, assertInPlace: () => void): Database {
  const known =
    <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    (...args: Args): Result => {
      try {
        return method(...args);
      } catch (thrown) {
        throw storageError(thrown, name);
      }
    };
  // Writers never keep readers waiting; who puts a file in order after a crash does, for a moment.
  const patient = <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    known((...args: Args): Result => {
      try {
        return method(...args);
      } catch (thrown) {
        if (!isBusy(thrown)) throw thrown;
        return withLongWait(database, () => method(...args));
      }
    });
  const writing = <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    known((...args: Args): Result => {
      if (!database.inTransaction) assertInPlace();
      return method(...args);
    });
  const prepare = known(database.prepare.bind(database));
  const transaction = database.transaction.bind(database);
  return Object.assign(database, {
    exec: known(database.exec.bind(database)),
    pragma: known(database.pragma.bind(database)),
    prepare: (source: string) => {
      const statement = prepare(source);
      const reading = statement.readonly ? patient : known;
      return Object.assign(statement, {
        run: (statement.readonly ? known : writing)(statement.run.bind(statement)),
        get: reading(statement.get.bind(statement)),
        all: reading(statement.all.bind(statement)),
      });
    },
    transaction: (work: (...args: unknown[]) => unknown) => {
      const made = transaction(work);
      return Object.assign(known(made), {
        deferred: known((...args) => made.deferred(...args)),
        immediate: writing((...args) => made.immediate(...args)),
        exclusive: writing((...args) => made.exclusive(...args)),
        database,
      });
    },
  });
}
