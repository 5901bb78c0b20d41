import { describe, expect, onTestFinished, test } from "vitest";
import { createLogger, silentLogger } from "../../src/core/logger.ts";
import { type CourierOptions, Courier, settledBy } from "../../src/runs/courier.ts";
import { NEWS_TYPES, type News, type SendResult } from "../../src/runs/news.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { deferred } from "../support/harness-deferred.ts";
import { ME, connect, databaseFile } from "./support.ts";

const thrice = <T>(value: T): T[] => [value, value, value];

const START = 1_000_000;
const E = "e";
const FAILED: SendResult = { ok: false, problem: "answered 503" };

/** Servers on one file, whose clock the test sets. */
function world() {
  const file = databaseFile();
  const at = { now: START };
  let number = 0;
  const end = async (runs: RunRepository, count = 1): Promise<void> => {
    for (let done = 0; done < count; done += 1) {
      number += 1;
      const ids = { runId: `run_${number}`, newThreadId: `thr_${number}` };
      await runs.create(ME, { task: "work" }, { ...ids, environment: E, now: at.now });
      const claim = { owner: "a", environment: E, now: at.now, expiresAt: 10 ** 9 };
      const lease = (await runs.claimNext(claim, 9))?.lease;
      if (lease === undefined) throw new Error("nothing to claim");
      await runs.work({}).fail(lease, { reason: "internal", message: "broken" }, at.now);
    }
  };
  return { at, end, connect: () => sqliteRuns(connect(file)) };
}

/** A channel that notes what it was given, and answers as the test says. */
function channel(
  target: string,
  answer: (news: News, signal: AbortSignal) => Promise<SendResult> | SendResult,
) {
  const sent: string[] = [];
  return {
    sent,
    target,
    types: NEWS_TYPES,
    send: async (news: News, signal: AbortSignal) => {
      sent.push(news.id);
      return answer(news, signal);
    },
  };
}

function open(runs: RunRepository, now: () => number, more: Partial<CourierOptions>): Courier {
  const options = {
    news: runs.news,
    environment: E,
    clock: now,
    log: silentLogger,
    checkMs: 5,
    random: () => 0.5,
  };
  const courier = new Courier({ ...options, channels: [], ...more });
  onTestFinished(() => courier.close());
  return courier;
}

const accepting = (target: string) => channel(target, () => ({ ok: true }));
const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `run_${from + index}_2_run_failed`);

describe("a courier", () => {
  test("sends every message once to each channel, in order", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    const [one, two] = [accepting("one"), accepting("two")];
    open(runs, () => at.now, { channels: [one, two] });
    await end(runs, 5);
    await expect.poll(() => two.sent.length).toBe(5);
    await expect.poll(() => runs.news.list(9)).toEqual([]);
    expect(one.sent).toEqual(ids(1, 5));
    expect(two.sent).toEqual(ids(1, 5));
  });

  test("sends what a server left behind that was killed in an attempt, and with the same id", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    const killed = channel("one", () => new Promise(() => undefined));
    // Nobody closes it.
    void new Courier({
      news: runs.news,
      environment: E,
      clock: () => at.now,
      log: silentLogger,
      channels: [killed],
    });
    await end(runs, 2);
    await expect.poll(() => killed.sent).toEqual(ids(1, 1));

    const later = accepting("one");
    open(connect(), () => at.now, { channels: [later] });
    // The second message was not under way.
    await expect.poll(() => later.sent).toEqual(ids(2, 2));
    at.now += 59_000;
    expect(later.sent).toHaveLength(1);
    at.now += 1000;
    await expect.poll(() => later.sent).toEqual([...ids(2, 2), ...ids(1, 1)]);
    await expect.poll(() => runs.news.list(9)).toEqual([]);
  });

  test("sends each message once, however many servers there are", async () => {
    const { at, end, connect } = world();
    const channels = [accepting("one"), accepting("one"), accepting("one")];
    const servers = channels.map((one) => {
      const runs = connect();
      open(runs, () => at.now, { channels: [one] });
      return runs;
    });
    for (const runs of servers) await end(runs, 4);
    await expect.poll(() => channels.flatMap(({ sent }) => sent).length).toBe(12);
    await expect.poll(() => servers[0]?.news.list(9)).toEqual([]);
    expect(new Set(channels.flatMap(({ sent }) => sent)).size).toBe(12);
  });

  test("tries again with growing pauses, then gives up, and a person sends it once more", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    let answer: SendResult = FAILED;
    const one = channel("one", () => answer);
    const courier = open(runs, () => at.now, { channels: [one] });
    await end(runs);
    const dueTimes: number[] = [];
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      await expect.poll(() => one.sent.length).toBe(attempt);
      await expect.poll(async () => (await runs.news.list(1))[0]?.problem).toBe("answered 503");
      await expect
        .poll(async () => ((await runs.news.list(1))[0]?.dueAt ?? Infinity) > at.now + 60_000 || attempt < 3)
        .toBe(true);
      const [{ dueAt } = {}] = await runs.news.list(1);
      if (dueAt === undefined) break;
      dueTimes.push(dueAt - at.now);
      at.now += 24 * 3_600_000;
    }
    expect(one.sent).toEqual(Array(9).fill(ids(1, 1)[0]));
    await expect.poll(() => runs.news.countDead()).toBe(1);
    answer = { ok: true };
    expect(await runs.news.retry(undefined, at.now)).toBe(1);
    await courier.look();
    await expect.poll(() => runs.news.list(1)).toEqual([]);
    expect(one.sent).toHaveLength(10);
  });

  test("lets no channel wait for another", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    const slow = channel("slow", () => new Promise(() => undefined));
    const fast = accepting("fast");
    open(runs, () => at.now, { channels: [slow, fast], patienceMs: 0 });
    await end(runs, 3);
    await expect.poll(() => fast.sent).toEqual(ids(1, 3));
    expect(slow.sent).toEqual(ids(1, 1));
  });

  test("asks a receiver that nobody answers for once for all its messages, and goes on when it is back", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    let answer: SendResult = { ok: false, problem: "nobody answers", isUnreachable: true };
    const gone = channel("gone", () => answer);
    const other = accepting("other");
    await open(runs, () => at.now, { channels: [gone, other] }).close();
    runs.news.open([gone, other], () => undefined);
    await end(runs, 3);
    open(runs, () => at.now, { channels: [gone, other] });
    await expect.poll(() => other.sent).toEqual(ids(1, 3));
    const state = async () => (await runs.news.list(9)).map(({ attempts, dueAt }) => [attempts, dueAt]);
    await expect.poll(state).toEqual(thrice([1, START + 5000]));
    // What happens during the pause waits, too.
    await end(runs);
    await expect.poll(() => other.sent).toEqual(ids(1, 4));
    expect(gone.sent).toHaveLength(1);
    at.now += 5000;
    await expect.poll(state).toEqual([...thrice([2, START + 35_000]), [1, START + 10_000]]);
    expect(gone.sent).toHaveLength(2);
    answer = { ok: true };
    at.now += 30_000;
    await expect.poll(() => runs.news.list(9)).toEqual([]);
    expect(new Set(gone.sent)).toEqual(new Set(ids(1, 4)));
  });

  test("pauses a receiver that is silent by its own list of times, never longer than a minute", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    const gone = channel("gone", () => ({ ok: false, problem: "nobody answers", isUnreachable: true }));
    const pauses: unknown[] = [];
    const log = createLogger("info", (line) => {
      const { event, forMs }: { event: string; forMs?: number } = JSON.parse(line);
      if (event === "news.receiver_paused") pauses.push(forMs);
    });
    open(runs, () => at.now, { channels: [gone], log });
    const expected = [5000, 30_000, 60_000, 60_000];
    for (const [index, pause] of expected.entries()) {
      await end(runs);
      await expect.poll(() => pauses).toEqual(expected.slice(0, index + 1));
      expect(gone.sent).toHaveLength(index + 1);
      at.now += pause;
    }
  });

  test("leaves messages of channels that it does not have", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    runs.news.open([{ target: "gone", types: NEWS_TYPES }], () => undefined);
    await end(runs);
    const one = accepting("one");
    open(runs, () => at.now, { channels: [one] });
    await end(runs);
    await expect.poll(() => one.sent).toEqual(ids(2, 2));
    expect(await runs.news.list(9)).toMatchObject([{ target: "gone", attempts: 0 }]);
  });

  test("lets attempts end when it is closed, and breaks off slow ones, which do not count", async () => {
    const { at, end, connect } = world();
    const runs = connect();
    const done = deferred();
    const quick = channel("quick", async () => {
      await done.promise;
      return { ok: true };
    });
    const slow = channel("slow", (_news, signal) => {
      return new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new Error("aborted"))),
      );
    });
    const courier = open(runs, () => at.now, { channels: [quick, slow], patienceMs: 50 });
    await end(runs, 2);
    await expect.poll(() => slow.sent.length + quick.sent.length).toBe(2);
    const closed = courier.close();
    done.resolve();
    await closed;
    expect(quick.sent).toEqual(ids(1, 2));
    expect(await runs.news.list(9)).toMatchObject([
      { target: "slow", attempts: 0, dueAt: START },
      { target: "slow", attempts: 0, dueAt: START },
    ]);
    await end(runs);
    expect(quick.sent).toHaveLength(2);
  });
});

describe("after a failure", () => {
  const settled = (
    result: Omit<Extract<SendResult, { ok: false }>, "ok" | "problem">,
    attempts = 1,
    random = 0.5,
  ) => settledBy({ ok: false, problem: "a\nb", ...result }, { attempts, now: 0, random: () => random });

  test("the pause grows, is spread, and is as long as the receiver asks", () => {
    const pauses = Array.from({ length: 8 }, (_, index) => settled({}, index + 1));
    expect(pauses.map((one) => (one.kind === "again" ? one.dueAt / 1000 : one.kind))).toEqual([
      5, 30, 120, 600, 1800, 7200, 21_600, 54_000,
    ]);
    expect(settled({}, 9)).toEqual({ kind: "dead", now: 0, problem: "a b" });
    expect([settled({}, 1, 0), settled({}, 1, 1)]).toMatchObject([{ dueAt: 4000 }, { dueAt: 6000 }]);
    expect(settled({ afterMs: 90_000 })).toMatchObject({ kind: "again", dueAt: 90_000 });
    expect(settled({ afterMs: 10 ** 12 })).toMatchObject({ kind: "again", dueAt: 24 * 3_600_000 });
    expect(settled({ isFinal: true })).toMatchObject({ kind: "dead" });
  });
});
