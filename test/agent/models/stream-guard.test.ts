import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { guardedFetch } from "../../../src/agent/models/stream-guard.ts";

const answering = (body: string, status: number) =>
  guardedFetch(1000, () => Promise.resolve(new Response(body, { status, headers: { "retry-after": "7" } })));

test.each([0, 65_536, 5_000_000])("an error of %i bytes is read to its beginning", async (bytes) => {
  const response = await answering("x".repeat(bytes), 529)("http://provider.test");
  expect([response.status, response.headers.get("retry-after")]).toEqual([529, "7"]);
  expect(await response.text()).toBe("x".repeat(Math.min(bytes, 65_536)));
});

test("an answer is read to its end", async () => {
  const response = await answering("x".repeat(200_000), 200)("http://provider.test");
  expect((await response.text()).length).toBe(200_000);
});

test.each([
  ["with", (size: number) => `data: {"type":"x","text":"${"x".repeat(size)}"}\n\n`],
  ["without", (size: number) => `data: {"type":"x","text":"${"x".repeat(size)}`],
])("an event of more than 2 MB is refused, %s its end", async (_name, event) => {
  const read = async (size: number) => {
    const body = `${event(size)}data: {"type":"message_stop"}\n\n`;
    const headers = { "content-type": "text/event-stream" };
    const fetch = guardedFetch(1000, () => Promise.resolve(new Response(body, { headers })));
    return (await (await fetch("http://provider.test")).text()).length;
  };
  expect(await read(2_000_000)).toBeGreaterThan(2_000_000);
  await expect(read(2_100_000)).rejects.toThrow("an event of more than 2 MB");
});

test("an event that never ends is refused once it is too long", async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new TextEncoder().encode(sent === 65_536 ? "data: " : "x".repeat(65_536)));
    },
  });
  const headers = { "content-type": "text/event-stream" };
  const fetch = guardedFetch(1000, () => Promise.resolve(new Response(endless, { headers })));
  const response = await fetch("http://provider.test");
  await expect(response.text()).rejects.toThrow("an event of more than 2 MB");
  expect(sent).toBeLessThan(3_000_000);
});

test("an answer with signs of life only ends", async () => {
  const endless = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await delay(2);
      controller.enqueue(new TextEncoder().encode(": alive\n\n"));
    },
  });
  const headers = { "content-type": "text/event-stream" };
  const fetch = guardedFetch(100, () => Promise.resolve(new Response(endless, { headers })));
  const response = await fetch("http://provider.test");
  await expect(response.text()).rejects.toThrow("nothing arrived");
});
