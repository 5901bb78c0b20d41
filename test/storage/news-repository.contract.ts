import { callRequests } from "../../src/runs/asked-events.ts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { HitlRequest } from "../../src/agent/agent.ts";
import { type EventType, NEWS_TYPES, type NewsType, type Subscription } from "../../src/runs/news.ts";
import type { Lease } from "../../src/runs/ports.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { RunData } from "./run-repository.contract.ts";

const thrice = <T>(value: T): T[] => [value, value, value];

const ME = "me";
const NOW = 1000;
const LATER = 10 ** 9;
const E = "e";

const asked: HitlRequest = {
  actionRequests: [{ name: "note", args: { text: "secret" }, description: "Note", toolCallId: "c" }],
  reviewConfigs: [],
};
const question = {
  id: "q",
  agent: [],
  question: { kind: "ask" as const, text: "Which secret?", fields: [] },
};

/** The outbox of every driver of `RunRepository`. */
export function newsRepositoryContract(
  name: string,
  open: () => Promise<RunData>,
  options: { tags?: string } = {},
): void {
  describe(`news in ${name}`, options, () => {
    let data: RunData;
    let runs: RunRepository;
    let number = 0;

    beforeEach(async () => {
      data = await open();
      onTestFinished(() => data.close());
      runs = await data.connect();
    });

    const begin = async (server = runs): Promise<Lease> => {
      number += 1;
      const ids = { runId: `run_${number}`, newThreadId: `thr_${number}` };
      await server.create(ME, { task: `task ${number}` }, { ...ids, environment: E, now: NOW });
      const claim = { owner: "a", environment: E, now: NOW, expiresAt: LATER };
      const claimed = await server.claimNext(claim, 9);
      if (claimed === undefined) throw new Error("nothing to claim");
      return claimed.lease;
    };
    const complete = async (lease: Lease, stopReason?: string, server = runs, now = NOW): Promise<void> => {
      const work = server.work({});
      const result = { answer: "secret answer", ...(stopReason === undefined ? {} : { stopReason }) };
      expect(await work.complete(lease, result, work.inbox(lease), now)).toBe("completed");
    };
    const wants = (target: string, ...types: NewsType[]) => ({ target, types });
    const claim = (target: string, now = NOW, server = runs) =>
      server.news.claim({ target, environment: E }, now, now + 100);

    test("are written with the events that a rule wants, and claimed in their order", async () => {
      let posted = 0;
      runs.news.open([wants("all", ...NEWS_TYPES), wants("ends", "run.finished", "run.failed")], () => {
        posted += 1;
      });
      const one = await begin();
      const work = runs.work({});
      await work.ask(one, [], "i", callRequests(asked), NOW);
      await work.ask(one, question.agent, question.id, [question.question], NOW);
      // A repeat after a crash is no news.
      await work.ask(one, [], "i", callRequests(asked), NOW);
      const two = await begin();
      await complete(two, "max_cost");
      const three = await begin();
      await work.fail(three, { reason: "internal", message: "broken" }, NOW);
      expect(posted).toBe(5);

      const types: EventType[] = [];
      for (let next = await claim("all"); next !== undefined; next = await claim("all")) {
        types.push(next.news.type);
        expect(next.attempts).toBe(1);
        await runs.news.settle(next, { kind: "delivered" });
      }
      expect(types).toEqual([
        "approval.requested",
        "question.asked",
        "run.finished",
        "budget.reached",
        "run.failed",
      ]);
      expect(await runs.news.list(9)).toMatchObject([
        { target: "ends", type: "run.finished", runId: two.runId, attempts: 0, dueAt: NOW },
        { target: "ends", type: "run.failed", runId: three.runId },
      ]);
      expect(await claim("ends")).toMatchObject({
        target: "ends",
        news: {
          id: `${two.runId}_2_run_finished`,
          type: "run.finished",
          time: NOW,
          runId: two.runId,
          name: `task ${number - 1}`,
          event: { kind: "run_completed", data: { stopReason: "max_cost" } },
        },
      });
    });

    test("questions of other servers are collected into one message until it is first claimed", async () => {
      runs.news.open([wants("all", "question.asked")], () => undefined);
      const lease = await begin();
      const work = runs.work({});
      const ask = (id: string, kind: "ask" | "elicitation") => {
        const form = { text: id, message: id, server: "airline", mode: "form" as const, fields: [] };
        return work.ask(lease, question.agent, id, [{ ...form, kind } as never], NOW);
      };
      for (const id of ["a", "b", "c"]) await ask(id, "elicitation");
      await ask("d", "ask");
      expect(await claim("all")).toBeUndefined();
      const soon = NOW + 60_000;
      const first = await claim("all", soon);
      expect(first).toMatchObject({ news: { questions: 4, event: { data: { questionId: "a" } } } });
      await ask("e", "elicitation");
      const second = await claim("all", soon);
      expect(second).toMatchObject({ news: { event: { data: { questionId: "e" } } } });
      expect(second?.news.questions).toBeUndefined();
      // A question of the agent is told at once.
      await runs.news.drop([first, second].map((message) => message?.number ?? 0));
      await ask("f", "ask");
      expect(await claim("all")).toMatchObject({ news: { event: { data: { questionId: "f" } } } });
    });

    test("without a rule nothing is written", async () => {
      await complete(await begin());
      runs.news.open([wants("failures", "run.failed")], () => undefined).close();
      await complete(await begin());
      expect(await runs.news.list(9)).toEqual([]);
      expect(await runs.news.due(E)).toEqual([]);
    });

    test("a transaction that fails leaves no message", async () => {
      runs.news.open([wants("all", ...NEWS_TYPES)], () => undefined);
      const lease = await begin();
      await runs.revoke({ ...(await runs.leases())[0]! });
      const work = runs.work({});
      await expect(work.fail(lease, { reason: "internal", message: "late" }, NOW)).rejects.toThrow();
      expect(await runs.news.list(9)).toEqual([]);
    });

    test("several servers claim each message once, and again when a claim has run out", async () => {
      runs.news.open([wants("all", "run.finished")], () => undefined);
      await complete(await begin());
      const servers = [runs, await data.connect(), await data.connect()];
      const claims = await Promise.all(servers.map((server) => claim("all", NOW, server)));
      expect(claims.filter((one) => one !== undefined)).toHaveLength(1);
      const [first] = claims.filter((one) => one !== undefined);
      if (first === undefined) throw new Error("no claim");
      expect(await runs.news.due(E)).toEqual([{ target: "all", dueAt: NOW + 100 }]);
      expect(await claim("all", NOW + 99)).toBeUndefined();
      // The first server has ended in the attempt.
      const second = await claim("all", NOW + 100);
      expect(second).toMatchObject({ attempts: 2, news: { id: first.news.id } });
      // It was only slow, and is late.
      await runs.news.settle(first, { kind: "dead", now: NOW, problem: "late" });
      await runs.news.settle(first, { kind: "delivered" });
      expect(await runs.news.list(9)).toMatchObject([{ attempts: 2, dueAt: NOW + 200 }]);
      if (second !== undefined) await runs.news.settle(second, { kind: "delivered" });
      expect(await runs.news.list(9)).toEqual([]);
      expect(await runs.news.claim({ target: "all", environment: "other" }, LATER, LATER)).toBeUndefined();
    });

    test("are tried again, given up, sent again by a person, and dropped", async () => {
      runs.news.open([wants("all", "run.finished")], () => undefined);
      await complete(await begin());
      await complete(await begin());
      const one = await claim("all");
      const two = await claim("all");
      if (one === undefined || two === undefined) throw new Error("no claim");
      await runs.news.settle(one, { kind: "again", dueAt: 5000, problem: "answered 503" });
      await runs.news.settle(two, { kind: "dead", now: NOW, problem: "answered 410" });
      expect(await claim("all", 4999)).toBeUndefined();
      expect(await runs.news.countDead()).toBe(1);
      const dead = { number: two.number, attempts: 1, problem: "answered 410" };
      const [first, second] = await runs.news.list(9);
      expect(first).toMatchObject(dead);
      expect(first?.dueAt).toBeUndefined();
      expect(second).toMatchObject({ number: one.number, problem: "answered 503", dueAt: 5000 });
      expect(await runs.news.list(1)).toHaveLength(1);

      const broken = await claim("all", 5000);
      if (broken === undefined) throw new Error("no claim");
      await runs.news.settle(broken, { kind: "broken_off", now: 6000 });
      expect(await runs.news.list(9)).toMatchObject([{}, { attempts: 1, dueAt: 6000 }]);

      expect(await runs.news.retry(undefined, 7000)).toBe(1);
      expect(await runs.news.list(9)).toMatchObject([{ attempts: 1 }, { attempts: 0, dueAt: 7000 }]);
      expect(await runs.news.retry([one.number, 999], 8000)).toBe(1);
      expect(await runs.news.drop(undefined)).toBe(0);
      expect(await runs.news.drop([one.number, two.number])).toBe(2);
      expect(await runs.news.list(9)).toEqual([]);
    });

    test("are put off together when nobody answers for their receiver, and given up after the last time", async () => {
      runs.news.open([wants("gone", "run.finished"), wants("other", "run.finished")], () => undefined);
      for (let times = 0; times < 3; times += 1) await complete(await begin());
      const facts = { target: "gone", environment: E, problem: "no answer" };
      const [first] = await runs.news.list(1);
      const asked = await claim("gone");
      if (first === undefined || asked === undefined) throw new Error("no claim");
      await runs.news.settle(asked, { kind: "again", dueAt: NOW + 7, problem: "no answer" });
      await runs.news.postpone({ ...facts, now: NOW }, [NOW + 10, NOW + 20]);
      const states = async (target: string) =>
        (await runs.news.list(99)).flatMap((one) =>
          one.target === target ? [[one.attempts, one.dueAt, one.problem]] : [],
        );
      const counted = [1, NOW + 10, "no answer"];
      expect(await states("gone")).toEqual([[1, NOW + 7, "no answer"], counted, counted]);
      expect(await states("other")).toEqual(thrice([0, NOW, undefined]));
      await runs.news.postpone({ ...facts, now: NOW + 10 }, [0, NOW + 30]);
      expect(await states("gone")).toEqual(thrice([2, NOW + 30, "no answer"]));
      await runs.news.postpone({ ...facts, environment: "f", now: NOW + 30 }, []);
      await runs.news.postpone({ ...facts, now: NOW + 30 }, [0, 0]);
      expect(await states("gone")).toEqual(thrice([3, undefined, "no answer"]));
      expect(await runs.news.countDead()).toBe(3);
    });

    test("go with their run", async () => {
      runs.news.open([wants("all", "run.finished")], () => undefined);
      const lease = await begin();
      await complete(lease);
      expect(await runs.disown(ME, lease.runId)).toBe(true);
      const signal = new AbortController().signal;
      expect(await runs.prune({}, { checkpoints: undefined, now: LATER, signal })).toMatchObject({ runs: 1 });
      expect(await runs.news.list(9)).toEqual([]);
    });

    const subscribe = (
      { principal, ...wanted }: Subscription,
      terms: Parameters<typeof runs.news.subscribe>[2],
    ) => runs.news.subscribe(principal, wanted, terms);
    const subscription = (id: string, more: Partial<Subscription> = {}): Subscription => ({
      id,
      principal: ME,
      type: "run.finished",
      url: "https://example.com/",
      secret: "whsec_1",
      expiresAt: NOW + 100,
      ...more,
    });

    test("subscriptions are of their principal, and are changed, ended and counted", async () => {
      const one = subscription("sub_1");
      expect(await runs.news.hasSubscriptions(NOW)).toBe(false);
      expect(await subscribe(one, { most: 1, now: NOW })).toEqual({ isTruncated: false });
      const changed = { ...one, secret: "whsec_2", expiresAt: NOW + 200 };
      expect(await subscribe(changed, { most: 1, now: NOW })).toEqual({ isTruncated: false });
      expect(await runs.news.subscription(ME, "sub_1", NOW)).toEqual(changed);
      expect(await runs.news.subscriptionById("sub_1")).toEqual(changed);
      expect(await runs.news.subscription("you", "sub_1", NOW)).toBeUndefined();
      expect(await runs.news.unsubscribe("you", "sub_1")).toBe(false);
      expect(await subscribe(subscription("sub_2"), { most: 1, now: NOW })).toBeUndefined();
      expect(
        await subscribe(subscription("sub_3", { principal: "you", runId: "r" }), {
          most: 1,
          now: NOW,
        }),
      ).toEqual({ isTruncated: false });
      expect(await runs.news.subscription("you", "sub_3", NOW)).toMatchObject({ runId: "r" });
      // Expired ones do not count, and go with the next one.
      expect(await runs.news.subscription(ME, "sub_1", NOW + 200)).toBeUndefined();
      expect(
        await subscribe(subscription("sub_2", { expiresAt: NOW + 999 }), {
          most: 1,
          now: NOW + 200,
        }),
      ).toEqual({ isTruncated: false });
      expect(await runs.news.subscriptionById("sub_1")).toBeUndefined();
      expect(await runs.news.hasSubscriptions(NOW + 998)).toBe(true);
      expect(await runs.news.hasSubscriptions(NOW + 999)).toBe(false);
    });

    test("housekeeping deletes expired subscriptions of all principals, with their messages", async () => {
      await subscribe(subscription("sub_old"), { most: 9, now: NOW });
      await subscribe(subscription("sub_theirs", { principal: "you" }), { most: 9, now: NOW });
      await subscribe(subscription("sub_new", { expiresAt: LATER }), { most: 9, now: NOW });
      await complete(await begin());
      const context = { checkpoints: undefined, signal: new AbortController().signal };
      await runs.prune({}, { ...context, now: NOW + 99 });
      expect(await runs.news.subscriptionById("sub_old")).toBeDefined();
      await runs.prune({}, { ...context, now: NOW + 100 });
      expect(await runs.news.subscriptionById("sub_old")).toBeUndefined();
      expect(await runs.news.subscriptionById("sub_theirs")).toBeUndefined();
      expect(await runs.news.subscriptionById("sub_new")).toBeDefined();
      expect((await runs.news.list(9)).map(({ target }) => target)).toEqual(["@sub_new"]);
    });

    test("subscriptions are sent events of their principal, type and run, until their end", async () => {
      const [first, second] = [await begin(), await begin()];
      await subscribe(subscription("sub_all"), { most: 9, now: NOW });
      await subscribe(subscription("sub_one", { runId: first.runId }), { most: 9, now: NOW });
      await subscribe(subscription("sub_failed", { type: "run.failed" }), { most: 9, now: NOW });
      await subscribe(subscription("sub_theirs", { principal: "you" }), { most: 9, now: NOW });
      await subscribe(subscription("sub_over", { expiresAt: NOW }), { most: 9, now: NOW - 1 });
      await complete(second);
      await complete(first);
      expect((await runs.news.list(9)).map(({ target, runId }) => [target, runId])).toEqual([
        ["@sub_all", second.runId],
        ["@sub_all", first.runId],
        ["@sub_one", first.runId],
      ]);
      expect(await claim("@sub_one")).toMatchObject({ news: { type: "run.finished", runId: first.runId } });
      expect(await runs.news.unsubscribe(ME, "sub_all")).toBe(true);
      expect((await runs.news.list(9)).map(({ target }) => target)).toEqual(["@sub_one"]);
    });

    test("a new subscription is sent the newest events since a time, oldest first, and a known one none", async () => {
      const [late, early] = [await begin(), await begin()];
      await complete(early);
      await complete(late, undefined, runs, NOW + 1);
      const sent = async (id: string) => {
        const claimed = [await claim(`@${id}`, NOW + 1), await claim(`@${id}`, NOW + 1)];
        return claimed.flatMap((one) => one?.news.runId ?? []);
      };
      const theirs = subscription("sub_theirs", { principal: "you" });
      const failed = subscription("sub_failed", { type: "run.failed" });
      const own = subscription("sub_own", { runId: late.runId });
      const terms = { most: 9, now: NOW + 1, since: NOW };
      for (const one of [subscription("sub_1"), subscription("sub_1"), theirs, failed, own])
        expect(await subscribe(one, terms)).toEqual({ isTruncated: false });
      await subscribe(subscription("sub_late"), { ...terms, since: NOW + 1 });
      expect(await runs.news.list(9)).toHaveLength(4);
      expect(await sent("sub_1")).toEqual([early.runId, late.runId]);
      expect(await sent("sub_own")).toEqual([late.runId]);
      expect(await sent("sub_late")).toEqual([late.runId]);
    });

    test("events of a principal's runs are found by type, run and time", async () => {
      const [first, second] = [await begin(), await begin()];
      await complete(first, "max_cost");
      await complete(second);
      const found = async (type: EventType, more: object = {}, principal = ME) =>
        (await runs.news.occurrences(principal, { type, since: 0, limit: 9, ...more })).map(({ id }) => id);
      const ids = [first, second].map(({ runId }) => `${runId}_2_run_finished`).toSorted();
      expect(await found("run.finished")).toEqual(ids);
      expect(await found("run.finished", { limit: 1 })).toEqual(ids.slice(0, 1));
      expect(await found("run.finished", { runId: second.runId })).toEqual([
        `${second.runId}_2_run_finished`,
      ]);
      expect(await found("run.finished", { since: NOW + 1 })).toEqual([]);
      expect(await found("budget.reached")).toEqual([`${first.runId}_2_budget_reached`]);
      expect(await found("run.finished", {}, "you")).toEqual([]);
      expect(await found("run.progress")).toEqual([]);
    });

    test("a run that crashed too often is news, too", async () => {
      runs.news.open([wants("all", "run.failed")], () => undefined);
      await begin();
      await runs.revoke({ ...(await runs.leases())[0]! });
      const request = { owner: "b", environment: E, now: NOW, expiresAt: LATER };
      expect(await runs.claimNext(request, 1)).toBeUndefined();
      expect(await claim("all")).toMatchObject({ news: { type: "run.failed" } });
    });
  });
}
