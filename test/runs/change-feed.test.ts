import { expect, test } from "vitest";
import { ChangeFeed } from "../../src/runs/follow.ts";

const never = new AbortController().signal;

test("news of a run reaches its followers, also when it came before they waited", async () => {
  const feed = new ChangeFeed();
  const early = feed.subscribe("a");
  feed.notify("a");
  feed.notify("a");
  await early.changed(never);
  const next = early.changed(never);
  const both = Promise.all([next, feed.subscribe("a").changed(never)]);
  feed.notify("a");
  await both;
});

test("news of one run is not news of another; unnamed news is everyone's", async () => {
  const feed = new ChangeFeed();
  const told: string[] = [];
  const waits = ["a", "b"].map(async (run) => {
    await feed.subscribe(run).changed(never);
    told.push(run);
  });
  feed.notify("b");
  await waits[1];
  expect(told).toEqual(["b"]);
  feed.notifyAll();
  await waits[0];
  expect(told).toEqual(["b", "a"]);
});

test("an aborted or closed wait ends, and a closed subscription hears nothing", async () => {
  const feed = new ChangeFeed();
  const controller = new AbortController();
  const aborted = feed.subscribe("a").changed(controller.signal);
  controller.abort();
  await aborted;
  await feed.subscribe("a").changed(controller.signal);
  const waiting = feed.subscribe("a").changed(never);
  feed.close();
  await waiting;
  await feed.subscribe("a").changed(never);
  expect(feed.closed).toBe(true);
});
