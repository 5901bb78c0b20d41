import { callRequests } from "../../src/runs/asked-events.ts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { HitlRequest } from "../../src/agent/agent.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { Schedule } from "../../src/runs/schedule.ts";
import type { RunData } from "./run-repository.contract.ts";

const ME = "me";
const HOUR = 3_600_000;

/** The schedules of every driver of `RunRepository`. */
export function scheduleRepositoryContract(
  name: string,
  open: () => Promise<RunData>,
  options: { tags?: string } = {},
): void {
  describe(`schedules in ${name}`, options, () => {
    let data: RunData;
    let runs: RunRepository;
    let number = 0;

    beforeEach(async () => {
      data = await open();
      onTestFinished(() => data.close());
      runs = await data.connect();
    });

    const fresh = (now = HOUR, extra: object = {}) => {
      number += 1;
      return { runId: `run_${number}`, newThreadId: `thr_${number}`, environment: "e", now, ...extra };
    };
    const schedule = (extra: Partial<Schedule> = {}): Schedule => ({
      id: `sch_${(number += 1)}`,
      principal: ME,
      environment: "e",
      name: `hourly ${number}`,
      task: "work",
      expression: "0 * * * *",
      timeZone: "UTC",
      catchUp: "one",
      catchUpLimit: 3,
      overlap: false,
      createdAt: 1,
      dueAt: HOUR,
      ...extra,
    });
    const add = async (extra: Partial<Schedule> = {}): Promise<Schedule> => {
      const one = schedule(extra);
      expect(await runs.schedules.add(one, 9)).toBe("added");
      return one;
    };
    /** The step of one occurrence after another. */
    const step = (at = HOUR) => ({
      start: { from: at, to: at, before: at - HOUR },
      dueAt: at + HOUR,
    });
    const viewOf = async ({ id }: Schedule) => (await runs.schedules.list(ME)).find((one) => one.id === id);

    test("are stored for their principal alone, with names of their own", async () => {
      const one = await add({ name: "daily", overlap: true, catchUp: "all" });
      expect(await runs.schedules.find(ME, one.id)).toEqual(one);
      expect(await runs.schedules.list(ME)).toEqual([{ ...one, runs: [], skips: [] }]);
      expect(await runs.schedules.find("you", one.id)).toBeUndefined();
      expect(await runs.schedules.list("you")).toEqual([]);
      expect(await runs.schedules.pause("you", one.id, 5)).toBe(false);
      expect(await runs.schedules.remove("you", one.id)).toBe(false);
      expect(await runs.schedules.add(schedule({ name: "daily" }), 9)).toBe("name_taken");
      expect(await runs.schedules.add(schedule(), 1)).toBe("too_many");
      const other = schedule({ principal: "you", name: "daily" });
      expect(await runs.schedules.add(other, 9)).toBe("added");
      expect((await runs.schedules.listAll()).map(({ id }) => id)).toEqual([one.id, other.id]);
    });

    test("keep the choices for their runs, and skip a time for which these are refused", async () => {
      const choices = { model: "a:b", limits: { costUsd: 1, tokens: 9 }, goal: ["There is a report"] };
      const one = await add({ ...choices, changes: "propose" });
      expect(await runs.schedules.find(ME, one.id)).toEqual(one);
      const refused = { ...step(), refused: "model_not_allowed" as const };
      const other = { ...one, model: "c:d" };
      expect(await runs.schedules.advance(other, refused, fresh())).toEqual({ kind: "stale" });
      expect(await runs.schedules.advance(one, refused, fresh())).toEqual({
        kind: "skipped",
        reason: "model_not_allowed",
      });
      const next = { ...one, dueAt: 2 * HOUR };
      const started = await runs.schedules.advance(next, step(2 * HOUR), fresh());
      expect(started).toMatchObject({ kind: "started", run: { ...choices, changes: "propose" } });
      // Nobody waits for an earlier run to skip a time.
      const all = { ...next, catchUp: "all" as const, dueAt: 3 * HOUR };
      expect(await runs.schedules.edit({ ...next, dueAt: 3 * HOUR }, all, undefined)).toBe("edited");
      expect(
        await runs.schedules.advance(all, { ...step(3 * HOUR), refused: "price_unknown" }, fresh()),
      ).toEqual({ kind: "skipped", reason: "price_unknown" });
      const { model: _model, limits: _limits, goal: _goal, changes: _changes, ...plain } = all;
      const due = { dueAt: 4 * HOUR };
      expect(await runs.schedules.edit({ ...all, ...due }, { ...plain, ...due }, undefined)).toBe("edited");
      expect(await runs.schedules.find(ME, one.id)).toEqual({ ...plain, ...due });
    });

    test("are changed as they were read, with names of their own", async () => {
      const one = await add({ name: "daily" });
      await add({ name: "other" });
      const next = {
        ...one,
        name: "weekly",
        task: "rest",
        expression: "0 0 * * 0",
        catchUp: "skip" as const,
      };
      const after: Schedule = { ...next, overlap: true, catchUpLimit: 7, dueAt: 5 * HOUR };
      const skipped = { from: HOUR, to: 2 * HOUR, reason: "changed" as const };
      const edit = (before: Schedule, changed: Schedule) => runs.schedules.edit(before, changed, skipped);
      expect(await edit(one, { ...after, name: "other" })).toBe("name_taken");
      expect(await edit({ ...one, task: "older" }, after)).toBe("stale");
      expect(await edit({ ...one, principal: "you" }, { ...after, principal: "you" })).toBe("stale");
      expect(await edit(one, after)).toBe("edited");
      expect(await viewOf(one)).toEqual({ ...after, runs: [], skips: [skipped] });
      // A server that had read the earlier times starts nothing.
      expect(await runs.schedules.advance(one, step(), fresh())).toEqual({ kind: "stale" });
      const old = { ...after, expression: one.expression };
      expect(await runs.schedules.advance(old, step(5 * HOUR), fresh())).toEqual({ kind: "stale" });
      // Its own name is not taken.
      expect(await runs.schedules.edit(after, { ...after, task: "sleep" }, undefined)).toBe("edited");
      expect(await runs.schedules.find("you", one.id)).toBeUndefined();
    });

    test("are due from their time on, in their environment, unless they are paused", async () => {
      const one = await add();
      const later = await add({ dueAt: 2 * HOUR });
      await add({ environment: "other" });
      const ids = async (now: number) => {
        const { due, next } = await runs.schedules.due("e", now);
        return { due: due.map(({ id }) => id), next };
      };
      expect(await ids(HOUR - 1)).toEqual({ due: [], next: HOUR });
      expect(await ids(HOUR)).toEqual({ due: [one.id], next: 2 * HOUR });
      expect(await runs.schedules.pause(ME, one.id, 7)).toBe(true);
      expect(await runs.schedules.pause(ME, one.id, 8)).toBe(true);
      expect(await ids(2 * HOUR)).toEqual({ due: [later.id], next: undefined });
      const paused = await runs.schedules.find(ME, one.id);
      expect(paused).toEqual({ ...one, pausedAt: 7 });
      expect(await runs.schedules.advance(one, step(), fresh())).toEqual({ kind: "stale" });
      const skipped = { from: HOUR, to: 2 * HOUR, reason: "paused" as const };
      expect(await runs.schedules.resume(one, 3 * HOUR, skipped)).toBe(false);
      expect(await runs.schedules.resume({ ...one, pausedAt: 7 }, 3 * HOUR, skipped)).toBe(true);
      expect(await viewOf(one)).toEqual({ ...one, dueAt: 3 * HOUR, runs: [], skips: [skipped] });
      expect(await runs.schedules.remove(ME, one.id)).toBe(true);
      expect(await runs.schedules.remove(ME, one.id)).toBe(false);
    });

    test("start each occurrence once, whichever servers come to it at once", async () => {
      const one = await add();
      const servers = [runs, await data.connect(), await data.connect()];
      const outcomes = await Promise.all(
        servers.map((server) => server.schedules.advance(one, step(), fresh())),
      );
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["stale", "stale", "started"]);
      const [run, ...others] = (await viewOf(one))?.runs ?? [];
      expect(others).toEqual([]);
      expect(run).toMatchObject({
        status: "working",
        task: "work",
        schedule: { id: one.id, name: one.name, dueAt: HOUR },
      });
      expect(await runs.read.run(ME, run?.id ?? "")).toMatchObject({ schedule: { dueAt: HOUR } });
      const [event] = (await runs.read.recentEvents(ME, run?.id ?? "", { limit: 1 })) ?? [];
      expect(event).toMatchObject({ kind: "run_started", data: { schedule: one.name } });
      expect(await runs.schedules.find(ME, one.id)).toEqual({ ...one, dueAt: 2 * HOUR });
      // An occurrence that has a run does not start a second one, even after its time was set again.
      await runs.cancel(ME, run?.id ?? "", "enough", HOUR);
      await runs.schedules.pause(ME, one.id, 9);
      await runs.schedules.resume({ ...one, dueAt: 2 * HOUR, pausedAt: 9 }, HOUR, undefined);
      expect(await runs.schedules.advance(one, step(), fresh())).toEqual({ kind: "stale" });
      expect(await runs.schedules.find(ME, one.id)).toEqual({ ...one, dueAt: 2 * HOUR });
      expect((await viewOf(one))?.runs).toHaveLength(1);
    });

    test("skip an occurrence while the earlier run is open, and say why", async () => {
      const one = await add();
      expect(await runs.schedules.advance(one, step(), fresh())).toMatchObject({ kind: "started" });
      const skipped = async (at: number) => runs.schedules.advance({ ...one, dueAt: at }, step(at), fresh());
      expect(await skipped(2 * HOUR)).toEqual({ kind: "skipped", reason: "previous_at_work" });
      expect(await skipped(3 * HOUR)).toEqual({ kind: "skipped", reason: "previous_at_work" });
      const claim = { owner: "a", environment: "e", now: HOUR, expiresAt: 9 * HOUR };
      const lease = (await runs.claimNext(claim, 9))?.lease;
      if (lease === undefined) throw new Error("nothing to claim");
      const asked: HitlRequest = {
        actionRequests: [{ name: "note", args: {}, description: "Note", toolCallId: "c" }],
        reviewConfigs: [],
      };
      await runs.work({}).ask(lease, [], "i", callRequests(asked), HOUR);
      expect(await skipped(4 * HOUR)).toEqual({ kind: "skipped", reason: "previous_waits" });
      expect((await viewOf(one))?.skips).toEqual([
        { from: 4 * HOUR, to: 4 * HOUR, reason: "previous_waits" },
        { from: 2 * HOUR, to: 3 * HOUR, reason: "previous_at_work" },
      ]);
      expect(await runs.schedules.runNow(one, fresh())).toMatchObject({ kind: "previous_open" });
      const overlapping = await add({ overlap: true });
      for (const at of [HOUR, 2 * HOUR]) {
        const started = await runs.schedules.advance({ ...overlapping, dueAt: at }, step(at), fresh());
        expect(started.kind).toBe("started");
      }
      expect(await runs.schedules.runNow(overlapping, fresh())).toMatchObject({
        kind: "created",
        run: { schedule: { id: overlapping.id, name: overlapping.name } },
      });
      expect((await viewOf(overlapping))?.runs.map(({ schedule }) => schedule?.dueAt)).toEqual([
        undefined,
        2 * HOUR,
        HOUR,
      ]);
    });

    test("wait for the earlier run where all occurrences count, but for no person", async () => {
      const one = await add({ catchUp: "all" });
      const started = await runs.schedules.advance(one, step(), fresh());
      const next = { ...one, dueAt: 2 * HOUR };
      const older = { from: 2 * HOUR, to: 3 * HOUR, before: HOUR };
      expect(await runs.schedules.advance(next, { ...step(4 * HOUR), skipped: older }, fresh())).toEqual({
        kind: "waits",
      });
      expect(await viewOf(one)).toMatchObject({
        dueAt: 4 * HOUR,
        skips: [{ from: 2 * HOUR, to: 3 * HOUR, reason: "too_old" }],
      });
      if (started.kind === "started") await runs.cancel(ME, started.run.id, "enough", HOUR);
      const again = await runs.schedules.advance({ ...one, dueAt: 4 * HOUR }, step(4 * HOUR), fresh());
      expect(again).toMatchObject({ kind: "started", run: { schedule: { dueAt: 4 * HOUR } } });
    });

    test("skip what the limit of open runs does not allow, and what is too old", async () => {
      await runs.create(ME, { task: "other" }, fresh());
      const one = await add();
      expect(await runs.schedules.advance(one, step(), fresh(HOUR, { openRuns: 1 }))).toEqual({
        kind: "skipped",
        reason: "too_many_open",
      });
      expect(await runs.schedules.runNow(one, fresh(HOUR, { openRuns: 1 }))).toEqual({
        kind: "too_many_open",
        limit: 1,
      });
      const old = { skipped: { from: 2 * HOUR, to: 5 * HOUR, before: HOUR }, dueAt: 6 * HOUR };
      expect(await runs.schedules.advance({ ...one, dueAt: 2 * HOUR }, old, fresh())).toEqual({
        kind: "skipped",
        reason: "too_old",
      });
      expect(await viewOf(one)).toMatchObject({
        dueAt: 6 * HOUR,
        runs: [],
        skips: [
          { from: 2 * HOUR, to: 5 * HOUR, reason: "too_old" },
          { from: HOUR, to: HOUR, reason: "too_many_open" },
        ],
      });
    });

    test("keep their newest skips; the runs of one that is removed still name it", async () => {
      const one = await add({ name: "gone soon" });
      let dueAt = HOUR;
      for (let at = 0; at < 202; at += 1) {
        // Each begins a skip of its own, because nothing is known to be right before it.
        const skipped = { from: dueAt, to: dueAt };
        await runs.schedules.advance({ ...one, dueAt }, { skipped, dueAt: dueAt + HOUR }, fresh());
        dueAt += HOUR;
      }
      expect((await viewOf(one))?.skips).toHaveLength(5);
      expect((await viewOf(one))?.skips[0]?.from).toBe(202 * HOUR);
      const started = await runs.schedules.advance({ ...one, dueAt }, step(dueAt), fresh());
      expect(await runs.schedules.remove(ME, one.id)).toBe(true);
      expect(await runs.schedules.list(ME)).toEqual([]);
      expect((await runs.read.list(ME, { limit: 1 }))[0]).toMatchObject({
        id: started.kind === "started" ? started.run.id : "",
        schedule: { id: one.id, name: "gone soon", dueAt },
      });
    });
  });
}
