import { callRequests } from "../../src/runs/asked-events.ts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { HitlRequest } from "../../src/agent/agent.ts";
import { entryOf } from "../../src/runs/events.ts";
import {
  type Claim,
  type ClaimRequest,
  LeaseLostError,
  type Lease,
  type RecentEvents,
} from "../../src/runs/ports.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import { MAX_SHARES } from "../../src/runs/shares.ts";
import type { Run, SamplingReply } from "../../src/runs/run.ts";

export interface RunData {
  /** One more server on the same data. */
  connect(): Promise<RunRepository>;
  close(): Promise<void>;
}

const ME = "me";
const DAY = 86_400_000;
const CALL = { agent: [], messageId: "m1", callId: "c1" } as const;
const REPLY: SamplingReply = { kind: "answer", model: "m", content: [{ type: "text", text: "four" }] };

const asks = (count = 1): HitlRequest => ({
  actionRequests: Array.from({ length: count }, (_, index) => ({
    name: "note",
    args: { text: `n${index}` },
    description: "Note",
    toolCallId: `c${index}`,
    same: { key: "note", text: "every note" },
  })),
  reviewConfigs: [],
});

/** What every driver of `RunRepository` does, whatever it stores runs in. */
export function runRepositoryContract(
  name: string,
  open: () => Promise<RunData>,
  options: { tags?: string } = {},
): void {
  describe(`runs in ${name}`, options, () => {
    let data: RunData;
    let runs: RunRepository;
    let now = 1_000_000;
    let number = 0;

    beforeEach(async () => {
      data = await open();
      onTestFinished(() => data.close());
      runs = await data.connect();
    });

    const fresh = (extra: object = {}) => {
      number += 1;
      return { runId: `run_${number}`, newThreadId: `thr_${number}`, environment: "e", now, ...extra };
    };
    const begin = async (principal = ME, request: object = {}): Promise<Run> => {
      const created = await runs.create(principal, { task: "work", ...request }, fresh());
      if (created.kind !== "created") throw new Error(`not created: ${created.kind}`);
      return created.run;
    };
    const claiming = (owner = "a", extra: Partial<ClaimRequest> = {}): ClaimRequest => ({
      owner,
      environment: "e",
      now,
      expiresAt: now + 10_000,
      ...extra,
    });
    const claim = async (owner = "a"): Promise<Claim> => {
      const claimed = await runs.claimNext(claiming(owner), 10);
      if (claimed === undefined) throw new Error("nothing to claim");
      return claimed;
    };
    const work = () => runs.work({});
    const kinds = async (run: Run): Promise<string[]> =>
      (await runs.read.journal(ME, run.id, 0, 1000))?.events.map(({ kind }) => kind) ?? [];
    const status = async (run: Run) => (await runs.read.run(ME, run.id))?.status;
    /** A run whose agent asks, and then waits with its lease given back. */
    const waiting = async (count = 1): Promise<{ run: Run; lease: Lease }> => {
      const run = await begin();
      const { lease } = await claim();
      await work().ask(lease, [], "i1", callRequests(asks(count)), now);
      const interrupts = [{ id: "i1", request: asks(count) }];
      expect(
        await work().pause(
          lease,
          { interrupts, questions: [], modelAwaited: false, childAwaited: false },
          [],
          work().inbox(lease),
          now,
        ),
      ).toBe("waiting");
      return { run, lease };
    };
    /** Gives the lease back with nothing open, after `delivered` was handed over. */
    const stopped = (lease: Lease, delivered: { interruptId: string; again: boolean }[] = []) =>
      work().pause(
        lease,
        { interrupts: [], questions: [], modelAwaited: false, childAwaited: false },
        delivered,
        work().inbox(lease),
        now,
      );
    const approvalOf = async (run: Run, index = 0) => {
      const approval = await runs.read.request(ME, run.id, `i1:${index}`);
      if (approval === undefined) throw new Error("no such approval");
      return approval;
    };

    describe("a start", () => {
      test("stores the run with its first event, for its principal alone", async () => {
        const run = await begin();
        expect(run).toMatchObject({ principal: ME, task: "work", status: "working", lastSeq: 1 });
        expect(await kinds(run)).toEqual(["run_started"]);
        expect(await runs.read.run("you", run.id)).toBeUndefined();
        expect(await runs.read.journal("you", run.id, 0, 9)).toBeUndefined();
        expect(await runs.read.picture("you", run.id, 0, 9)).toBeUndefined();
        expect(await runs.read.list("you", { limit: 9 })).toEqual([]);
        expect(await runs.cancel("you", run.id, "", now)).toBeUndefined();
        expect(await runs.send("you", run.id, { id: "m", text: "t", now })).toEqual({ kind: "not_found" });
      });

      test("is made once for a key, however many come at once", async () => {
        const others = await Promise.all([data.connect(), data.connect()]);
        const request = { task: "work", idempotencyKey: "k" };
        const made = await Promise.all(
          [runs, ...others, runs].map((one) => one.create(ME, request, fresh())),
        );
        expect(made.map(({ kind }) => kind).toSorted()).toEqual(["created", ...Array(3).fill("existing")]);
        expect(await runs.read.list(ME, { limit: 9 })).toHaveLength(1);
        const conflict = { task: "other", idempotencyKey: "k" };
        expect(await runs.create(ME, conflict, fresh())).toMatchObject({ kind: "conflict" });
        expect(await runs.create("you", conflict, fresh())).toMatchObject({ kind: "created" });
      });

      test("keeps the model and the limits that were chosen for it", async () => {
        const chosen = { model: "a:b", limits: { costUsd: 0.25, tokens: 9 } };
        const run = await begin(ME, chosen);
        expect(run).toMatchObject(chosen);
        expect((await claim()).run).toMatchObject(chosen);
        const plain = await begin();
        expect([plain.model, plain.limits]).toEqual([undefined, undefined]);
      });

      test("goes into a thread of the principal that nobody works in", async () => {
        const first = await begin();
        const next = { task: "more", threadId: first.threadId };
        expect(await runs.create(ME, next, fresh())).toMatchObject({
          kind: "thread_busy",
          run: { id: first.id },
        });
        expect(await runs.create("you", next, fresh())).toEqual({ kind: "thread_not_found" });
        await runs.cancel(ME, first.id, "enough", now);
        const second = await begin(ME, next);
        expect(second.threadId).toBe(first.threadId);
        expect((await runs.read.list(ME, { limit: 9 })).map(({ id }) => id)).toEqual([second.id, first.id]);
        expect((await runs.read.list(ME, { limit: 9, before: second.id })).map(({ id }) => id)).toEqual([
          first.id,
        ]);
      });

      test("counts each of its subagents once, queued ones too, and those that a cancel broke off", async () => {
        const run = await begin();
        const { lease } = await claim();
        const about = (callId: string) => ({ agent: [{ callId, name: "n" }], callId, name: "n" });
        const told = async (kind: "subagent_queued" | "subagent_started", callId: string): Promise<void> =>
          work().record(lease, [entryOf({ kind, ...about(callId), description: "d" })], now);
        await told("subagent_started", "a");
        await told("subagent_queued", "b");
        await told("subagent_queued", "b");
        await told("subagent_started", "b");
        await told("subagent_queued", "c");
        const end = { kind: "subagent_finished" as const, status: "success" as const, report: "r" };
        await work().record(lease, [entryOf({ ...end, ...about("a") })], now);
        const listed = async () => (await runs.read.summaries(ME, {}, { limit: 1 }))[0]?.subagents;
        expect(await listed()).toEqual({ completed: 1, failed: 0, cancelled: 0, open: 2 });
        await runs.cancel(ME, run.id, "enough", now);
        expect(await listed()).toEqual({ completed: 1, failed: 0, cancelled: 2, open: 0 });
      });

      test("is listed with what it cost and came to, by status and by words", async () => {
        const asking = await waiting(2);
        const done = await begin(ME, { task: "count" });
        const { lease: own } = await claim();
        await begin("you", { task: "Ärger" });
        const open = await begin(ME, { task: "100% of Ärger" });
        const usage = { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1 };
        const agent = [{ callId: "c", name: "n" }];
        const call = { kind: "model_called" as const, agent, model: "m", usage, text: "" };
        const sub = { agent, callId: "c", name: "n" };
        const costs: (number | undefined)[] = [];
        for (const event of [
          { ...sub, kind: "subagent_started" as const, description: "d" },
          { ...call, costUsd: 0.25 },
          call,
          { ...sub, kind: "subagent_finished" as const, status: "error" as const, report: "r" },
        ]) {
          await work().record(own, [entryOf(event)], now);
          const { costUsd } = (await runs.read.run(ME, done.id)) ?? {};
          costs.push(costUsd);
        }
        expect(costs).toEqual([0, 0.25, undefined, undefined]);
        await work().complete(own, { answer: "It is FORTY_TWO" }, work().inbox(own), now + 5);
        const listed = await runs.read.summaries(ME, {}, { limit: 9 });
        expect(listed.map(({ id }) => id)).toEqual([open.id, done.id, asking.run.id]);
        expect(listed[1]).toMatchObject({
          status: "completed",
          endedAt: now + 5,
          usage: { inputTokens: 6, outputTokens: 4, cachedInputTokens: 2 },
          costUsd: 0.25,
          hasUnknownCost: true,
          subagents: { completed: 0, failed: 1, cancelled: 0, open: 0 },
          pending: 0,
          outcome: "It is FORTY_TWO",
        });
        expect(listed[2]).toMatchObject({ status: "input_required", pending: 2, costUsd: 0 });
        expect(listed[0]).not.toHaveProperty("outcome");
        const found = async (text: string) =>
          (await runs.read.summaries(ME, { text }, { limit: 9 })).map(({ id }) => id);
        expect(await found("forty_two")).toEqual([done.id]);
        expect(await found("fortyxtwo")).toEqual([]);
        expect(await found("100%")).toEqual([open.id]);
        expect(await found("Ärger")).toEqual([open.id]);
        const byStatus = await runs.read.summaries(ME, { status: "input_required" }, { limit: 9 });
        expect(byStatus.map(({ id }) => id)).toEqual([asking.run.id]);
        expect(
          (await runs.read.summaries(ME, {}, { limit: 1, before: open.id })).map(({ id }) => id),
        ).toEqual([done.id]);
        const ofThread = await runs.read.summaries(ME, { threadId: done.threadId }, { limit: 9 });
        expect(ofThread.map(({ id }) => id)).toEqual([done.id]);
        expect(await runs.read.summaries("you", { threadId: done.threadId }, { limit: 9 })).toEqual([]);
        const both = await runs.read.summaries(ME, { threadId: done.threadId, text: "ärger" }, { limit: 9 });
        expect(both).toEqual([]);
        expect(await runs.read.counts(ME)).toEqual({
          working: 1,
          input_required: 1,
          completed: 1,
          failed: 0,
          cancelled: 0,
        });
        const recent = async (wanted: Omit<RecentEvents, "limit">, limit = 9) =>
          (await runs.read.recentEvents(ME, done.id, { ...wanted, limit }))?.map(({ kind }) => kind);
        expect(await recent({ agent })).toEqual([
          "subagent_finished",
          "model_called",
          "model_called",
          "subagent_started",
        ]);
        expect(await recent({ kinds: ["run_started", "subagent_started"] })).toEqual([
          "subagent_started",
          "run_started",
        ]);
        expect(await recent({ before: 3 }, 1)).toEqual(["subagent_started"]);
        expect(await runs.read.recentEvents("you", done.id, { limit: 9 })).toBeUndefined();
        const pending = await runs.read.pending(ME, 9);
        expect(pending.map(({ id, task }) => [id, task])).toEqual([
          ["i1:0", "work"],
          ["i1:1", "work"],
        ]);
        expect(await runs.read.pending("you", 9)).toEqual([]);
        expect([await runs.read.countPending(ME), await runs.read.countPending("you")]).toEqual([2, 0]);
      });

      test("is refused when too many are open", async () => {
        await begin();
        const limited = { openRuns: 1, environment: "e" };
        expect(await runs.read.obstacle(ME, { task: "t" }, limited)).toEqual({
          kind: "too_many_open",
          limit: 1,
        });
        expect(await runs.create(ME, { task: "t" }, fresh(limited))).toEqual({
          kind: "too_many_open",
          limit: 1,
        });
        expect(await runs.read.obstacle("you", { task: "t" }, limited)).toBeUndefined();
      });

      test("at a point takes over the thread that was noted for it, once", async () => {
        const source = await begin();
        const request = { task: "again", threadId: `${source.threadId}@3` };
        expect(await runs.create(ME, request, fresh())).toEqual({ kind: "copy_given_up" });
        await runs.beginCopy(ME, "thr_copy", now);
        const made = await runs.create(ME, request, fresh({ newThreadId: "thr_copy" }));
        expect(made).toMatchObject({
          kind: "created",
          run: { threadId: "thr_copy", forkedFrom: request.threadId },
        });
        await runs.cancel(ME, (made as { run: Run }).run.id, "", now);
        expect(await runs.create(ME, request, fresh({ newThreadId: "thr_copy" }))).toEqual({
          kind: "copy_given_up",
        });
      });

      test("whose answer no client got is joined by the same request, until it is answered", async () => {
        const request = { task: "work", askedAt: now };
        const run = await begin(ME, request);
        const again = { task: "work", askedAt: now + 5 };
        expect(await runs.read.obstacle(ME, again, { environment: "e" })).toMatchObject({
          kind: "joined",
          run: { id: run.id },
        });
        await runs.awaitedBy(ME, run.id, again);
        await runs.answered(ME, run.id, now); // the earlier call
        await runs.answered("you", run.id, now + 5);
        expect(await runs.read.obstacle(ME, again, { environment: "e" })).toMatchObject({ kind: "joined" });
        await runs.answered(ME, run.id, now + 5);
        expect(await runs.read.obstacle(ME, again, { environment: "e" })).toBeUndefined();
      });
    });

    describe("a link to a run", () => {
      const share = (run: Run, id: string, extra: object = {}) => ({
        id,
        runId: run.id,
        principal: ME,
        createdAt: now,
        expiresAt: now + 1000,
        opened: 0,
        ...extra,
      });

      test("is found until it expires or is taken back, by any server", async () => {
        const run = await begin();
        const [first, second] = [share(run, "s1"), share(run, "s2", { expiresAt: now + 2000 })];
        expect([await runs.shares.add(first, MAX_SHARES), await runs.shares.add(second, MAX_SHARES)]).toEqual(
          [true, true],
        );
        const other = await data.connect();
        expect(await other.shares.find("s1", now)).toEqual(first);
        await other.shares.countOpening(first);
        expect(await runs.shares.find("s1", now)).toMatchObject({ opened: 1 });
        expect((await runs.shares.access(now, ME)).map(({ id }) => id)).toEqual(["s1", "s2"]);
        expect(await runs.shares.find("s1", now + 1000)).toBeUndefined();
        expect((await runs.shares.access(now + 1000, ME)).map(({ id }) => id)).toEqual(["s2"]);
        expect(await other.shares.revoke(ME, "s2")).toBe(true);
        expect(await runs.shares.find("s2", now)).toBeUndefined();
        expect(await runs.shares.revoke(ME, "s2")).toBe(false);
      });

      test("is its owner's alone to make, to see and to take back", async () => {
        const run = await begin();
        expect(await runs.shares.add(share(run, "s1", { principal: "you" }), MAX_SHARES)).toBeUndefined();
        await runs.shares.add(share(run, "s2"), MAX_SHARES);
        expect(await runs.shares.access(now, "you")).toEqual([]);
        expect(await runs.shares.revoke("you", "s2")).toBe(false);
        expect(await runs.shares.find("s2", now)).toMatchObject({ principal: ME, runId: run.id });
      });

      test("is one of a few; those that have expired make room, and none outlives its run", async () => {
        const run = await begin();
        for (let made = 0; made < MAX_SHARES; made += 1)
          await runs.shares.add(share(run, `s${made}`), MAX_SHARES);
        expect(await runs.shares.add(share(run, "more"), MAX_SHARES)).toBe(false);
        expect(
          await runs.shares.add(
            share(run, "later", { createdAt: now + 1000, expiresAt: now + 2000 }),
            MAX_SHARES,
          ),
        ).toBe(true);
        await runs.cancel(ME, run.id, "enough", now);
        expect(await runs.disown(ME, run.id)).toBe(true);
        expect(await runs.shares.find("later", now)).toMatchObject({ principal: "" });
        await runs.prune({}, { checkpoints: undefined, now, signal: new AbortController().signal });
        expect(await runs.shares.find("later", now)).toBeUndefined();
      });
    });

    describe("a claim", () => {
      test("is given once, in the order of starts, and in its environment", async () => {
        const [first, second] = [await begin(), await begin()];
        const other = await data.connect();
        const claims = await Promise.all([
          runs.claimNext(claiming("a"), 9),
          other.claimNext(claiming("b"), 9),
        ]);
        expect(claims.map((one) => one?.run.id).toSorted()).toEqual([first.id, second.id].toSorted());
        expect(await runs.claimNext(claiming("a"), 9)).toBeUndefined();
        await begin();
        expect(await runs.claimNext(claiming("a", { environment: "elsewhere" }), 9)).toBeUndefined();
      });

      test("goes to the principal with the fewest runs at work", async () => {
        await begin();
        await begin();
        const yours = await begin("you");
        await claim();
        expect((await runs.claimNext(claiming("b"), 9))?.run.id).toBe(yours.id);
      });

      test("of a run that has ended keeps all other runs of its thread waiting, and the other way round", async () => {
        const run = await begin();
        const { lease } = await claim();
        const request = { id: run.id, owner: "b", now, expires: now + 10_000 };
        expect(await runs.leaseEnded(ME, request)).toBeUndefined();
        expect(await runs.isHeld(lease)).toBe(true);
        await work().complete(lease, { answer: "done" }, work().inbox(lease), now);
        expect(await runs.isHeld(lease)).toBe(false);
        expect(await runs.leaseEnded("you", request)).toBeUndefined();
        const other = await data.connect();
        const asked = [runs, other, runs].map((one, index) =>
          one.leaseEnded(ME, { ...request, owner: `b${index}` }),
        );
        const [ended, ...more] = (await Promise.all(asked)).filter((one) => one !== undefined);
        if (ended === undefined) throw new Error("not leased");
        expect(more).toEqual([]);
        expect(await other.isHeld(ended)).toBe(true);
        await runs.create(ME, { task: "more", threadId: run.threadId }, fresh());
        expect(await runs.claimNext(claiming(), 9)).toBeUndefined();
        for (const one of await runs.leases()) await runs.revoke(one);
        expect(await runs.isHeld(ended)).toBe(false);
        expect((await claim()).run.threadId).toBe(run.threadId);
        expect(await runs.leaseEnded(ME, request)).toBeUndefined();
      });

      test("of a run tells where the others stand in line", async () => {
        await begin();
        const second = await begin();
        await claim();
        const picture = await runs.read.picture(ME, second.id, 0, 9);
        expect(picture?.place).toEqual({ number: 1, waiting: 1, atWork: 1 });
        const third = await begin("you");
        const listed = await runs.read.summaries(ME, {}, { limit: 9 });
        expect(listed.map(({ place }) => place)).toEqual([{ number: 2, waiting: 2, atWork: 1 }, undefined]);
        expect(await runs.read.summaries("you", {}, { limit: 9 })).toMatchObject([
          { id: third.id, place: { number: 1, waiting: 2, atWork: 1 } },
        ]);
      });

      test("is listed for the operator, whoever owns it", async () => {
        const mine = await begin();
        const yours = await begin("you");
        const last = await begin();
        expect((await runs.listAll(9)).map(({ id, principal }) => [id, principal])).toEqual([
          [last.id, ME],
          [yours.id, "you"],
          [mine.id, ME],
        ]);
        expect((await runs.listAll(1)).map(({ id }) => id)).toEqual([last.id]);
      });

      test("of many runs is counted: what waits and since when, and what is at work", async () => {
        expect(await runs.statistics()).toMatchObject({ waiting: 0, atWork: 0 });
        await begin();
        await begin();
        await claim();
        expect(await runs.statistics()).toMatchObject({
          waiting: 1,
          atWork: 1,
          waitingSince: expect.any(Number),
        });
      });

      test("lasts while it is renewed, and is taken away when it was not", async () => {
        const run = await begin();
        const { lease } = await claim();
        expect(await runs.ownedBy("a")).toEqual([{ id: run.id, epoch: lease.epoch, status: "working" }]);
        await runs.renew("a", [run.id], now + 5000, now + 15_000);
        expect(await runs.expiredLeases(now + 14_000, 10_000)).toEqual([]);
        const [seen] = await runs.expiredLeases(now + 15_000, 10_000);
        expect(seen).toMatchObject({ runId: run.id, owner: "a", epoch: lease.epoch });
        await runs.renew("a", [run.id], now + 16_000, now + 26_000);
        if (seen) await runs.revoke(seen); // too late: it was renewed
        const [held] = await runs.leases();
        expect(held).toMatchObject({ runId: run.id, owner: "a" });
        if (held) await runs.revoke(held);
        const next = await claim("b");
        expect(next).toMatchObject({ recovered: true, lease: { owner: "b", epoch: lease.epoch + 1 } });
        expect(await kinds(run)).toEqual(["run_started", "run_resumed"]);
        await runs.release(lease);
        expect(await runs.ownedBy("b")).toHaveLength(1);
      });

      test("that is lost lets nothing be written any more", async () => {
        const run = await begin();
        const { lease } = await claim();
        for (const one of await runs.leases()) await runs.revoke(one);
        await claim("a"); // by the same server
        const before = await kinds(run);
        const log = work();
        const warning = entryOf({ kind: "warning", agent: [], message: "late" });
        const attempts = [
          () => log.nextInput(lease),
          () => log.markHandedOver(lease),
          () => log.record(lease, [warning], now),
          () => log.ask(lease, [], "i1", callRequests(asks()), now),
          () => stopped(lease),
          () => log.complete(lease, { answer: "" }, log.inbox(lease), now),
          () => log.fail(lease, { reason: "internal", message: "" }, now),
          () => log.park(lease, true, now),
          () => log.askModel(lease, { messages: [], maxTokens: 1 }, now),
          async () =>
            log
              .effectLog(
                lease,
                () => now,
                () => undefined,
              )
              .begin(CALL, "t"),
        ];
        for (const attempt of attempts) await expect(attempt()).rejects.toThrow(LeaseLostError);
        expect(await kinds(run)).toEqual(before);
      });

      test("of a run that keeps ending its server ends the run", async () => {
        const run = await begin();
        for (let crash = 0; crash < 2; crash += 1) {
          expect(await runs.claimNext(claiming(), 2)).toBeDefined();
          for (const one of await runs.leases()) await runs.revoke(one);
        }
        expect(await runs.claimNext(claiming(), 2)).toBeUndefined();
        expect(await runs.read.run(ME, run.id)).toMatchObject({
          status: "failed",
          failure: { reason: "server_crashes" },
        });
      });

      test("of a parked run is no crash, and goes on from where it was", async () => {
        const run = await begin();
        for (let restart = 0; restart < 5; restart += 1) {
          const { lease } = await claim();
          await work().park(lease, true, now);
        }
        const { lease } = await claim();
        await work().markHandedOver(lease);
        await work().park(lease, true, now);
        expect(await work().nextInput((await claim()).lease)).toEqual({ kind: "continue" });
        expect(await status(run)).toBe("working");
      });
    });

    describe("work", () => {
      test("is journalled without gaps, and a repeat changes nothing", async () => {
        const run = await begin();
        const { lease } = await claim();
        const usage = { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1 };
        const tool = { agent: [], callId: "c", tool: "ls", summary: "ls" };
        const todos = [{ content: "one", status: "pending" as const }];
        const entries = [
          entryOf({ kind: "tool_started", ...tool }),
          entryOf({ kind: "tool_started", ...tool }),
          entryOf({ kind: "tool_finished", status: "success", ...tool }),
          entryOf({ kind: "todos", agent: [], todos }),
          entryOf({ kind: "todos", agent: [], todos }),
          entryOf({ kind: "model_called", agent: [], model: "m", usage, text: "so far" }),
        ];
        for (const entry of entries) await work().record(lease, [entry], now);
        const page = await runs.read.journal(ME, run.id, 0, 100);
        expect(page?.events.map(({ seq, kind }) => [seq, kind])).toEqual([
          [1, "run_started"],
          [2, "tool_started"],
          [3, "tool_finished"],
          [4, "todos"],
          [5, "model_called"],
        ]);
        expect(await runs.read.run(ME, run.id)).toMatchObject({ usage, todos, lastSeq: 5 });
        expect((await runs.read.journal(ME, run.id, 2, 2))?.events.map(({ seq }) => seq)).toEqual([3, 4]);
      });

      test("ends with an answer, once what the run was told is read", async () => {
        const run = await begin();
        const { lease } = await claim();
        const inbox = work().inbox(lease);
        expect(await runs.send(ME, run.id, { id: "m1", text: "also this", now })).toMatchObject({
          kind: "sent",
        });
        expect(await work().complete(lease, { answer: "done" }, inbox, now)).toBe("unread");
        expect(await inbox.messages()).toEqual([{ id: "m1", text: "also this" }]);
        expect(await work().complete(lease, { answer: "done", structured: { n: 1 } }, inbox, now)).toBe(
          "completed",
        );
        expect(await runs.read.run(ME, run.id)).toMatchObject({
          status: "completed",
          answer: "done",
          structured: { n: 1 },
          endedAt: now,
        });
        expect(await kinds(run)).toEqual(["run_started", "message_received", "run_completed"]);
        expect(await runs.leases()).toEqual([]);
        await expect(work().fail(lease, { reason: "internal", message: "" }, now)).rejects.toThrow(
          LeaseLostError,
        );
      });

      test("keeps a text with a NUL whole: it becomes the mark of a character that cannot be shown", async () => {
        const [text, stored] = ["before\0after\0", "before\ufffdafter\ufffd"];
        const run = await begin(ME, { task: text, idempotencyKey: text });
        const { lease } = await claim();
        expect(await runs.read.run(ME, run.id)).toMatchObject({ task: stored });
        expect(await work().nextInput(lease)).toMatchObject({ kind: "task", task: stored });
        const again = await runs.create(ME, { task: text, idempotencyKey: text }, fresh());
        expect(again).toMatchObject({ kind: "existing", run: { id: run.id } });
        await work().record(lease, [entryOf({ kind: "warning", agent: [], message: text })], now);
        const inbox = work().inbox(lease);
        const message = { id: "m1", text, idempotencyKey: `${text}2`, now };
        expect(await runs.send(ME, run.id, message)).toMatchObject({ kind: "sent" });
        expect(await runs.send(ME, run.id, message)).toMatchObject({ kind: "repeated" });
        expect(await inbox.messages()).toEqual([{ id: "m1", text: stored }]);
        expect(await work().complete(lease, { answer: text, structured: { text } }, inbox, now)).toBe(
          "completed",
        );
        expect(await runs.read.run(ME, run.id)).toMatchObject({ answer: stored, structured: { text } });
        for (const { data } of (await runs.read.journal(ME, run.id, 0, 100))?.events ?? [])
          expect(JSON.stringify(data)).not.toContain('before"');
      });

      test("that fails or is cancelled says why, and the next run of the thread is told", async () => {
        const first = await begin();
        await work().fail((await claim()).lease, { reason: "internal", message: "broken" }, now);
        expect(await runs.read.run(ME, first.id)).toMatchObject({
          status: "failed",
          failure: { message: "broken" },
        });
        await begin(ME, { threadId: first.threadId });
        const { lease } = await claim();
        expect(await work().nextInput(lease)).toMatchObject({ kind: "task", task: "work", after: "failed" });
        expect(await runs.cancel(ME, lease.runId, "enough", now)).toMatchObject({ ended: false });
        expect(await runs.cancel(ME, lease.runId, "again", now)).toMatchObject({
          ended: true,
          run: { cancelReason: "enough" },
        });
        const late = entryOf({ kind: "warning", agent: [], message: "late" });
        await expect(work().record(lease, [late], now)).rejects.toThrow(LeaseLostError);
        // Whoever works on it keeps the lease until it has stopped.
        expect(await runs.leases()).toHaveLength(1);
        await runs.release(lease);
        expect(await runs.leases()).toEqual([]);
      });

      test("keeps its place in a trace from the first span on", async () => {
        await begin();
        const { lease } = await claim();
        const place = work().tracePlace(lease);
        expect(await place.before()).toBeUndefined();
        await place.began("first");
        await place.began("second");
        expect(await work().tracePlace(lease).before()).toBe("first");
      });

      test("has effects that begin once and end once", async () => {
        await begin();
        const { lease } = await claim();
        const effects = work().effectLog(
          lease,
          () => now,
          () => undefined,
        );
        expect(await effects.find(CALL)).toBeUndefined();
        await effects.begin(CALL, "pay");
        expect(await effects.find(CALL)).toEqual({});
        await effects.withdraw(CALL);
        expect(await effects.find(CALL)).toBeUndefined();
        await effects.begin(CALL, "pay");
        await effects.keep(CALL, new Uint8Array([7]));
        await effects.withdraw(CALL);
        expect([...((await effects.find(CALL))?.handle ?? [])]).toEqual([7]);
        const outcome = { type: "json", data: new Uint8Array([1, 2]) };
        await effects.finish(CALL, outcome);
        await effects.finish(CALL, { type: "json", data: new Uint8Array([9]) });
        const found = await effects.find(CALL);
        expect([found?.outcome?.type, [...(found?.outcome?.data ?? [])]]).toEqual(["json", [1, 2]]);
        await effects.keep(CALL, new Uint8Array([7]));
        expect((await effects.find(CALL))?.handle).toBeUndefined();
        expect(await effects.find({ ...CALL, callId: "c2" })).toBeUndefined();
      });
    });

    describe("an approval", () => {
      test("stops the run until it is decided, and its answer is given to the agent until it has taken it", async () => {
        const { run, lease: asked } = await waiting();
        expect(await status(run)).toBe("input_required");
        expect(await runs.claimNext(claiming(), 9)).toBeUndefined();
        const approval = await approvalOf(run);
        expect(approval).toMatchObject({ status: "pending", tool: "note", args: { text: "n0" } });
        const decided = await runs.answer(
          ME,
          { request: approval, answer: { type: "approve" } },
          "form",
          now,
        );
        expect(decided).toMatchObject({ status: "approved", decidedBy: "form" });
        expect(
          await runs.answer(ME, { request: approval, answer: { type: "reject" } }, "form", now),
        ).toBeUndefined();
        expect(await status(run)).toBe("working");
        expect(await work().hasAnswers(asked)).toBe(true);
        const { lease } = await claim();
        const input = { kind: "resume", answers: { i1: { decisions: [{ type: "approve" }] } } };
        expect(await work().nextInput(lease)).toEqual(input);
        expect(await stopped(lease, [{ interruptId: "i1", again: false }])).toBe("stuck");
        expect(await work().hasAnswers(lease)).toBe(false);
      });

      test("is seen and decided by the principal of its run alone", async () => {
        const { run } = await waiting();
        const approval = await approvalOf(run);
        const call = { request: approval, answer: { type: "approve_same" } } as const;
        expect(await runs.read.request("you", run.id, approval.id)).toBeUndefined();
        expect(await runs.answer("you", call, "form", now)).toBeUndefined();
        expect(await approvalOf(run)).toEqual(approval);
        await runs.answer(ME, call, "form", now);
        expect(await runs.read.grants("you", run.id)).toEqual([]);
        expect(await runs.read.grants(ME, run.id)).toHaveLength(1);
      });

      test("is decided by one of many who answer at once", async () => {
        const { run } = await waiting();
        const approval = await approvalOf(run);
        const all = await Promise.all(
          [runs, await data.connect(), await data.connect()].map((one, n) =>
            one.answer(
              ME,
              { request: approval, answer: { type: n === 0 ? "approve" : "reject" } },
              `p${n}`,
              now,
            ),
          ),
        );
        expect(all.filter((one) => one !== undefined)).toHaveLength(1);
        expect((await kinds(run)).filter((kind) => kind === "approval_decided")).toHaveLength(1);
      });

      test("is denied when its time is over, by whoever comes first", async () => {
        const run = await begin();
        const { lease } = await claim();
        const log = runs.work({ deadlineMs: 100 });
        await log.ask(lease, [], "i1", callRequests(asks(2)), now);
        expect(await runs.expire(now + 99)).toEqual([]);
        const late = await runs.answer(
          ME,
          { request: await approvalOf(run), answer: { type: "approve" } },
          "form",
          now + 100,
        );
        expect(late).toMatchObject({ status: "rejected", decidedBy: "deadline" });
        expect(await runs.expire(now + 100)).toMatchObject([{ id: "i1:1" }]);
        expect(await runs.expire(now + 100)).toEqual([]);
      });

      test("of one call can be for all that count as the same, until the run ends", async () => {
        const { run } = await waiting(2);
        const approval = await approvalOf(run);
        await runs.answer(ME, { request: approval, answer: { type: "approve_same" } }, "form", now);
        expect(await approvalOf(run, 1)).toMatchObject({ status: "approved", decidedBy: "same as i1:0" });
        expect(await runs.read.grants(ME, run.id)).toMatchObject([
          { tool: "note", approvalId: "i1:0", grantedBy: "form" },
        ]);
        const { lease } = await claim();
        await work().ask(lease, [], "i2", callRequests(asks()), now);
        expect(await runs.read.request(ME, run.id, "i2:0")).toMatchObject({ status: "approved" });
        await runs.cancel(ME, run.id, "", now);
        expect(await runs.read.grants(ME, run.id)).toEqual([]);
      });

      test("can save rules, by which later calls of its principal in its folder go ahead until they are removed", async () => {
        const page = (path: string, folder = "/f"): HitlRequest => ({
          ...asks(),
          actionRequests: asks().actionRequests.map(({ same: _same, ...action }) => ({
            ...action,
            ruled: { call: { kind: "edit", paths: [path] }, folder },
          })),
        });
        const ask = async (lease: Lease, id: string, request: HitlRequest) => {
          await work().ask(lease, [], id, callRequests(request), now);
          return runs.read.request(ME, lease.rootId, `${id}:0`);
        };
        const run = await begin();
        const { lease } = await claim();
        await ask(lease, "i2", page("docs/b.md"));
        const asked = await ask(lease, "i1", page("docs/a.md"));
        expect(asked).toMatchObject({
          ruled: { offers: [{ rules: ["Edit(/docs/a.md)"] }, { rules: ["Edit(/docs/**)"] }] },
        });
        const answer = { type: "approve_always" as const, rules: ["Edit(/docs/**)"] };
        await runs.answer(ME, { request: asked!, answer }, "form", now);
        // Another one that waits goes ahead with it.
        expect(await runs.read.request(ME, run.id, "i2:0")).toMatchObject({
          status: "approved",
          decidedBy: "rule Edit(/docs/**)",
          answer: { type: "approve", byRule: true },
        });
        expect(await ask(lease, "i3", page("docs/c.md"))).toMatchObject({ status: "approved" });
        // A repeat of the request does not count.
        expect(await ask(lease, "i3", page("docs/c.md"))).toMatchObject({ status: "approved" });
        expect(await ask(lease, "i4", page("src/c.md"))).toMatchObject({ status: "pending" });
        expect(await ask(lease, "i5", page("docs/c.md", "/other"))).toMatchObject({ status: "pending" });
        const [rule, ...others] = await runs.rules.list(ME);
        expect(others).toEqual([]);
        expect(rule).toMatchObject({
          rule: "Edit(/docs/**)",
          folder: "/f",
          isUnsandboxed: false,
          createdBy: "form",
          runId: run.id,
          approvalId: "i1:0",
          uses: 2,
          lastUsedAt: now,
        });
        expect(await runs.rules.list("you")).toEqual([]);
        expect(await runs.rules.remove("you", rule?.id ?? "")).toBe(false);
        expect(await runs.rules.remove(ME, rule?.id ?? "")).toBe(true);
        expect(await runs.rules.remove(ME, rule?.id ?? "")).toBe(false);
        expect(await ask(lease, "i6", page("docs/d.md"))).toMatchObject({ status: "pending" });
      });

      test("needs a person for calls that reach out, once the conversation has read untrusted texts", async () => {
        const request = (reaches: boolean): HitlRequest => ({
          ...asks(),
          actionRequests: asks().actionRequests.map(({ same: _same, ...action }) => ({
            ...action,
            ruled: {
              call: {
                kind: "command",
                command: "npm test",
                shell: "bash",
                isSandboxed: true,
                hasNetwork: reaches,
              },
              folder: "/f",
              allow: ["Bash(npm test)"],
            },
          })),
        });
        const ask = async (lease: Lease, id: string, reaches: boolean) => {
          await work().ask(lease, [], id, callRequests(request(reaches)), now);
          return runs.read.request(ME, lease.rootId, `${id}:0`);
        };
        const run = await begin();
        const { lease } = await claim();
        expect(await ask(lease, "i1", true)).toMatchObject({ decidedBy: "rule Bash(npm test)" });
        const finished = {
          agent: [],
          callId: "c",
          tool: "web_fetch",
          status: "success",
          summary: "",
        } as const;
        await work().record(
          lease,
          [entryOf({ ...finished, kind: "tool_finished", source: "a page of x.example" })],
          now,
        );
        const held = await ask(lease, "i2", true);
        expect(held).toMatchObject({ status: "pending", ruled: { heldBack: ["a page of x.example"] } });
        expect(await ask(lease, "i3", false)).toMatchObject({ status: "approved" });
        await work().complete(lease, { answer: "done" }, work().inbox(lease), now);
        // A copy of the conversation has read the same.
        await runs.beginCopy(ME, "thr_copied", now);
        const point = { threadId: `${run.threadId}@1` };
        const copy = await runs.create(
          ME,
          { task: "again", ...point },
          { ...fresh(), newThreadId: "thr_copied" },
        );
        expect(copy).toMatchObject({ kind: "created" });
        expect(await ask((await claim()).lease, "i4", true)).toMatchObject({ status: "pending" });
      });

      test("is withdrawn with the run", async () => {
        const { run } = await waiting();
        const approval = await approvalOf(run);
        await runs.cancel(ME, run.id, "", now);
        expect(await approvalOf(run)).toMatchObject({ status: "withdrawn" });
        expect(
          await runs.answer(ME, { request: approval, answer: { type: "approve" } }, "form", now),
        ).toBeUndefined();
        expect(await status(run)).toBe("cancelled");
      });

      test("in a signed answer counts once, with all that came with it", async () => {
        const { run } = await waiting(2);
        const answers = [0, 1].map(async (index) => ({
          request: await approvalOf(run, index),
          answer: { type: "approve" as const },
        }));
        const answer = {
          id: "signed",
          answers: await Promise.all(answers),
          replies: [],
          by: "input_required",
        };
        expect(
          await runs.useSignedAnswer(run, { ...answer, id: "bad", problem: "other_arguments" }, now),
        ).toBeUndefined();
        expect(await approvalOf(run)).toMatchObject({ status: "pending" });
        const other = await data.connect();
        const used = await Promise.all([runs, other].map((one) => one.useSignedAnswer(run, answer, now)));
        expect(used.filter((one) => one !== undefined)).toMatchObject([
          { answered: [{ status: "approved" }, { status: "approved" }], replied: [] },
        ]);
        expect((await kinds(run)).filter((kind) => kind === "answer_refused")).toHaveLength(2);
      });
    });

    test("a name stands beside the task in every list, and only its principal changes it", async () => {
      const { run } = await waiting();
      const name = "潮 📟 <b>& the fix</b>";
      expect(await runs.rename("you", run.id, "mine")).toBe(false);
      expect(await runs.rename(ME, "run_none", name)).toBe(false);
      expect(await runs.rename(ME, run.id, name)).toBe(true);
      expect(await runs.read.run(ME, run.id)).toMatchObject({ task: "work", name });
      expect(await runs.read.list(ME, { limit: 9 })).toMatchObject([{ task: "work", name }]);
      expect(await runs.read.summaries(ME, { text: "THE FIX" }, { limit: 9 })).toMatchObject([
        { task: "work", name },
      ]);
      expect(await runs.read.pending(ME, 9)).toMatchObject([{ task: name }]);
      await runs.rename(ME, run.id, null);
      expect(await runs.read.run(ME, run.id)).not.toHaveProperty("name");
      expect(await runs.read.pending(ME, 9)).toMatchObject([{ task: "work" }]);
    });

    test("one run is deleted once it has ended and nobody works on it, and its thread with the last run", async () => {
      const first = await begin(ME, { idempotencyKey: "k" });
      const { lease } = await claim();
      expect(await runs.disown(ME, first.id)).toBe(false);
      await runs.cancel(ME, first.id, "enough", now);
      expect(await runs.disown(ME, first.id)).toBe(false);
      await runs.release(lease);
      const second = await begin(ME, { threadId: first.threadId });
      await runs.cancel(ME, second.id, "", now);
      expect(await runs.disown("you", first.id)).toBe(false);
      const remove = async (run: Run) => {
        expect(await runs.disown(ME, run.id)).toBe(true);
        expect(await runs.disown(ME, run.id)).toBe(false);
        expect(await runs.read.run(ME, run.id)).toBeUndefined();
        expect(await runs.read.recentEvents(ME, run.id, { limit: 9 })).toBeUndefined();
        return runs.prune({}, { checkpoints: undefined, now, signal: new AbortController().signal });
      };
      expect(await remove(first)).toMatchObject({ runs: 1, threads: 0 });
      expect((await runs.read.list(ME, { limit: 9 })).map(({ id }) => id)).toEqual([second.id]);
      expect(await remove(second)).toMatchObject({ runs: 1, threads: 1 });
      expect(
        await runs.read.obstacle(ME, { task: "t", threadId: first.threadId }, { environment: "e" }),
      ).toEqual({
        kind: "thread_not_found",
      });
      expect(await runs.create(ME, { task: "work", idempotencyKey: "k" }, fresh())).toMatchObject({
        kind: "created",
      });
    });

    test("a message is stored once for a key, and refused when the run is over", async () => {
      const run = await begin();
      const message = { id: "m1", text: "hello", idempotencyKey: "k", now };
      expect(await runs.send(ME, run.id, message)).toMatchObject({ kind: "sent" });
      expect(await runs.send(ME, run.id, { ...message, id: "m2" })).toMatchObject({ kind: "repeated" });
      expect(await runs.send(ME, run.id, { ...message, text: "other" })).toEqual({
        kind: "conflict",
        runId: run.id,
      });
      await runs.cancel(ME, run.id, "", now);
      expect(await runs.send(ME, run.id, { id: "m3", text: "late", now })).toMatchObject({ kind: "ended" });
      await begin(ME, { threadId: run.threadId });
      expect(await work().nextInput((await claim()).lease)).toMatchObject({
        told: [{ id: "m1", text: "hello" }],
      });
    });

    test("a model call that a client answers has its first reply, also when it is asked again", async () => {
      const run = await begin();
      const { lease } = await claim();
      const request = { messages: [], maxTokens: 5 };
      const { id, reply } = await work().askModel(lease, request, now);
      expect(reply).toBeUndefined();
      expect(await runs.read.modelCalls(ME, run.id)).toEqual([{ id, request }]);
      expect(await work().awaitModel(lease, id, now)).toBeUndefined();
      expect(await status(run)).toBe("input_required");
      expect((await runs.read.picture(ME, run.id, 0, 9))?.modelCalls).toEqual([{ id, waiting: true }]);
      expect(await runs.reply(run, id, REPLY, now)).toBe(true);
      expect(await runs.reply(run, id, { kind: "declined", message: "no" }, now)).toBe(false);
      expect(await runs.read.modelReply("you", run.id, id)).toBeUndefined();
      expect(await runs.read.modelReply(ME, run.id, id)).toEqual(REPLY);
      expect(await work().askModel(lease, request, now)).toEqual({ id, reply: REPLY });
      expect(await status(run)).toBe("working");
    });

    test("changes are told after they are stored, here and on other servers", async () => {
      const told: string[] = [];
      let elsewhere = 0;
      const listener = {
        changed: (runId: string, fromOutside: boolean) => void told.push(`${runId} ${fromOutside}`),
        changedElsewhere: () => void (elsewhere += 1),
        failed: (error: unknown) => void told.push(String(error)),
      };
      const other = await data.connect();
      let foreign = 0;
      const watching = [
        runs.watch(listener, 5),
        other.watch(
          { ...listener, changed: () => void (foreign += 1), changedElsewhere: () => void (foreign += 1) },
          5,
        ),
      ];
      onTestFinished(() => watching.forEach((one) => one.close()));
      const run = await begin();
      expect(told).toEqual([`${run.id} true`]);
      await expect.poll(() => foreign).toBeGreaterThan(0);
      const { lease } = await claim();
      await work().record(lease, [entryOf({ kind: "warning", agent: [], message: "w" })], now);
      expect(told.at(-1)).toBe(`${run.id} false`);
      // Some look once when they begin.
      expect(elsewhere).toBeLessThanOrEqual(1);
      watching.forEach((one) => one.close());
      await runs.cancel(ME, run.id, "", now);
      expect(told.at(-1)).toBe(`${run.id} false`);
    });

    test("what is over is forgotten when it is old enough, and nothing else", async () => {
      const old = await begin();
      await runs.cancel(ME, old.id, "", now);
      now += 2 * DAY;
      const recent = await begin();
      await runs.cancel(ME, recent.id, "", now);
      const open = await begin();
      const retention = { maxAgeMs: DAY };
      expect(await runs.planPrune(retention, undefined, now)).toMatchObject({ runs: 1, unfinished: 1 });
      const report = await runs.prune(retention, {
        checkpoints: undefined,
        now,
        signal: new AbortController().signal,
      });
      expect(report).toMatchObject({ runs: 1, threads: 1 });
      expect((await runs.read.list(ME, { limit: 9 })).map(({ id }) => id)).toEqual([open.id, recent.id]);
      expect(await runs.statistics()).toMatchObject({
        runs: { working: 1, cancelled: 1 },
        pendingApprovals: 0,
      });
      await runs.assertWritable();
    });
  });
}
