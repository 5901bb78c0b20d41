/** Keeps what 2025-era sessions were sent, so that a client can resume a broken stream. */
import { setTimeout as delay } from "node:timers/promises";
import type { EventStore, JSONRPCMessage, JSONRPCRequest } from "@modelcontextprotocol/server";
import { isJSONRPCRequest, isJSONRPCResponse } from "@modelcontextprotocol/server";
import { type Clock, monotonicClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import type { Logger } from "../../core/logger.ts";
import type { StreamStore } from "../../runs/server-ports.ts";

export interface EventStoreOptions {
  /** Opens the store of the events; called again some time after a failure. */
  open: () => Promise<StreamStore>;
  clock: Clock;
  logger: Logger;
  /** Events kept of one session. Default 1000. */
  events?: number;
  /** Characters of serialised messages kept of one session. Default 4 Mi. */
  characters?: number;
  /** Limit of all sessions together. Default 256 Mi. */
  totalCharacters?: number;
  /** Milliseconds for which an event is kept. Default one day. */
  keepMs?: number;
}

export interface SentEvent {
  id: string;
  /** Serialised. */
  message: string;
}

export const frameOf = ({ id, message }: SentEvent): string =>
  `event: message\nid: ${id}\ndata: ${message}\n\n`;

/** A call that was not answered on its stream. */
export interface OpenCall {
  stream: string;
  call: JSONRPCRequest;
  /** The messages of the stream that the client has not seen. */
  rest: SentEvent[];
}

/** The id of a message that is not kept. It is sent without one; the client resumes from the message before. */
export const NO_ID = "";
/** Events read between two turns of the event loop; each may be as long as a result. */
const READ_PER_TURN = 20;

/**
 * Events sent to 2025-era sessions, except progress. A client whose stream broke gets the rest by GET with
 * `Last-Event-ID`, also from the next process after a restart. The oldest events are dropped first, when there are
 * too many or they are too old. A client that resumes from a dropped event is refused, because its stream would have
 * a gap; `check_deep_agent` still finds the run.
 */
export class SessionEvents {
  readonly #options: Required<EventStoreOptions>;
  /** Absent: it is not open yet, or cannot be opened now. */
  #store: StreamStore | undefined;
  #opening: Promise<StreamStore | undefined> | undefined;
  #triedAt = -Infinity;
  #isClosed = false;
  #lost = 0;

  constructor(options: EventStoreOptions) {
    this.#options = {
      events: 1000,
      characters: 4 * 1024 * 1024,
      totalCharacters: 256 * 1024 * 1024,
      keepMs: 86_400_000,
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
      .then((store) => store && this.#storeFor(store, session, owner))
      // The session was closed before its store was open.
      .catch(() => undefined);
    /** Streams with an id to resume from, until they are answered. */
    const resumable = new Set<string>();
    return {
      storeEvent: async (stream, message) => {
        // Progress shows one moment: a client that comes back gets the next line and the result.
        if ("method" in message && message.method === "notifications/progress" && resumable.has(stream))
          return NO_ID;
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
   * Events sent after the event `id` on the same stream of a session, if the caller `maySee` the events of its
   * owners. The list is empty if the event is unknown.
   */
  async after(session: string, maySee: (owner: string) => boolean, id: string): Promise<SentEvent[]> {
    const stream = await this.#streamOf(session, id);
    if (this.#store === undefined || stream === undefined) return [];
    const events: SentEvent[] = [];
    for (let from = Number(id); ;) {
      const rows = await this.#store.page({ session, stream, from, limit: READ_PER_TURN });
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

  /** The call on whose stream the event `id` was sent, if it is stored and was not answered. */
  async openCall(session: string, id: string): Promise<OpenCall | undefined> {
    const stream = await this.#streamOf(session, id);
    if (this.#store === undefined || stream === undefined) return undefined;
    const [opening] = await this.#store.page({ session, stream, from: 0, limit: 1 });
    const { call } = JSON.parse(opening?.message ?? "{}") as { call?: unknown }; // an object, as all messages
    const rest = await this.after(session, () => true, id);
    const messages = rest.map(({ message }): unknown => JSON.parse(message));
    if (!isJSONRPCRequest(call) || messages.some(isJSONRPCResponse)) return undefined;
    // Questions are asked again.
    return { stream, call, rest: rest.filter((_, at) => !isJSONRPCRequest(messages[at])) };
  }

  /**
   * Deletes the events of a session that its client ended, or that was idle for too long. Events that cannot be
   * deleted now are dropped when they are too old.
   */
  async forget(session: string): Promise<void> {
    try {
      await this.#store?.deleteSession(session);
    } catch (error) {
      this.#options.logger.warn("http.events_not_forgotten", { error });
    }
  }

  /** Drops expired events, and the oldest of all sessions until the rest is within the limit. */
  async expire(): Promise<void> {
    const { clock, keepMs, totalCharacters } = this.#options;
    const store = await this.#open();
    await store?.deleteUntil(clock() - keepMs);
    await store?.shrinkTo(totalCharacters);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    this.#store?.close();
  }

  /** A full disk or a lock must not keep a server from answering: then it is tried again some time later. */
  async #open(): Promise<StreamStore | undefined> {
    if (this.#store !== undefined || this.#isClosed) return this.#store;
    if (this.#opening === undefined && monotonicClock() - this.#triedAt < 5000) return undefined;
    const { open, logger } = this.#options;
    this.#opening ??= open()
      .then((store) => (this.#store = store))
      .catch((error: unknown) => {
        logger.warn("http.streams_not_opened", { error });
        return undefined;
      })
      .finally(() => {
        this.#triedAt = monotonicClock();
        this.#opening = undefined;
      });
    return this.#opening;
  }

  /** The file, unless opening it takes longer than a client should wait. */
  #soonOpen(): Promise<StreamStore | undefined> {
    const opening = this.#open();
    if (this.#opening === undefined) return opening;
    return Promise.race([opening, delay(3000, undefined, { ref: false })]);
  }

  /** Stores one event, and drops the oldest of the session when it has too many; never the event itself. */
  #storeFor(store: StreamStore, session: string, owner: () => string) {
    const { clock, events, characters } = this.#options;
    // Other servers limit the events that they stored of the session.
    const kept: { id: number; size: number }[] = [];
    let size = 0;
    return async (stream: string, message: string): Promise<string> => {
      const id = await store.append({ session, owner: owner(), stream, message, time: clock() });
      kept.push({ id, size: message.length });
      size += message.length;
      let dropped: (typeof kept)[number] | undefined;
      while (kept.length > 1 && (kept.length > events || size > characters)) {
        dropped = kept.shift();
        size -= dropped?.size ?? 0;
      }
      if (dropped !== undefined) await store.dropUpTo(session, dropped.id);
      return String(id);
    };
  }

  async #streamOf(session: string, id: string): Promise<string | undefined> {
    if (!/^\d{1,15}$/.test(id)) return undefined;
    const store = await this.#soonOpen();
    return store?.streamOf(session, Number(id));
  }
}
