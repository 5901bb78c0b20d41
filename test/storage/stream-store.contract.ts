import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { StreamStore } from "../../src/runs/server-ports.ts";

export interface StreamData {
  /** One more server on the same data. */
  connect(): Promise<StreamStore>;
  close(): Promise<void>;
}

/** What every driver of `StreamStore` does, whatever it keeps messages in. */
export function streamStoreContract(name: string, open: () => Promise<StreamData>): void {
  describe(`messages of sessions in ${name}`, () => {
    let data: StreamData;
    let streams: StreamStore;

    beforeEach(async () => {
      data = await open();
      onTestFinished(() => data.close());
      streams = await connect();
    });

    const connect = async (): Promise<StreamStore> => {
      const store = await data.connect();
      onTestFinished(() => store.close());
      return store;
    };
    const append = (message: string, extra: object = {}): Promise<number> =>
      streams.append({ session: "s", owner: "me", stream: "a", message, time: 1, ...extra });
    const messagesOf = async (stream = "a", session = "s", from = 0, limit = 1000): Promise<string[]> => {
      const sent = await streams.page({ session, stream, from, limit });
      return sent.map(({ message }) => message);
    };

    test("ids grow over all sessions and streams, also after the newest message was dropped", async () => {
      const first = await append("one");
      const second = await append("two", { session: "t", stream: "b" });
      await streams.deleteSession("t");
      const third = await append("three");
      expect(second).toBeGreaterThan(first);
      expect(third).toBeGreaterThan(second);
    });

    test("a page has the messages of one stream in their order, from an id on and up to a limit", async () => {
      await append("1");
      await append("other stream", { stream: "b" });
      const from = await append("2");
      await append("other session", { session: "t" });
      await append("3", { owner: "you" });
      await append("4");
      expect(await messagesOf("a", "s", from, 2)).toEqual(["2", "3"]);
      const sent = await streams.page({ session: "s", stream: "a", from: from + 1, limit: 1 });
      expect(sent).toEqual([{ id: expect.any(Number), owner: "you", message: "3" }]);
      expect(await messagesOf("c")).toEqual([]);
    });

    test("a message is returned as it was sent, whatever its text", async () => {
      const texts = ["", "'; --", "\u{1F600}\n\u2028", "x".repeat(300_000)];
      for (const text of texts) await append(text);
      expect(await messagesOf()).toEqual(texts);
    });

    test("the stream of a message is found by its session only", async () => {
      const id = await append("one", { stream: "b" });
      expect(await streams.streamOf("s", id)).toBe("b");
      expect(await streams.streamOf("t", id)).toBeUndefined();
      expect(await streams.streamOf("s", id + 1)).toBeUndefined();
    });

    test("dropping up to an id takes all streams of that session, and no other session", async () => {
      await append("1");
      await append("2", { stream: "b" });
      await append("theirs", { session: "t" });
      const id = await append("3");
      await append("4");
      await streams.dropUpTo("s", id);
      expect(await messagesOf()).toEqual(["4"]);
      expect(await messagesOf("b")).toEqual([]);
      expect(await messagesOf("a", "t")).toEqual(["theirs"]);
      expect(await streams.streamOf("s", id)).toBeUndefined();
    });

    test("a deleted session has no messages, however many it had", async () => {
      for (let i = 0; i < 60; i += 1) await append(`${i}`, { stream: i % 2 === 0 ? "a" : "b" });
      await append("theirs", { session: "t" });
      await streams.deleteSession("s");
      expect([...(await messagesOf()), ...(await messagesOf("b"))]).toEqual([]);
      expect(await messagesOf("a", "t")).toEqual(["theirs"]);
    });

    test("what was sent up to a time is deleted, in all sessions", async () => {
      for (let time = 1; time <= 50; time += 1) await append(`${time}`, { time });
      await append("theirs", { session: "t", time: 40 });
      await streams.deleteUntil(48);
      expect(await messagesOf()).toEqual(["49", "50"]);
      expect(await messagesOf("a", "t")).toEqual([]);
    });

    test("too many characters are made fewer by deleting the oldest of all sessions", async () => {
      for (let i = 0; i < 50; i += 1) await append(`${i % 10}`.repeat(10), { session: i < 25 ? "t" : "s" });
      await streams.shrinkTo(500);
      expect(await messagesOf("a", "t")).toHaveLength(25);
      await streams.shrinkTo(31);
      expect(await messagesOf("a", "t")).toEqual([]);
      expect(await messagesOf()).toEqual(["7777777777", "8888888888", "9999999999"]);
      await streams.shrinkTo(0);
      expect(await messagesOf()).toEqual([]);
    });

    test("another server reads what was stored, and adds to it", async () => {
      const first = await append("one");
      const other = await connect();
      expect(await other.streamOf("s", first)).toBe("a");
      const second = await other.append({ session: "s", owner: "me", stream: "a", message: "two", time: 1 });
      expect(second).toBeGreaterThan(first);
      expect(await messagesOf()).toEqual(["one", "two"]);
    });
  });
}
