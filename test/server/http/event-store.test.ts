import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";
import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { SessionEvents, type EventStoreOptions } from "../../../src/server/http/event-store.ts";
import { openStreams } from "../../../src/storage/sqlite/streams.ts";

const message = (n: number): JSONRPCMessage => ({ jsonrpc: "2.0", method: "note", params: { n } });
const SIZE = JSON.stringify(message(0)).length;

function open(options: Partial<EventStoreOptions> = {}): SessionEvents {
  const events = new SessionEvents({
    open: () => openStreams(":memory:"),
    clock: () => 0,
    logger: silentLogger,
    ...options,
  });
  onTestFinished(() => events.close());
  return events;
}

async function replay(store: EventStore, after: string) {
  const sent: [string, JSONRPCMessage][] = [];
  const streamId = await store.replayEventsAfter(after, {
    send: async (id, sentMessage) => void sent.push([id, sentMessage]),
  });
  return { streamId, sent };
}

/** The ids that are still kept, the one at index `n` in the session `s<n>`. */
async function knownOf(events: SessionEvents, ids: readonly string[]): Promise<string[]> {
  const streams: unknown[] = [];
  for (const [n, id] of ids.entries())
    streams.push(await events.of(`s${n}`, () => "me").getStreamIdForEventId?.(id));
  return ids.filter((_id, n) => streams[n] !== undefined);
}

describe("events of a session", () => {
  test("are replayed from any of them on the same stream, in order, and nothing of others", async () => {
    const events = open();
    let session = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("s", "t"), fc.constantFrom("a", "b")), {
          minLength: 1,
          maxLength: 40,
        }),
        fc.nat(),
        async (sent, pick) => {
          session += 1;
          const stores: Record<string, EventStore> = {
            s: events.of(`s${session}`, () => "me"),
            t: events.of(`t${session}`, () => "me"),
          };
          const stored = [];
          for (const [n, [name, streamId]] of sent.entries()) {
            stored.push({ id: await stores[name]!.storeEvent(streamId, message(n)), name, streamId, n });
          }
          const from = stored[pick % stored.length]!;
          const expected = stored.filter(
            (event) => event.name === from.name && event.streamId === from.streamId && event.n > from.n,
          );
          const store = stores[from.name]!;
          const { streamId, sent: replayed } = await replay(store, from.id);
          expect(streamId).toBe(from.streamId);
          expect(await store.getStreamIdForEventId?.(from.id)).toBe(from.streamId);
          expect(replayed).toEqual(expected.map((event) => [event.id, message(event.n)]));
          const other = stores[from.name === "s" ? "t" : "s"]!;
          expect(await other.getStreamIdForEventId?.(from.id)).toBeUndefined();
          await expect(replay(other, from.id)).rejects.toThrow(/no longer kept/);
        },
      ),
    );
  });

  test("do not include the empty message that opened a stream, which can be replayed from", async () => {
    const store = open().of("s", () => "me");
    // The transport itself stores this to obtain an id.
    const opening = await store.storeEvent("a", {} as JSONRPCMessage);
    const first = await store.storeEvent("a", message(1));
    await store.storeEvent("a", {} as JSONRPCMessage);
    const last = await store.storeEvent("a", message(2));
    expect((await replay(store, opening)).sent).toEqual([
      [first, message(1)],
      [last, message(2)],
    ]);
  });

  test.each(["", "0", "-1", "1e3", "x", "9".repeat(400), "1; DROP TABLE stream_events"])(
    "are not found by the id %j",
    async (id) => {
      const events = open();
      await events.of("s", () => "me").storeEvent("a", message(1));
      expect(await events.after("s", () => true, id)).toEqual([]);
    },
  );
});

test("progress is kept only where a stream has nothing else to be resumed from", async () => {
  const store = open().of("s", () => "me");
  const progress = (n: number): JSONRPCMessage => ({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken: 1, progress: n },
  });
  const answer: JSONRPCMessage = { jsonrpc: "2.0", id: 1, result: {} };
  const first = await store.storeEvent("a", progress(0));
  for (let n = 1; n < 2000; n += 1) expect(await store.storeEvent("a", progress(n))).toBe("");
  const asked = await store.storeEvent("a", message(1));
  expect(await store.storeEvent("a", progress(2000))).toBe("");
  const answered = await store.storeEvent("a", answer);
  expect((await replay(store, first)).sent).toEqual([
    [asked, message(1)],
    [answered, answer],
  ]);
  expect(await store.storeEvent("b", progress(0))).not.toBe("");
});

describe("limits", () => {
  test.each([
    ["events", { events: 3 }],
    ["characters", { characters: 3 * SIZE }],
  ])("keep the newest up to %s of one session and refuse the rest", async (_name, limits) => {
    const events = open(limits);
    const store = events.of("s", () => "me");
    const other = await events.of("other", () => "me").storeEvent("a", message(0));
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await store.storeEvent("a", message(n)));
    expect(await store.getStreamIdForEventId?.(ids[1]!)).toBeUndefined();
    await expect(replay(store, ids[1]!)).rejects.toThrow(/no longer kept/);
    expect((await replay(store, ids[2]!)).sent).toHaveLength(2);
    expect(await events.of("other", () => "me").getStreamIdForEventId?.(other)).toBe("a");
  });

  test("an event larger than all that may be kept is kept until the next", async () => {
    const store = open({ characters: 1 }).of("s", () => "me");
    const opening = await store.storeEvent("a", {} as JSONRPCMessage);
    const large = await store.storeEvent("a", message(1));
    expect(await store.getStreamIdForEventId?.(large)).toBe("a");
    expect(await store.getStreamIdForEventId?.(opening)).toBeUndefined();
  });

  test("all sessions together keep the newest, and nothing is older than a day", async () => {
    let now = 0;
    const events = open({ totalCharacters: 3 * SIZE, clock: () => now });
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await events.of(`s${n}`, () => "me").storeEvent("a", message(n)));
    const kept = async () => knownOf(events, ids);
    await events.expire();
    expect(await kept()).toEqual(ids.slice(2));
    now = 86_400_000;
    await events.expire();
    expect(await kept()).toEqual([]);
  });

  test("a session that was ended by its client leaves nothing", async () => {
    const events = open();
    const id = await events.of("s", () => "me").storeEvent("a", message(1));
    await events.forget("s");
    expect(await events.of("s", () => "me").getStreamIdForEventId?.(id)).toBeUndefined();
  });
});

test("a lock that another process holds delays what is dropped, and nothing else", async () => {
  const folder = filesIn();
  const file = join(folder, "streams.db");
  let now = 0;
  const events = open({ open: () => openStreams(file), clock: () => now });
  const ids = [
    await events.of("s0", () => "me").storeEvent("a", message(0)),
    await events.of("s1", () => "me").storeEvent("a", message(1)),
  ];
  const other = openDatabase(file);
  onTestFinished(() => void other.close());
  other.exec("BEGIN IMMEDIATE");
  const dropped = events.forget("s0");
  // Both wait their turn while others are served.
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  expect(await knownOf(events, ids)).toEqual(ids);
  now = 86_400_000;
  const expired = events.expire();
  await nextTurn();
  expect(await knownOf(events, ids)).toEqual(ids);
  other.exec("ROLLBACK");
  await Promise.all([dropped, expired]);
  expect(await knownOf(events, ids)).toEqual([]);
});

test("the next process has the events, for the owner of the session only", async () => {
  const folder = filesIn();
  const file = join(folder, "streams.db");
  const before = new SessionEvents({ open: () => openStreams(file), clock: () => 0, logger: silentLogger });
  const first = await before.of("s", () => "me").storeEvent("a", message(1));
  const second = await before.of("s", () => "me").storeEvent("a", message(2));
  await before.close();
  const after = open({ open: () => openStreams(file) });
  expect(await after.after("s", (owner) => owner === "me", first)).toEqual([
    { id: second, message: JSON.stringify(message(2)) },
  ]);
  expect(await after.after("s", (owner) => owner === "you", first)).toEqual([]);
  expect(await after.after("t", () => true, first)).toEqual([]);
});

test("a file of an older version is changed in turns, and its events are there afterwards", async () => {
  const folder = filesIn();
  const file = join(folder, "streams.db");
  const older = openDatabase(file);
  older.exec(`
CREATE TABLE schema_versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
INSERT INTO schema_versions VALUES ('streams', 1);
CREATE TABLE stream_events (id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, owner TEXT NOT NULL,
  stream TEXT NOT NULL, message TEXT NOT NULL, size INTEGER NOT NULL, time INTEGER NOT NULL) STRICT;
CREATE INDEX stream_events_of_session ON stream_events (session, id);
CREATE INDEX stream_events_by_time ON stream_events (time);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO stream_events (session, owner, stream, message, size, time) SELECT 'old', 'me', 'a', '{"i":1}', 7, 0 FROM n;
-- So many ids that a thread adds their sizes.
UPDATE stream_events SET id = 900000 WHERE id = 3000`);
  older.close();
  const events = open({ open: () => openStreams(file), totalCharacters: 2000 * 7 });
  let turns = 0;
  const over = new AbortController();
  const dropped = events.expire().finally(() => over.abort());
  for (; !over.signal.aborted; turns += 1) await nextTurn();
  await dropped;
  // Of the thousand that are dropped, twenty in a turn.
  expect(turns).toBeGreaterThanOrEqual(50);
  expect(await events.after("old", () => true, "1000")).toEqual([]);
  expect(await events.after("old", () => true, "1001")).toHaveLength(1999);
  const id = await events.of("new", () => "me").storeEvent("a", message(1));
  expect(await events.of("new", () => "me").getStreamIdForEventId?.(id)).toBe("a");
});

test("a file that cannot be opened keeps nobody from sending: what is sent then is not kept", async () => {
  const folder = filesIn();
  writeFileSync(join(folder, "no folder"), "");
  const blocked = open({ open: () => openStreams(join(folder, "no folder", "streams.db")) });
  const id = await blocked.of("s", () => "me").storeEvent("a", message(1));
  expect(id).toMatch(/^lost-/);
  expect(await blocked.after("s", () => true, id)).toEqual([]);
  await blocked.expire();
  await blocked.forget("s");
});

test("an event that cannot be stored has an id all the same, from which nothing is replayed", async () => {
  const events = new SessionEvents({
    open: () => openStreams(":memory:"),
    clock: () => 0,
    logger: silentLogger,
  });
  const store = events.of("s", () => "me");
  await events.close();
  expect(await store.storeEvent("a", message(1))).toMatch(/^lost-/);
});
