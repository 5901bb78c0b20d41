import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { ChangeFeed, follow, PAGE, SharedTails } from "../../src/runs/follow.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import { append as appendEvent } from "../../src/runs/sql/journal.ts";
import { sqliteEngine } from "../../src/storage/sqlite/engine.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { attempts } from "../support/effort.ts";
import { openWatched } from "../support/watched-database.ts";

const RUN = "run_1";

/** A run of "me" with its journal, and how many statements its followers took since they were last counted. */
async function journal() {
  let statements = 0;
  const database = openWatched(() => (statements += 1));
  onTestFinished(() => void database.close());
  migrate(database, "runs", RUN_MIGRATIONS);
  const feed = new ChangeFeed();
  const runs = sqliteRuns(database);
  const [engine, noNews] = [sqliteEngine(database), () => undefined];
  runs.watch({ changed: (runId) => feed.notify(runId), changedElsewhere: noNews, failed: noNews }, 100_000);
  await runs.create("me", { task: "t" }, { runId: RUN, newThreadId: "thr_1", environment: "e", now: 1 });
  const tails = new SharedTails({ runs: runs.read, feed });
  const since = (): number => {
    const result = statements;
    statements = 0;
    return result;
  };
  return {
    runs,
    feed,
    since,
    /** Without news of it, as another process does it. */
    append: async (count = 1): Promise<void> => {
      const entry = {
        kind: "tool_started" as const,
        agent: [],
        data: { callId: "c", tool: "ls", summary: "ls" },
      };
      await Promise.all(Array.from({ length: count }, () => engine.note(() => appendEvent(RUN, entry, 2))));
    },
    end: () => runs.cancel("me", RUN, "enough", 3),
    follow: (after: number, principal = "me", signal = new AbortController().signal) =>
      follow<never>(principal, RUN, { after, signal }, { feed, tails }),
  };
}

const numbers = async (events: AsyncIterable<RunEvent>, seen: number[] = []): Promise<number[]> => {
  for await (const { seq } of events) seen.push(seq);
  return seen;
};

/** Reads take some turns of the event loop. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
}
const upTo = (last: number, after = 0): number[] =>
  Array.from({ length: last - after }, (_, n) => after + n + 1);

test.each([1, 50])("a change is read in two statements with %i followers", async (followers) => {
  const { append, end, feed, follow: watch, since, runs } = await journal();
  const all = Array.from({ length: followers }, () => numbers(watch(0)));
  // Each that begins looks by itself.
  do await settled();
  while (since() > 0);
  for (let change = 0; change < 20; change += 1) {
    await append(3);
    since();
    feed.notify(RUN);
    await settled();
    expect(since()).toBe(2);
  }
  await end();
  const { lastSeq } = (await runs.read.run("me", RUN))!;
  for (const seen of await Promise.all(all)) expect(seen).toEqual(upTo(lastSeq));
});

test("what other processes wrote is there for whoever begins to follow, before anybody tells of it", async () => {
  const { append, follow: watch } = await journal();
  const first = watch(0);
  expect((await first.next()).value?.seq).toBe(1);
  await append(2);
  const second = watch(1);
  expect((await second.next()).value?.seq).toBe(2);
  expect((await second.next()).value?.seq).toBe(3);
  await Promise.all([first.return(), second.return()]);
});

test("every follower gets every event once and in order, however far behind it is and however it reads", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          written: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 3 * PAGE })),
          told: fc.boolean(),
          joins: fc.option(fc.nat(2 * PAGE)),
          turns: fc.integer({ min: 0, max: 3 }),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      async (moves) => {
        const { append, end, feed, follow: watch, runs } = await journal();
        const followers: { after: number; seen: Promise<number[]> }[] = [];
        for (const { written, told, joins, turns } of moves) {
          await append(written);
          if (joins !== null)
            followers.push({ after: joins, seen: numbers(slowly(watch(joins), joins % 3)) });
          if (told) feed.notify(RUN);
          for (let turn = 0; turn < turns; turn += 1) await settled();
        }
        await end();
        const { lastSeq } = (await runs.read.run("me", RUN))!;
        for (const { after, seen } of followers)
          expect(await seen).toEqual(upTo(lastSeq, Math.min(after, lastSeq)));
      },
    ),
    attempts(40),
  );
});

/** Takes `turns` turns of the event loop after every hundredth event. */
async function* slowly(events: AsyncIterable<RunEvent>, turns: number): AsyncGenerator<RunEvent> {
  for await (const event of events) {
    yield event;
    if (event.seq % 100 === 0) for (let turn = 0; turn < turns; turn += 1) await settled();
  }
}

test("a stranger is given nothing while the owner follows, and nothing of an unknown run is kept", async () => {
  const { append, feed, follow: watch, since } = await journal();
  const own = watch(0);
  await own.next();
  expect(await numbers(watch(0, "you"))).toEqual([]);
  await own.return();
  await append();
  since();
  feed.notify(RUN);
  await settled();
  expect(since()).toBe(0);
});
