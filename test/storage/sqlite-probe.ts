import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Database, OpenOptions } from "../../src/storage/sqlite/api.ts";

/** What a driver answers and throws, as plain values. */
export function probe(open: (file: string, options?: OpenOptions) => Database, folder: string): unknown {
  const file = join(folder, "a.db");
  const database = open(file, { timeout: 1 });
  const thrown = (work: () => unknown): unknown => {
    try {
      return { done: work() };
    } catch (error) {
      const { name, message } = error as Error;
      return { name, message, code: (error as { code?: unknown }).code };
    }
  };
  database.pragma("journal_mode = WAL");
  database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT UNIQUE, data BLOB, number REAL) STRICT");
  const insert = database.prepare("INSERT INTO t (text, data, number) VALUES (@text, @data, @number)");
  const count = database.prepare("SELECT count(*) FROM t").pluck();
  const bytes = new Uint8Array([1, 2, 3]);
  const answers: unknown[] = [
    insert.run({ text: "a", data: bytes, number: 1.5, more: "than it has" }),
    insert.run({ text: undefined, data: null, number: 2 ** 52 }),
    database.prepare("SELECT * FROM t ORDER BY id").all(),
    database.prepare("SELECT data FROM t WHERE text = ?").pluck().get("a"),
    database.prepare("SELECT 1 FROM t WHERE text = ?").get("b"),
    database.prepare("UPDATE t SET number = 3 WHERE text IS NULL RETURNING id, number").all(),
    [database.prepare("SELECT 1").readonly, database.prepare("DELETE FROM t").readonly],
    database.prepare("WITH x AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT 9 FROM x)").readonly,
    database.pragma("user_version", { simple: true }),
    database.pragma("table_info(t)"),
    [database.memory, database.inTransaction, database.open],
    thrown(() => insert.run({ text: "a", data: null, number: 1 })),
    thrown(() => database.prepare("SELECT nothing FROM nowhere")),
    thrown(() => database.prepare("INSERT INTO t (id, text) VALUES ('x', 'y')").run()),
  ];
  const inner = database.transaction((text: string) => {
    insert.run({ text, data: null, number: 1 });
    if (text === "bad") throw new Error("stopped");
  });
  const outer = database.transaction(() => {
    inner("good");
    const stopped = thrown(() => inner("bad"));
    return [stopped, database.inTransaction];
  });
  answers.push(
    outer.immediate(),
    count.get(),
    thrown(() => inner("bad")),
    count.get(),
    database.inTransaction,
  );
  const other = open(file, { timeout: 1 });
  other.exec("BEGIN IMMEDIATE");
  answers.push(
    thrown(() => inner.immediate("locked")),
    database.inTransaction,
    count.get(),
    other.inTransaction,
  );
  other.exec("ROLLBACK");
  other.close();
  database.pragma("max_page_count = 8");
  const fill = database.transaction(() => insert.run({ text: "x".repeat(100_000), data: null, number: 0 }));
  const { code } = thrown(() => fill.immediate()) as { code?: unknown };
  answers.push(code, database.inTransaction, count.get(), database.close().open);
  mkdirSync(join(folder, "folder"));
  writeFileSync(join(folder, "text"), "this is no database, but long enough to look at twice".repeat(20));
  answers.push(
    thrown(() => open(join(folder, "folder"))),
    thrown(() => open(join(folder, "text")).prepare("SELECT * FROM sqlite_schema")),
  );
  return answers;
}
