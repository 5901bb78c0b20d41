import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createEventStore } from "../../src/server/http-event-store.ts";

const message = (n: number): JSONRPCMessage => ({ jsonrpc: "2.0", method: "note", params: { n } });

async function replay(store: ReturnType<typeof createEventStore>, after: string) {
  const sent: [string, JSONRPCMessage][] = [];
  const streamId = await store.replayEventsAfter(after, {
    send: async (id, sentMessage) => void sent.push([id, sentMessage]),
  });
  return { streamId, sent };
}

describe("event store", () => {
  test("replays what came after an event on the same stream, in order, and nothing of other streams", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 40 }),
        fc.nat(),
        async (streams, pick) => {
          const store = createEventStore();
          const stored: { id: string; streamId: string; n: number }[] = [];
          for (const [n, streamId] of streams.entries()) {
            stored.push({ id: await store.storeEvent(streamId, message(n)), streamId, n });
          }
          const from = stored[pick % stored.length]!;
          const expected = stored.filter((event) => event.streamId === from.streamId && event.n > from.n);
          const { streamId, sent } = await replay(store, from.id);
          expect(streamId).toBe(from.streamId);
          expect(await store.getStreamIdForEventId?.(from.id)).toBe(from.streamId);
          expect(sent).toEqual(expected.map((event) => [event.id, message(event.n)]));
        },
      ),
    );
  });

  test("does not send the empty message that opened a stream", async () => {
    const store = createEventStore();
    const first = await store.storeEvent("a", message(1));
    // The transport itself stores this to obtain an id.
    await store.storeEvent("a", {} as JSONRPCMessage);
    const last = await store.storeEvent("a", message(2));
    expect((await replay(store, first)).sent).toEqual([[last, message(2)]]);
  });

  test.each([
    ["events", { events: 3 }],
    ["characters", { characters: 3 * JSON.stringify(message(0)).length }],
  ])(
    "keeps the newest up to its limit of %s and refuses to replay from a dropped one",
    async (_name, limits) => {
      const store = createEventStore(limits);
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) ids.push(await store.storeEvent("a", message(n)));
      expect(await store.getStreamIdForEventId?.(ids[1]!)).toBeUndefined();
      await expect(replay(store, ids[1]!)).rejects.toThrow(/no longer kept/);
      expect((await replay(store, ids[2]!)).sent).toHaveLength(2);
    },
  );
});
