import { setImmediate as nextTurn } from "node:timers/promises";
import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";
import { type Clock, monotonicClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { ownTurn } from "../../core/turns.ts";
import { openDatabase, type Database } from "../../storage/database.ts";
import { whenUnlocked } from "../../storage/lock-wait.ts";
import { migrate, type Migration } from "../../storage/migrations.ts";
import { settledTime } from "../../storage/settled-time.ts";

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
/** Each may be as long as a result. */
const DELETED_PER_TURN = 20;

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "events",
    up: (database) =>
      void database.exec(`
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
        CREATE INDEX stream_events_by_time ON stream_events (time);`),
  },
  {
    version: 2,
    name: "sizes of events",
    // What is behind a long message in its row is read through all of it.
    up: (database) => void database.exec("CREATE INDEX stream_events_sizes ON stream_events (size)"),
  },
];

/**
 * What 2025-era sessions sent, so that a client whose stream broke gets the rest by GET with
 * `Last-Event-ID`, also from the next process after a restart. The oldest events are dropped first, when
 * there are too many or they are too old. A client that asks from a dropped event is refused instead of
 * being given a stream with a hole; the run is still there for `check_deep_agent`.
 */
export class SessionEvents {
  readonly #options: Required<EventStoreOptions>;
  /** Absent: it cannot be opened now. */
  #database: Database | undefined;
  #triedAt = -Infinity;
  #lost = 0;

  constructor(options: EventStoreOptions) {
    this.#options = {
      events: 1000,
      characters: 4 * 1024 * 1024,
      totalCharacters: 256 * 1024 * 1024,
      keepMs: DAY_MS,
      ...options,
    };
    this.#open();
  }

  /**
   * For the transport of one session. An event that cannot be stored is sent all the same; so are all of a session
   * that began while the file could not be opened.
   */
  of(session: string, owner: () => string): EventStore {
    const database = this.#open();
    const store = database && this.#storeFor(database, session, owner);
    return {
      storeEvent: async (stream, message) => {
        try {
          if (store !== undefined) return await store(stream, JSON.stringify(message));
        } catch (error) {
          this.#options.logger.warn("http.event_not_stored", { error });
        }
        this.#lost += 1;
        return `lost-${this.#lost}`;
      },
      getStreamIdForEventId: async (id) => this.#streamOf(session, id),
      replayEventsAfter: async (id, { send }) => {
        const stream = this.#streamOf(session, id);
        if (stream === undefined) throw new Error(`event ${id} is no longer kept`);
        for (const event of this.after(session, () => true, id)) {
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
  after(session: string, maySee: (owner: string) => boolean, id: string): SentEvent[] {
    const stream = this.#streamOf(session, id);
    if (this.#database === undefined || stream === undefined) return [];
    const rows = this.#database
      .prepare<[string, string, number], { id: number; owner: string; message: string }>(
        "SELECT id, owner, message FROM stream_events WHERE session = ? AND stream = ? AND id >= ? ORDER BY id",
      )
      .all(session, stream, Number(id));
    if (!rows.every(({ owner }) => maySee(owner))) return [];
    return (
      rows
        .slice(1)
        // The transport stores an empty message to obtain the id that opens a stream; it is not for clients.
        .filter(({ message }) => message !== "{}")
        .map((row) => ({ id: String(row.id), message: row.message }))
    );
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
    const database = this.#open();
    if (database === undefined) return;
    await this.#deleteEvents(database, "WHERE time <= ?", (await settledTime(database, clock())) - keepMs);
    const total = database.prepare<[], number>("SELECT total(size) FROM stream_events").pluck();
    const excess = (total.get() ?? 0) - totalCharacters;
    if (excess > 0) await this.#deleteEvents(database, "ORDER BY id", undefined, excess);
  }

  close(): void {
    this.#database?.close();
  }

  /** A full disk or a lock must not keep a server from answering: then it is tried again some time later. */
  #open(): Database | undefined {
    if (this.#database !== undefined || monotonicClock() - this.#triedAt < RETRY_MS) return this.#database;
    this.#triedAt = monotonicClock();
    let database: Database | undefined;
    try {
      database = openDatabase(this.#options.file, { synchronous: "NORMAL" });
      migrate(database, "streams", MIGRATIONS);
      this.#database = database;
    } catch (error) {
      database?.close();
      this.#options.logger.warn("http.streams_not_opened", { error });
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
      for (const { id, size } of rows) {
        if (left <= 0) break;
        drop.run(id);
        left -= size;
      }
      return rows.length > 0 && left > 0;
    });
    while (await whenUnlocked(database, () => dropSome.immediate())) await nextTurn();
  }

  #streamOf(session: string, id: string): string | undefined {
    if (this.#database === undefined || !/^\d{1,15}$/.test(id)) return undefined;
    const stream = this.#database.prepare<[number, string], string>(
      "SELECT stream FROM stream_events WHERE id = ? AND session = ?",
    );
    return stream.pluck().get(Number(id), session);
  }
}
