import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { RunView } from "../../src/runs/run.ts";
import { createProgress } from "../../src/server/views/progress.ts";
import { aView } from "./support.ts";

interface Sent {
  progressToken: string | number;
  progress: number;
  message: string;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function record(
  token: string | number = "p",
  view: () => Promise<RunView | undefined> = () => Promise.resolve(undefined),
) {
  const sent: Sent[] = [];
  const call = new AbortController();
  const progress = createProgress({
    token,
    heartbeat: 15_000,
    clock: () => performance.now(),
    now: () => performance.now(),
    signal: call.signal,
    view,
    logger: silentLogger,
    notify: async ({ params }) => void sent.push(params as unknown as Sent), // what this file sends
  });
  return { sent, progress, call };
}

const event = (seq: number, changes: Partial<RunEvent> = {}): RunEvent =>
  ({
    runId: "run_1",
    seq,
    time: 0,
    agent: [],
    kind: "tool_started",
    data: { callId: "c", tool: "ls", summary: "ls /" },
    ...changes,
  }) as RunEvent; // Each test changes kind and data together.

test("the first line comes at once, also for the token 0", () => {
  const { sent, progress } = record(0);
  progress.started(aView({ run: { lastSeq: 0 }, activity: "" }));
  expect(sent).toEqual([{ progressToken: 0, progress: 0, message: "run run_1 started" }]);
  progress.stop();
});

test("lines name the subagent and the step, with the journal's number as progress", () => {
  const { sent, progress } = record();
  progress.started(aView({ run: { lastSeq: 3 }, activity: "coder: ls /" }));
  progress.event(event(4, { agent: [{ callId: "t", name: "researcher", task: "Find prices" }] }));
  progress.event(
    event(5, { kind: "tool_finished", data: { callId: "c", tool: "ls", status: "success", summary: "" } }),
  );
  progress.event(
    event(6, {
      kind: "subagent_started",
      agent: [{ callId: "u", name: "general-purpose", task: "Fix it" }],
      data: { callId: "u", name: "general-purpose", description: "Fix it. Then tell." },
    }),
  );
  progress.stop();
  expect(sent.map(({ progress, message }) => [progress, message])).toEqual([
    [3, "run run_1: coder: ls /"],
    [4, "researcher (Find prices): ls /"],
    [6, "Fix it: started"],
  ]);
});

test("heartbeats tell the place in line as it is by then, until the first event", async () => {
  const inLine = (number: number) =>
    aView({
      run: { lastSeq: 1 },
      activity: `number ${number} in line`,
      place: { number, waiting: 9, atWork: 1 },
    });
  let number = 3;
  const { sent, progress } = record("p", async () => inLine((number -= 1)));
  progress.started(inLine(number));
  await vi.advanceTimersByTimeAsync(15_000);
  await vi.advanceTimersByTimeAsync(15_000);
  progress.event(event(2));
  await vi.advanceTimersByTimeAsync(15_000);
  progress.stop();
  expect(sent.map(({ message }) => message)).toEqual([
    "run run_1: number 3 in line",
    "run run_1: number 2 in line (15s)",
    "run run_1: number 1 in line (30s)",
    "ls /",
    "ls / (45s)",
  ]);
});

test("heartbeats repeat the line and grow strictly without reaching the next event", () => {
  const { sent, progress } = record();
  progress.started(aView({ run: { lastSeq: 1 } }));
  vi.advanceTimersByTime(15_000 * 5000);
  progress.event(event(2));
  vi.advanceTimersByTime(14_999);
  expect(sent).toHaveLength(5002);
  vi.advanceTimersByTime(1);
  progress.stop();
  const values = sent.map(({ progress }) => progress);
  expect(values.every((value, index) => index === 0 || value > (values[index - 1] ?? 0))).toBe(true);
  expect(values.slice(0, 3)).toEqual([1, 1.5, 1 + 2 / 3]);
  expect(values.slice(-2)).toEqual([2, 2.5]);
  expect(sent[1]?.message).toBe(`${sent[0]?.message} (15s)`);
  expect(sent[4]?.message).toBe(`${sent[0]?.message} (1m 00s)`);
  expect(sent[1000]?.message).toBe(`${sent[0]?.message} (4h 10m)`);
});

test("repeated events, long texts and control characters", () => {
  const { sent, progress } = record();
  progress.started(aView({ run: { lastSeq: 5 } }));
  progress.event(event(5));
  progress.event(event(4));
  progress.event(event(6, { data: { callId: "c", tool: "ls", summary: `${"x".repeat(500)}\u001b[31m\n` } }));
  progress.stop();
  expect(sent).toHaveLength(2);
  expect(sent[1]?.message).toHaveLength(200);
});

test("of a storm of events the newest is told when its turn has come, and the last one always", () => {
  const { sent, progress } = record();
  progress.started(aView({ run: { lastSeq: 0 } }));
  for (let seq = 1; seq <= 5000; seq += 1) {
    progress.event(event(seq, { data: { callId: "c", tool: "ls", summary: `step ${seq}` } }));
    if (seq % 5 === 0) vi.advanceTimersByTime(10);
  }
  const during = sent.length;
  vi.advanceTimersByTime(100);
  expect(sent.at(-1)).toMatchObject({ progress: 5000, message: "step 5000" });
  // 40 at once, then one for each of the 100 turns of these ten seconds.
  expect(during).toBeLessThanOrEqual(140);
  expect(during).toBeGreaterThan(100);
  vi.advanceTimersByTime(15_000);
  expect(sent.at(-1)).toMatchObject({ progress: 5000.5, message: "step 5000 (25s)" });
  progress.stop();
});

test("nothing is sent after the end", () => {
  const { sent, progress } = record();
  progress.started(aView());
  progress.stop();
  progress.event(event(9));
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(1);
});

test("a call that was given up is told nothing more", () => {
  const { sent, progress, call } = record();
  progress.started(aView());
  call.abort();
  progress.event(event(9, { kind: "run_cancelled", data: { reason: "the client cancelled its call" } }));
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(1);
});

test("a client that has gone does not disturb", async () => {
  let attempts = 0;
  const progress = createProgress({
    token: "p",
    heartbeat: 1000,
    clock: () => performance.now(),
    now: () => performance.now(),
    signal: new AbortController().signal,
    view: () => Promise.resolve(undefined),
    logger: silentLogger,
    notify: () => {
      attempts += 1;
      return Promise.reject(new Error("closed"));
    },
  });
  progress.started(aView());
  await vi.advanceTimersByTimeAsync(5000);
  progress.stop();
  expect(attempts).toBeGreaterThan(1);
});
