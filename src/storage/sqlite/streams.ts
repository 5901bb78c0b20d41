/** The SQLite file of what 2025-era sessions were sent. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { StreamStore } from "../../runs/server-ports.ts";
import { inTransaction } from "./commit.ts";
import { type Database, openDatabaseInTurns, whenUnlocked } from "./database.ts";
import { readInThread } from "./threads.ts";
import { migrate } from "./migrations.ts";
import { readMigrations } from "../../runs/sql/sql-files.ts";
import tables from "./streams.sql" with { type: "text" };

/** Opens `file`, and makes it if there is none; `:memory:` keeps the messages until it is closed. @throws StorageError */
export async function openStreams(file: string): Promise<StreamStore> {
  const database = await openDatabaseInTurns(file, { synchronous: "NORMAL" });
  try {
    migrate(database, "streams", readMigrations(tables));
    const insert = database.prepare(
      "INSERT INTO stream_events (session, owner, stream, message, size, time) VALUES (?, ?, ?, ?, ?, ?)",
    );
    const drop = database.prepare("DELETE FROM stream_events WHERE session = ? AND id <= ?");
    const streamOf = database
      .prepare<[number, string], string>("SELECT stream FROM stream_events WHERE id = ? AND session = ?")
      .pluck();
    const page = database.prepare<
      [string, string, number, number],
      { id: number; owner: string; message: string }
    >(
      "SELECT id, owner, message FROM stream_events WHERE session = ? AND stream = ? AND id >= ? ORDER BY id LIMIT ?",
    );
    return {
      append: ({ session, owner, stream, message, time }) =>
        whenUnlocked(database, () =>
          Number(insert.run(session, owner, stream, message, message.length, time).lastInsertRowid),
        ),
      dropUpTo: async (session, id) => void (await whenUnlocked(database, () => drop.run(session, id))),
      streamOf: async (session, id) => streamOf.get(id, session),
      page: async ({ session, stream, from, limit }) => page.all(session, stream, from, limit),
      deleteSession: (session) => deleteInTurns(database, "WHERE session = ?", [session]),
      deleteUntil: (time) => deleteInTurns(database, "WHERE time <= ?", [time]),
      shrinkTo: async (characters) => {
        const excess = (await sizeOfAll(database)) - characters;
        if (excess > 0) await deleteInTurns(database, "ORDER BY id", [], excess);
      },
      close: () => void database.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Deletes the messages selected by `which`, a few in each turn of the event loop, until `characters` are gone. */
async function deleteInTurns(
  database: Database,
  which: string,
  values: readonly (string | number)[],
  characters = Infinity,
): Promise<void> {
  // Number of messages deleted between two turns of the event loop; each may be as long as a result.
  const some = database.prepare<unknown[], { id: number; size: number }>(
    `SELECT id, size FROM stream_events ${which} LIMIT 20`,
  );
  const drop = database.prepare("DELETE FROM stream_events WHERE id = ?");
  let left = characters;
  const dropSome = (): boolean => {
    const rows = some.all(...values);
    let dropped = 0;
    for (const { id, size } of rows) {
      if (dropped >= Math.min(left, 1024 * 1024)) break;
      drop.run(id);
      dropped += size;
    }
    left -= dropped;
    return rows.length > 0 && left > 0;
  };
  while (await whenUnlocked(database, () => inTransaction(database, dropSome))) await nextTurn();
}

/** Returns the number of characters of all messages. A worker thread adds them up when there are very many. */
async function sizeOfAll(database: Database): Promise<number> {
  const sum = "SELECT total(size) AS total FROM stream_events";
  const span = database
    .prepare<[], number | null>(
      "SELECT (SELECT max(id) FROM stream_events) - (SELECT min(id) FROM stream_events)",
    )
    .pluck();
  // Adding up the sizes of so many messages takes about 2 ms.
  if (database.memory || (span.get() ?? 0) < 80_000)
    return database.prepare<[], { total: number }>(sum).get()?.total ?? 0;
  const [row] = (await readInThread(database.name, sum)) as { total: number }[]; // the columns it selects
  return row?.total ?? 0;
}
