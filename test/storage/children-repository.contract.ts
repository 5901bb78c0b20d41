import { callRequests } from "../../src/runs/asked-events.ts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { HitlRequest } from "../../src/agent/agent.ts";
import { type Claim, LeaseLostError } from "../../src/runs/ports.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { Retention } from "../../src/runs/retention.ts";
import type { Run } from "../../src/runs/run.ts";
import { entryOf } from "../../src/runs/events.ts";
import type { RunData } from "./run-repository.contract.ts";

const ME = "me";
const NOW = 1_000_000;
const now = () => NOW;
const asks: HitlRequest = {
  actionRequests: [{ name: "note", args: {}, description: "Note", toolCallId: "c1" }],
  reviewConfigs: [],
};

/** Runs that agents start in the background, whatever they are stored in. */
export function childrenRepositoryContract(
  name: string,
  open: () => Promise<RunData>,
  options: { tags?: string } = {},
): void {
  describe(`background runs in ${name}`, options, () => {
    let runs: RunRepository;
    let number = 0;

    beforeEach(async () => {
      const data = await open();
      onTestFinished(() => data.close());
      runs = await data.connect();
    });

    const work = () => runs.work({});
    const begin = async (): Promise<Run> => {
      number += 1;
      const fresh = { runId: `run_${number}`, newThreadId: `thr_${number}`, environment: "e", now: NOW };
      const created = await runs.create(ME, { task: "work" }, fresh);
      if (created.kind !== "created") throw new Error(created.kind);
      return created.run;
    };
    const claim = async (): Promise<Claim> => {
      const request = { owner: "a", environment: "e", now: NOW, expiresAt: NOW + 10_000 };
      const claimed = await runs.claimNext(request, 10);
      if (claimed === undefined) throw new Error("nothing to claim");
      return claimed;
    };
    const ofParent = ({ lease }: Claim) => work().children(lease, now, () => `thr_child_${(number += 1)}`);
    const startChild = async (parent: Claim, call = "c1") => {
      const children = ofParent(parent);
      const threadId = await children.newThread();
      return children.start({
        call,
        name: "researcher",
        title: `look at ${call}`,
        description: `look at ${call}. Then more.`,
        threadId,
      });
    };
    /** A parent with a child, both at work. */
    const family = async () => {
      const run = await begin();
      const parent = await claim();
      const started = await startChild(parent);
      if (started === "too_many") throw new Error(started);
      return { run, parent, started, child: await claim() };
    };
    const status = async (id: string) => (await runs.read.run(ME, id))?.status;
    const kinds = async (id: string) =>
      (await runs.read.journal(ME, id, 0, 100))?.events.map(({ kind }) => kind) ?? [];
    const prune = async (retention: Retention, time = NOW) => {
      const signal = new AbortController().signal;
      return (await runs.prune(retention, { checkpoints: undefined, now: time, signal })).runs;
    };
    const finish = ({ lease }: Claim, answer: string) =>
      work().complete(lease, { answer }, work().inbox(lease), NOW);

    test("a call starts one, however often it is made, which is in no list", async () => {
      const { run, parent, started, child } = await family();
      expect(started).toMatchObject({
        name: "researcher",
        status: "working",
        description: "look at c1. Then more.",
      });
      expect(await startChild(parent)).toEqual(started);
      expect(await ofParent(parent).find({ call: "c1" })).toEqual(started);
      expect(await ofParent(parent).find({ call: "c2" })).toBeUndefined();
      expect(child.lease).toMatchObject({ runId: started.id, rootId: run.id });
      expect(child.run.parent).toEqual({
        runId: run.id,
        agent: [{ callId: started.id, name: "researcher", task: "look at c1" }],
      });
      expect((await runs.read.list(ME, { limit: 10 })).map(({ id }) => id)).toEqual([run.id]);
      expect(await runs.read.summaries(ME, {}, { limit: 10 })).toMatchObject([
        { id: run.id, subagents: { open: 1 } },
      ]);
      expect((await runs.read.summaries(ME, { text: "look" }, { limit: 10 })).length).toBe(0);
      expect(await runs.read.counts(ME)).toMatchObject({ working: 1 });
      expect(await runs.read.children(ME, run.id)).toEqual([started]);
      expect(await runs.read.children("you", run.id)).toEqual([]);
      expect(await kinds(run.id)).toEqual(["run_started", "subagent_started"]);
    });

    test("its report is a message to its parent, once, which it wakes", async () => {
      const { run, parent, started, child } = await family();
      expect(await finish(parent, "I wait.")).toBe("waiting");
      expect(await runs.read.run(ME, run.id)).toMatchObject({ status: "working", waitsForChildren: true });
      expect(
        await runs.claimNext({ owner: "a", environment: "e", now: NOW, expiresAt: NOW + 1 }, 10),
      ).toBeUndefined();
      expect(await finish(child, "found")).toBe("completed");
      await expect(finish(child, "again")).rejects.toThrow(LeaseLostError);
      const woken = await claim();
      expect(woken.lease.runId).toBe(run.id);
      const inbox = work().inbox(woken.lease);
      expect(await inbox.messages()).toMatchObject([
        {
          id: started.id,
          text: expect.stringContaining("found"),
          from: { name: "researcher", threadId: started.threadId },
        },
      ]);
      expect(await work().complete(woken.lease, { answer: "done" }, inbox, NOW)).toBe("completed");
      expect(await kinds(run.id)).toEqual([
        "run_started",
        "subagent_started",
        "subagent_finished",
        "run_completed",
      ]);
      expect(await runs.read.summaries(ME, {}, { limit: 10 })).toMatchObject([
        { subagents: { completed: 1, open: 0 } },
      ]);
    });

    test("its parent does not end before it has read the report", async () => {
      const { parent, child } = await family();
      await finish(child, "found");
      expect(await finish(parent, "too early")).toBe("unread");
    });

    test("its questions are those of its parent, and its answers its own", async () => {
      const { run, parent, started, child } = await family();
      const agent = child.run.parent?.agent ?? [];
      await work().ask(child.lease, agent, "i1", callRequests(asks), NOW);
      const paused = {
        interrupts: [{ id: "i1", request: { ...asks, agent } }],
        questions: [],
        modelAwaited: false,
        childAwaited: false,
      };
      expect(await work().pause(child.lease, paused, [], work().inbox(child.lease), NOW)).toBe("waiting");
      expect([await status(run.id), await status(started.id)]).toEqual(["input_required", "input_required"]);
      const [pending] = await runs.read.pending(ME, 10);
      expect(pending).toMatchObject({ id: "i1:0", runId: run.id, askedBy: started.id, agent });
      // The parent's own pause and end leave them alone.
      expect(await work().hasAnswers(parent.lease)).toBe(false);
      expect(await finish(parent, "I wait.")).toBe("waiting");
      if (pending === undefined) throw new Error("no approval");
      const answered = { request: pending, answer: { type: "approve" as const } };
      expect(await runs.answer("you", answered, "page", NOW)).toBeUndefined();
      expect(await runs.answer(ME, answered, "page", NOW)).toMatchObject({ status: "approved" });
      expect(await runs.answer(ME, answered, "page", NOW)).toBeUndefined();
      expect([await status(run.id), await status(started.id)]).toEqual(["working", "working"]);
      const again = await claim();
      expect(again.lease.runId).toBe(started.id);
      expect(await work().nextInput(again.lease)).toEqual({
        kind: "resume",
        answers: { i1: { decisions: [{ type: "approve" }] } },
      });
    });

    test("it ends with its parent, and its questions with it", async () => {
      const { run, started, child } = await family();
      await work().ask(child.lease, child.run.parent?.agent ?? [], "i1", callRequests(asks), NOW);
      expect(await runs.cancel(ME, run.id, "enough", NOW)).toMatchObject({ ended: false });
      expect([await status(run.id), await status(started.id)]).toEqual(["cancelled", "cancelled"]);
      expect(await runs.read.pending(ME, 10)).toEqual([]);
      await expect(finish(child, "late")).rejects.toThrow(LeaseLostError);
      expect(await runs.read.children(ME, run.id)).toMatchObject([{ status: "cancelled" }]);
    });

    test("it ends with a parent that fails or reaches a limit", async () => {
      const failed = await family();
      await work().fail(failed.parent.lease, { reason: "internal", message: "x" }, NOW);
      expect(await status(failed.started.id)).toBe("cancelled");
      await runs.release(failed.child.lease);
      const limited = await family();
      const end = { answer: "so far", stopReason: "max_tokens" };
      expect(await work().complete(limited.parent.lease, end, work().inbox(limited.parent.lease), NOW)).toBe(
        "completed",
      );
      expect(await status(limited.started.id)).toBe("cancelled");
    });

    test("whoever follows it hears that it ended with its parent", async () => {
      const changed: string[] = [];
      const listener = { changed: (id: string) => void changed.push(id), changedElsewhere() {}, failed() {} };
      const watching = runs.watch(listener, 60_000);
      onTestFinished(() => watching.close());
      const cancelled = await family();
      changed.length = 0;
      await runs.cancel(ME, cancelled.run.id, "enough", NOW);
      expect(changed).toContain(cancelled.started.id);
      for (const { lease } of [cancelled.parent, cancelled.child]) await runs.release(lease);
      const failed = await family();
      changed.length = 0;
      await work().fail(failed.parent.lease, { reason: "internal", message: "x" }, NOW);
      expect(changed).toContain(failed.started.id);
      await runs.release(failed.child.lease);
      const limited = await family();
      changed.length = 0;
      const end = { answer: "so far", stopReason: "max_tokens" };
      await work().complete(limited.parent.lease, end, work().inbox(limited.parent.lease), NOW);
      expect(changed).toContain(limited.started.id);
    });

    test("nobody else works in its thread, or begins another at a point of it", async () => {
      const { started, child } = await family();
      const fresh = { runId: "run_other", newThreadId: "thr_other", environment: "e", now: NOW };
      for (const threadId of [started.threadId, `${started.threadId}@1`]) {
        expect(await runs.create(ME, { task: "mine", threadId }, fresh)).toEqual({
          kind: "thread_not_found",
        });
      }
      await finish(child, "found");
      const again = { task: "mine", threadId: started.threadId };
      expect(await runs.create(ME, again, fresh)).toEqual({ kind: "thread_not_found" });
    });

    test("it does not end with an answer of its parent that is only cut", async () => {
      const { run, parent, started, child } = await family();
      const cut = { answer: "I wait for", stopReason: "max_output_tokens" };
      expect(await work().complete(parent.lease, cut, work().inbox(parent.lease), NOW)).toBe("waiting");
      expect(await status(started.id)).toBe("working");
      await finish(child, "found");
      expect((await claim()).lease.runId).toBe(run.id);
    });

    test("it is cancelled alone from outside, and its parent hears of it", async () => {
      const { run, parent, started } = await family();
      expect(await finish(parent, "I wait.")).toBe("waiting");
      expect(await runs.cancel(ME, started.id, "not needed", NOW)).toMatchObject({ ended: false });
      const woken = await claim();
      expect(woken.lease.runId).toBe(run.id);
      expect(await work().inbox(woken.lease).messages()).toMatchObject([
        { text: expect.stringContaining("not needed") },
      ]);
      expect(await kinds(run.id)).toEqual(["run_started", "subagent_started", "subagent_finished"]);
      expect(await runs.read.summaries(ME, {}, { limit: 10 })).toMatchObject([
        { subagents: { cancelled: 1, open: 0 } },
      ]);
    });

    test("messages to it come once, from its own parent alone", async () => {
      const { run, parent, started, child } = await family();
      const children = ofParent(parent);
      const message = { id: "m1", text: "look at b too" };
      expect(await children.tell(started.id, message)).toMatchObject({ id: started.id });
      expect(await children.tell(started.id, message)).toMatchObject({ id: started.id });
      expect(await work().inbox(child.lease).messages()).toEqual([message]);
      expect(await children.tell(run.id, message)).toBeUndefined();
      expect(await children.cancel(run.id, "x")).toBeUndefined();
      await begin();
      const stranger = ofParent(await claim());
      expect(await stranger.tell(started.id, { id: "m2", text: "x" })).toBeUndefined();
      expect(await stranger.cancel(started.id, "x")).toBeUndefined();
      expect(await status(started.id)).toBe("working");
    });

    test("what it uses counts for the tree, and each knows what the others used", async () => {
      const { run, parent, child } = await family();
      const used = (agent: Parameters<typeof entryOf>[0]["agent"], inputTokens: number) =>
        entryOf({
          kind: "model_called",
          agent,
          model: "m",
          usage: { inputTokens, outputTokens: 1, cachedInputTokens: 0 },
          text: "",
          costUsd: 0.5,
        });
      await work().record(parent.lease, [used([], 10)], NOW);
      await work().record(child.lease, [used(child.run.parent?.agent ?? [], 100)], NOW);
      expect(await ofParent(parent).budget.spent()).toMatchObject({ tokens: 101, costUsd: 0.5 });
      expect(await ofParent(child).budget.spent()).toMatchObject({ tokens: 11, costUsd: 0.5 });
      expect((await runs.read.run(ME, run.id))?.usage).toEqual({
        inputTokens: 110,
        outputTokens: 2,
        cachedInputTokens: 0,
      });
    });

    test("it shares a budget: what others at work have reserved counts until they release it or lose their lease", async () => {
      const { run, parent, child } = await family();
      const [ofRoot, ofChild] = [ofParent(parent).budget, ofParent(child).budget];
      const seen: number[] = [];
      const look = (_others: unknown, reserved: number): boolean => seen.push(reserved) > 0;
      expect(await ofChild.reserve(100, look)).toBe(true);
      expect(await ofRoot.reserve(50, look)).toBe(true);
      expect(await ofChild.reserve(300, () => false)).toBe(false);
      await ofRoot.reserve(0, look);
      await ofChild.reserve(0, look);
      expect(seen).toEqual([0, 100, 100, 0]);
      // Of two that reserve at once, one sees the other.
      const reserved = await Promise.all(
        [ofRoot, ofChild].map((budget) => budget.reserve(7, (_others, held) => held === 0)),
      );
      expect(reserved.toSorted()).toEqual([false, true]);
      await ofChild.reserve(7, () => true);
      await work().park(child.lease, true, NOW);
      await ofRoot.reserve(1, look);
      expect(seen.at(-1)).toBe(0);
      await expect(ofChild.reserve(1, look)).rejects.toThrow(LeaseLostError);
      const again = await claim();
      expect(again.run.id).toBe(child.run.id);
      await ofRoot.reserve(1, look);
      expect([seen.at(-1), (await runs.read.run(ME, run.id))?.status]).toEqual([0, "working"]);
    });

    test("there are no more than the most at a time", async () => {
      await begin();
      const parent = await claim();
      for (let index = 0; index < 32; index += 1)
        expect(await startChild(parent, `c${index}`)).not.toBe("too_many");
      expect(await startChild(parent, "c32")).toBe("too_many");
      const [first] = await ofParent(parent).list();
      await ofParent(parent).cancel(first?.id ?? "", "x");
      expect(await startChild(parent, "c32")).toMatchObject({ status: "working" });
    });

    test("parents and children that write at once do not stand in each other's way", async () => {
      const { run, parent, started, child } = await family();
      const agent = child.run.parent?.agent ?? [];
      const warning = (of: typeof agent, message: string) => entryOf({ kind: "warning", agent: of, message });
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          await work().record(child.lease, [warning(agent, `child ${index}`)], NOW);
          await work().record(parent.lease, [warning([], `parent ${index}`)], NOW);
          await ofParent(parent).tell(started.id, { id: `m${index}`, text: "x" });
          await work().ask(child.lease, agent, `i${index}`, callRequests(asks), NOW);
        }),
      );
      const events = (await runs.read.journal(ME, run.id, 0, 1000))?.events ?? [];
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(events.filter(({ kind }) => kind === "warning")).toHaveLength(40);
      await Promise.all([
        runs.cancel(ME, run.id, "enough", NOW),
        finish(child, "found").catch(() => undefined),
      ]);
      expect(await runs.read.pending(ME, 100)).toEqual([]);
      expect(["cancelled", "completed"]).toContain(await status(started.id));
    });

    test("it is deleted with its parent, and not before", async () => {
      const { run, parent, started, child } = await family();
      expect(await finish(parent, "I wait.")).toBe("waiting");
      await finish(child, "found");
      expect(await runs.disown(ME, started.id)).toBe(false);
      const woken = await claim();
      const inbox = work().inbox(woken.lease);
      expect(await inbox.messages()).toMatchObject([{ id: started.id, from: { name: "researcher" } }]);
      await work().complete(woken.lease, { answer: "done" }, inbox, NOW);
      expect(await runs.disown(ME, started.id)).toBe(false);
      expect(await runs.disown(ME, run.id)).toBe(true);
      await prune({});
      expect([await status(run.id), await status(started.id)]).toEqual([undefined, undefined]);
    });

    test("a parent is not deleted while a server still stops its child", async () => {
      const { run, parent, started, child } = await family();
      await runs.cancel(ME, run.id, "enough", NOW);
      await runs.release(parent.lease);
      expect(await runs.disown(ME, run.id)).toBe(false);
      await runs.release(child.lease);
      expect(await runs.disown(ME, run.id)).toBe(true);
      await prune({});
      expect(await status(started.id)).toBeUndefined();
    });

    test("it is forgotten with its parent, not when it is old enough itself", async () => {
      const { run, parent, started, child } = await family();
      expect(await finish(parent, "I wait.")).toBe("waiting");
      await finish(child, "found");
      await runs.cancel(ME, run.id, "enough", NOW + 5000);
      const retention = { maxAgeMs: 1000 };
      expect((await runs.planPrune(retention, undefined, NOW + 3000)).runs).toBe(0);
      expect(await prune(retention, NOW + 3000)).toBe(0);
      expect(await status(started.id)).toBe("completed");
      expect((await runs.planPrune(retention, undefined, NOW + 7000)).runs).toBe(1);
      expect(await prune(retention, NOW + 7000)).toBe(1);
      expect([await status(run.id), await status(started.id)]).toEqual([undefined, undefined]);
    });

    test("whoever follows its parent hears of a message to it, and of its end after crashes", async () => {
      const { run, started, child } = await family();
      const changed: string[] = [];
      const listener = { changed: (id: string) => void changed.push(id), changedElsewhere() {}, failed() {} };
      const watching = runs.watch(listener, 60_000);
      onTestFinished(() => watching.close());
      await runs.send(ME, started.id, { id: "m1", text: "more", now: NOW });
      expect(changed).toContain(run.id);
      await runs.revoke({ ...child.lease, heartbeatAt: NOW });
      changed.length = 0;
      await runs.claimNext({ owner: "b", environment: "e", now: NOW, expiresAt: NOW + 1 }, 1);
      expect(await status(started.id)).toBe("failed");
      expect(changed).toContain(run.id);
    });
  });
}
