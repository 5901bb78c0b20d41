import type { RunListener, RunRepository } from "../../../runs/ports.ts";
import { StoredRuns } from "../../sql/repository.ts";
import type { Answer, Engine, Statement, Steps, Value } from "../../sql/steps.ts";
import { inTransaction, quickly } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import { unreadable } from "../errors.ts";
import { assertWritable, findOrphans, prune, storedBytes } from "./housekeeping.ts";

/** Runs in SQLite: its engine, and what SQLite does in a way of its own. */

/** Makes the port over `database`, which `RUN_MIGRATIONS` have migrated. The caller closes it after the last use. */
export const sqliteRuns = (database: Database): RunRepository =>
  new StoredRuns(sqliteEngine(database), {
    watchOthers: (listener, pollMs) => pollForeignChanges(database, listener, pollMs),
    prune: (...args) => prune(database, ...args),
    storedBytes: (checkpoints) => storedBytes(database, checkpoints),
    orphans: (checkpoints) => findOrphans(database, checkpoints),
    assertWritable: () => assertWritable(database),
  });

/** Carries out all steps at once, so that no other statement of this process comes between them. */
export function sqliteEngine(database: Database): Engine {
  const statements = new Map<string, Prepared>();
  const answerTo = ({ sql, values, isLock }: Statement): Answer => {
    if (isLock) return NOTHING;
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = prepare(database, sql)));
    return statement(values);
  };
  const carryOut = <T>(steps: Steps<T>): T => {
    try {
      let step = steps.next();
      while (step.done !== true) step = steps.next(answerTo(step.value));
      return step.value;
    } catch (thrown) {
      throw unreadable(thrown, "the database of runs");
    }
  };
  const engine: Engine = {
    of: () => engine,
    read: async (steps) => carryOut(steps()),
    write: (steps) => whenUnlocked(database, () => inTransaction(database, () => carryOut(steps()))),
    note: (steps) => quickly(database, () => inTransaction(database, () => carryOut(steps()))),
  };
  return engine;
}

type Prepared = (values: Statement["values"]) => Answer;

/** Binds values by position, because binding by name takes half as long again. */
function prepare(database: Database, sql: string): Prepared {
  const names: string[] = [];
  const placed = sql.replace(/@(\w+)/g, (_, name: string) => (names.push(name), "?"));
  // A transaction that writes locks the whole database, so rows need no lock.
  const statement = database.prepare<Value[], object>(placed.replace(/ FOR UPDATE$/, ""));
  const inOrder = (values: Statement["values"]): Value[] => names.map((name) => values[name] ?? null);
  if (!statement.reader)
    return (values) => ({ rows: [], changes: statement.run(...inOrder(values)).changes });
  return (values) => {
    const rows = statement.all(...inOrder(values));
    return { rows, changes: rows.length };
  };
}

const NOTHING: Answer = { rows: [], changes: 0 };

/** Polls SQLite's `data_version`, which changes when another connection commits. Keeps no process alive. */
function pollForeignChanges(database: Database, listener: RunListener, pollMs: number): { close(): void } {
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
}
