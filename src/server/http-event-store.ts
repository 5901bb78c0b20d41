import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

export interface EventStoreLimits {
  /** Default 1000. */
  events?: number;
  /** Total length of the serialised messages. Default 4 Mi characters. */
  characters?: number;
}

interface StoredEvent {
  id: string;
  streamId: string;
  message: JSONRPCMessage;
  size: number;
}

/**
 * What one session sent, kept in memory so that a client whose stream broke gets the rest by GET with
 * `Last-Event-ID`. The oldest events are dropped first: beyond 1000 events or 4 Mi characters, and
 * with the session itself. A client that asks from a dropped event is refused instead of being given
 * a stream with a hole; the run is still there for `check_deep_agent`.
 */
export function createEventStore(limits: EventStoreLimits = {}): EventStore {
  const { events: maxEvents = 1000, characters: maxCharacters = 4 * 1024 * 1024 } = limits;
  const kept: StoredEvent[] = [];
  let characters = 0;
  let sequence = 0;

  const trim = (): void => {
    while (kept.length > 1 && (kept.length > maxEvents || characters > maxCharacters)) {
      characters -= kept.shift()?.size ?? 0;
    }
  };
  const indexOf = (id: string): number => kept.findIndex((event) => event.id === id);

  return {
    storeEvent: (streamId, message) => {
      sequence += 1;
      const event = { id: String(sequence), streamId, message, size: JSON.stringify(message).length };
      kept.push(event);
      characters += event.size;
      trim();
      return Promise.resolve(event.id);
    },
    getStreamIdForEventId: (id) => Promise.resolve(kept[indexOf(id)]?.streamId),
    replayEventsAfter: async (id, { send }) => {
      const index = indexOf(id);
      const last = kept[index];
      if (last === undefined) throw new Error(`event ${id} is no longer kept`);
      for (const event of kept.slice(index + 1)) {
        if (event.streamId === last.streamId && !isPriming(event.message))
          await send(event.id, event.message);
      }
      return last.streamId;
    },
  };
}

/** The transport stores an empty message to obtain the id that opens a stream; it is not for clients. */
function isPriming(message: JSONRPCMessage): boolean {
  return Object.keys(message).length === 0;
}
