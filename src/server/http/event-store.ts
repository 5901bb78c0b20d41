import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { type EventStore, type JSONRPCMessage, isJSONRPCResponse } from "@modelcontextprotocol/server";
import { type Clock, monotonicClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import type { Logger } from "../../core/logger.ts";
import { type Database, openDatabaseInTurns, whenUnlocked } from "../../storage/sqlite/database.ts";
import { readInThread } from "../../storage/sqlite/driver.ts";
import { type Migration, migrate } from "../../storage/sqlite/migrations.ts";

/** Keeps what 2025-era sessions were sent, so that a client can resume a broken stream. */

export interface EventStoreOptions {
  /** `:memory:` keeps the events until the process ends. */
  file: string;
  clock: Clock;
  logger: Logger;
  /** Events kept of one session. Default 1000. */
  events?: number;
  /** Characters of serialised messages kept of one session. Default 4 Mi. */
  characters?: number;
  /** The same of all sessions together. Default 256 Mi. */
  totalCharacters?: number;
  /** Milliseconds for which an event is kept. Default one day. */
  keepMs?: number;
}

export interface SentEvent {
  id: string;
  /** Serialised. */
  message: string;
}

const DAY_MS = 86_400_000;
/** Between two tries to open the file, in milliseconds. */
const RETRY_MS = 5000;
/** Of a message that is not kept: it is sent without an id, and the client resumes from the one before. */
const NO_ID = "";
/** How long a session waits for the file that is being opened, or brought to this version, in milliseconds. */
const PATIENCE_MS = 3000;
/** Of what is dropped between two turns of the event loop; each event may be as long as a result. */
const DELETED_PER_TURN = 20;
const CHARACTERS_PER_TURN = 1024 * 1024;
/** Events read in the same. */
const READ_PER_TURN = 20;
/** Events whose sizes take about 2 ms to add. */
const SUMMED_AT_ONCE = 80_000;

/**
 * What 2025-era sessions sent, all but progress, so that a client whose stream broke gets the rest by GET with
 * `Last-Event-ID`, also from the next process after a restart. The oldest events are dropped first, when
 * there are too many or they are too old. A client that asks from a dropped event is refused instead of
 * being given a stream with a hole; the run is still there for `check_deep_agent`.
 */
export class SessionEvents {
  readonly #options: Required<EventStoreOptions>;
  /** Absent: it is not open yet, or cannot be opened now. */
  #database: Database | undefined;
  #opening: Promise<Database | undefined> | undefined;
  #triedAt = -Infinity;
  #isClosed = false;
  #lost = 0;

  constructor(options: EventStoreOptions) {
    this.#options = {
      events: 1000,
      characters: 4 * 1024 * 1024,
      totalCharacters: 256 * 1024 * 1024,
      keepMs: DAY_MS,
      ...options,
    };
    void this.#open();
  }

  /**
   * For the transport of one session. An event that cannot be stored is sent all the same; so are all of a session
   * that began while the file could not be opened.
   */
  of(session: string, owner: () => string): EventStore {
    const opened = this.#soonOpen()
      .then((database) => database && this.#storeFor(database, session, owner))
      // It was closed meanwhile.
      .catch(() => undefined);
    /** Streams with an id to resume from, until they are answered. */
    const resumable = new Set<string>();
    return {
      storeEvent: async (stream, message) => {
        // A picture of its moment: who comes back is told the next one, and gets the result.
        if (isProgress(message) && resumable.has(stream)) return NO_ID;
        try {
          const store = await opened;
          if (store !== undefined) {
            const id = await store(stream, JSON.stringify(message));
            resumable[isJSONRPCResponse(message) ? "delete" : "add"](stream);
            return id;
          }
        } catch (error) {
          this.#options.logger.warn("http.event_not_stored", { error });
        }
        this.#lost += 1;
        return `lost-${this.#lost}`;
      },
      getStreamIdForEventId: async (id) => this.#streamOf(session, id),
      replayEventsAfter: async (id, { send }) => {
        const stream = await this.#streamOf(session, id);
        if (stream === undefined) throw new Error(`event ${id} is no longer kept`);
        for (const event of await this.after(session, () => true, id)) {
          await ownTurn();
          await send(event.id, JSON.parse(event.message) as JSONRPCMessage); // as it was stored above
        }
        return stream;
      },
    };
  }

  /**
   * What was sent after the event `id` on the same stream of a session, to someone who `maySee` what its
   * owners were sent; empty when that event is unknown.
   */
  async after(session: string, maySee: (owner: string) => boolean, id: string): Promise<SentEvent[]> {
    const stream = await this.#streamOf(session, id);
    if (this.#database === undefined || stream === undefined) return [];
    const page = this.#database.prepare<
      [string, string, number],
      { id: number; owner: string; message: string }
    >(
      "SELECT id, owner, message FROM stream_events WHERE session = ? AND stream = ? AND id >= ? " +
        `ORDER BY id LIMIT ${READ_PER_TURN}`,
    );
    const events: SentEvent[] = [];
    for (let from = Number(id); ;) {
      const rows = page.all(session, stream, from);
      if (!rows.every(({ owner }) => maySee(owner))) return [];
      events.push(...rows.map((row) => ({ id: String(row.id), message: row.message })));
      const last = rows.at(-1);
      if (last === undefined || rows.length < READ_PER_TURN) break;
      from = last.id + 1;
      await ownTurn();
    }
    // The transport stores an empty message to obtain the id that opens a stream; it is not for clients.
    return events.slice(1).filter(({ message }) => message !== "{}");
  }

  /**
   * The session is over for good: its client ended it, or it was idle for too long. What cannot be deleted
   * now goes when it is too old.
   */
  async forget(session: string): Promise<void> {
    if (this.#database === undefined) return;
    try {
      await this.#deleteEvents(this.#database, "WHERE session = ?", session);
    } catch (error) {
      this.#options.logger.warn("http.events_not_forgotten", { error });
    }
  }

  /** Drops what is too old, and the oldest of all sessions until the rest is within the limit. */
  async expire(): Promise<void> {
    const { clock, keepMs, totalCharacters } = this.#options;
    const database = await this.#open();
    if (database === undefined) return;
    await this.#deleteEvents(database, "WHERE time <= ?", clock() - keepMs);
    const excess = (await sizeOfAll(database)) - totalCharacters;
    if (excess > 0) await this.#deleteEvents(database, "ORDER BY id", undefined, excess);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    this.#database?.close();
  }

  /** A full disk or a lock must not keep a server from answering: then it is tried again some time later. */
  async #open(): Promise<Database | undefined> {
    if (this.#database !== undefined || this.#isClosed) return this.#database;
    if (this.#opening === undefined && monotonicClock() - this.#triedAt < RETRY_MS) return undefined;
    this.#opening ??= this.#openFile().finally(() => {
      this.#triedAt = monotonicClock();
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** The file, unless opening it takes longer than a client should wait. */
  #soonOpen(): Promise<Database | undefined> {
    const opening = this.#open();
    return this.#opening === undefined ? opening : Promise.race([opening, tooLong()]);
  }

  async #openFile(): Promise<Database | undefined> {
    const { file, logger } = this.#options;
    let database: Database | undefined;
    try {
      database = await openDatabaseInTurns(file, { synchronous: "NORMAL" });
      migrate(database, "streams", STREAM_MIGRATIONS);
      this.#database = database;
    } catch (error) {
      database?.close();
      logger.warn("http.streams_not_opened", { error });
    }
    return this.#database;
  }

  /** Stores one event, and drops the oldest of the session when it has too many; never the event itself. */
  #storeFor(
    database: Database,
    session: string,
    owner: () => string,
  ): (stream: string, message: string) => Promise<string> {
    const { clock, events, characters } = this.#options;
    const insert = database.prepare(
      "INSERT INTO stream_events (session, owner, stream, message, size, time) VALUES (?, ?, ?, ?, ?, ?)",
    );
    const drop = database.prepare("DELETE FROM stream_events WHERE session = ? AND id <= ?");
    // A session is continued by the process that opened it only, so what it has stored is known here.
    const kept: { id: number; size: number }[] = [];
    let size = 0;
    return async (stream, message) => {
      const inserted = await whenUnlocked(database, () =>
        insert.run(session, owner(), stream, message, message.length, clock()),
      );
      const id = Number(inserted.lastInsertRowid);
      kept.push({ id, size: message.length });
      size += message.length;
      let dropped: { id: number; size: number } | undefined;
      while (kept.length > 1 && (kept.length > events || size > characters)) {
        dropped = kept.shift();
        size -= dropped?.size ?? 0;
      }
      const last = dropped?.id;
      if (last !== undefined) await whenUnlocked(database, () => drop.run(session, last));
      return String(id);
    };
  }

  /** A few in each turn of the event loop, until `characters` are gone. */
  async #deleteEvents(
    database: Database,
    which: string,
    value?: string | number,
    characters = Infinity,
  ): Promise<void> {
    const some = database.prepare<unknown[], { id: number; size: number }>(
      `SELECT id, size FROM stream_events ${which} LIMIT ${DELETED_PER_TURN}`,
    );
    const drop = database.prepare("DELETE FROM stream_events WHERE id = ?");
    let left = characters;
    const dropSome = database.transaction((): boolean => {
      const rows = some.all(...(value === undefined ? [] : [value]));
      let dropped = 0;
      for (const { id, size } of rows) {
        if (dropped >= Math.min(left, CHARACTERS_PER_TURN)) break;
        drop.run(id);
        dropped += size;
      }
      left -= dropped;
      return rows.length > 0 && left > 0;
    });
    while (await whenUnlocked(database, () => dropSome.immediate())) await nextTurn();
  }

  async #streamOf(session: string, id: string): Promise<string | undefined> {
    if (!/^\d{1,15}$/.test(id)) return undefined;
    const database = await this.#soonOpen();
    const stream = database?.prepare<[number, string], string>(
      "SELECT stream FROM stream_events WHERE id = ? AND session = ?",
    );
    return stream?.pluck().get(Number(id), session);
  }
}

const tooLong = (): Promise<undefined> => delay(PATIENCE_MS, undefined, { ref: false });

/** Characters of all messages; very many are summed up by a thread. */
async function sizeOfAll(database: Database): Promise<number> {
  const sum = "SELECT total(size) AS total FROM stream_events";
  const span = database
    .prepare<[], number | null>(
      "SELECT (SELECT max(id) FROM stream_events) - (SELECT min(id) FROM stream_events)",
    )
    .pluck();
  if (database.memory || (span.get() ?? 0) < SUMMED_AT_ONCE) {
    return database.prepare<[], { total: number }>(sum).get()?.total ?? 0;
  }
  const [row] = (await readInThread(database.name, sum)) as { total: number }[]; // what it selects
  return row?.total ?? 0;
}

const isProgress = (message: JSONRPCMessage): boolean =>
  "method" in message && message.method === "notifications/progress";

/** Set `streams` of the file of what sessions sent. */
const STREAM_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "events",
    sql: `
        CREATE TABLE stream_events (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          session TEXT NOT NULL,
          owner TEXT NOT NULL,
          stream TEXT NOT NULL,
          message TEXT NOT NULL,
          size INTEGER NOT NULL,
          time INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX stream_events_of_session ON stream_events (session, id);
        CREATE INDEX stream_events_by_time ON stream_events (time);
        -- A sum of sizes reads this index instead of the long messages.
        CREATE INDEX stream_events_sizes ON stream_events (size);`,
  },
];
