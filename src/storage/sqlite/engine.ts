/** Carries out the steps of `runs/sql` on SQLite. */
import { byValue } from "../../core/by-identity.ts";
import { inSqlite } from "../../runs/sql/dialects.ts";
import type { StatementResult, Engine, Statement, Steps, Value } from "../../runs/sql/steps.ts";
import { storedText } from "../../runs/sql/steps.ts";
import { GroupCommit } from "./commit.ts";
import type { Database } from "./database.ts";
import { unreadable } from "./errors.ts";

/** Carries out all steps at once, so that no other statement of this process comes between them. */
export function sqliteEngine(database: Database): Engine {
  // Binds values by position, because binding by name takes half as long again.
  const prepared = byValue((sql: string): ((values: Statement["values"]) => StatementResult) => {
    const { text, names } = inSqlite(sql);
    const statement = database.prepare<Value[], object>(text);
    const inOrder = (values: Statement["values"]): Value[] =>
      names.map((name) => storedText(values[name] ?? null));
    if (!statement.reader)
      return (values) => ({ rows: [], changes: statement.run(...inOrder(values)).changes });
    return (values) => {
      const rows = statement.all(...inOrder(values));
      return { rows, changes: rows.length };
    };
  });
  const answerTo = ({ sql, values, isLock, orElse }: Statement): StatementResult => {
    const answer = isLock ? { rows: [], changes: 0 } : prepared(sql)(values);
    if (orElse && answer.changes === 0) throw orElse();
    return answer;
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
  const commits = GroupCommit.of(database);
  const engine: Engine = {
    of: () => engine,
    read: async (steps) => {
      // Sees all earlier writes, also those that are not durable yet, but waits for nobody's lock.
      await commits.tried();
      return carryOut(steps());
    },
    write: (steps) => commits.run(() => carryOut(steps())),
    note: (steps) => commits.note(() => carryOut(steps())),
  };
  return engine;
}
