import { expect, test } from "vitest";
import type { ModelLender } from "../../src/agent/agent.ts";
import { ClientModel } from "../../src/agent/models/client-model.ts";
import { ChangeFeed } from "../../src/runs/follow.ts";
import { lenderFor } from "../../src/runs/client-model.ts";
import { LeaseLostError } from "../../src/runs/ports.ts";
import type { Run } from "../../src/runs/run.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { deferred } from "../support/harness-deferred.ts";
import {
  connect,
  databaseFile,
  FAST,
  follow,
  kinds,
  ME,
  mine,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

/** Neither beats nor looks, like a process that is stopped. */
const ASLEEP = { pollMs: 1_000_000, heartbeatMs: 1_000_000, leaseMs: 200 };

const replies = {
  call: {
    kind: "answer" as const,
    model: "lent-1",
    content: [{ type: "tool_use" as const, id: "use_0", name: "note", input: { text: "a" } }],
  },
  text: { kind: "answer" as const, model: "lent-1", content: [{ type: "text" as const, text: "noted" }] },
};

/** Two servers on one data directory, whose runs think with the model of their client. */
function twoServers() {
  const file = databaseFile();
  const time = { now: 1_000_000 };
  const notes: string[] = [];
  const open = (timing: object, lent = (lender: ModelLender) => lender) =>
    openServer(file, (_run, lender) => ({ model: new ClientModel(lent(lender)), tools: [noteTool(notes)] }), {
      clock: () => time.now,
      timing,
    });
  return { open, time, notes };
}

test("a server that lost a run asks no client for it", async () => {
  const { open, time, notes } = twoServers();
  const [asking, woken, refused] = [deferred(), deferred(), deferred()];
  let refusal: unknown;
  const sleeper = open(ASLEEP, (lender) => ({
    reply: async (...request) => {
      asking.resolve();
      await woken.promise;
      return lender.reply(...request).catch((error: unknown) => {
        refusal = error;
        refused.resolve();
        throw error;
      });
    },
  }));
  const run = await startRun(sleeper.service, "work");
  await asking.promise;
  time.now += 1000;
  const next = open({ ...FAST, lendMs: 10_000 });
  await follow(next.service, run.id, ({ kind }) => kind === "model_requested");
  const before = await mine(next.service).read.events(run.id);
  const [call] = await mine(next.service).read.modelCalls(run.id);
  woken.resolve();
  await refused.promise;
  expect(refusal).toBeInstanceOf(LeaseLostError);
  expect(await mine(next.service).read.events(run.id)).toEqual(before);
  expect(await mine(next.service).read.modelCalls(run.id)).toEqual([call]);
  await mine(next.service).control.replyToModel(run.id, call?.id ?? "", replies.call);
  await expect
    .poll(() => mine(next.service).read.modelCalls(run.id))
    .toMatchObject([{ id: expect.any(String) }]);
  const [then] = await mine(next.service).read.modelCalls(run.id);
  await mine(next.service).control.replyToModel(run.id, then?.id ?? "", replies.text);
  const { run: ended } = await reach(next.service, run.id, "completed");
  expect([ended.answer, notes]).toEqual(["noted", ["a"]]);
  const events = kinds(await follow(next.service, run.id));
  expect(events.filter((kind) => kind === "model_requested")).toHaveLength(2);
  expect(events).not.toContain("run_failed");
});

test("nor does it give up waiting for what another server asks", async () => {
  const database = connect(databaseFile());
  const runs = sqliteRuns(database);
  const work = runs.work({});
  const fresh = { runId: "run_1", newThreadId: "thr_1", environment: "e", now: 1 };
  const { run } = (await runs.create(ME, { task: "work" }, fresh)) as { run: Run };
  const open = async () => (await runs.read.picture(ME, run.id, 0, 1))?.modelCalls ?? [];
  const journal = async () => (await runs.read.journal(ME, run.id, 0, 100))?.events;
  const claim = async (owner: string, now: number) => {
    const request = { owner, environment: "e", now, expiresAt: now + 10 };
    const claimed = await runs.claimNext(request, 9);
    if (claimed === undefined) throw new Error("there is no run to claim");
    const [failures, feed]: [unknown[], ChangeFeed] = [[], new ChangeFeed()];
    const onFailure = (error: unknown) => void failures.push(error);
    const lender = lenderFor(
      { lease: claimed.lease, onFailure },
      { work, runs, feed, clock: () => now, patienceMs: 60_000 },
    );
    return { lender, feed, failures };
  };
  const request = { messages: [], maxTokens: 10 };
  const sleeper = await claim("sleeper", 1);
  const waiting = sleeper.lender.reply(request, undefined);
  for (const lease of await runs.expiredLeases(100, 10)) await runs.revoke(lease);
  const next = await claim("next", 100);
  const asking = next.lender.reply(request, undefined);
  await expect.poll(open).toHaveLength(1);
  const before = await journal();
  sleeper.feed.close(); // its waiting is over
  await expect(waiting).rejects.toThrow(LeaseLostError);
  expect(sleeper.failures).toMatchObject([{ name: "LeaseLostError" }]);
  expect(await journal()).toEqual(before);
  const [call] = await open();
  expect(call).toMatchObject({ waiting: false });
  await runs.reply(run, call?.id ?? "", replies.text, 101);
  next.feed.notify("run_1");
  expect(await asking).toEqual(replies.text);
  expect(next.failures).toEqual([]);
});
