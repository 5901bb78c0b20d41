import { callRequests } from "../../src/runs/asked-events.ts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { HitlRequest, PendingInterrupt } from "../../src/agent/agent.ts";
import type { Decision } from "../../src/tools/request.ts";
import { type RunEvent, entryOf } from "../../src/runs/events.ts";
import { type Lease, LeaseLostError } from "../../src/runs/ports.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { StoredWork } from "../../src/runs/sql/work.ts";
import type { RunRow } from "../../src/runs/sql/rows.ts";
import { DEADLINE, TRANSITIONS, type Approval, isFinal, isApproval } from "../../src/runs/run.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { attempts } from "../support/effort.ts";

const ME = "local";
const RUN = "run_1";

/** In operations: each takes a millisecond. */
const DEADLINE_MS = 15;

const interrupt = fc.constantFrom("i1", "i2", "i3");
const decision = fc.constantFrom<Decision>(
  { type: "approve" },
  { type: "reject" },
  { type: "edit", editedAction: { name: "note", args: {} } },
);
const operation = fc.oneof(
  fc.record({ do: fc.constant("claim" as const), owner: fc.constantFrom("a", "b") }),
  fc.record({ do: fc.constant("tell" as const), call: fc.constantFrom("c1", "c2"), started: fc.boolean() }),
  fc.record({ do: fc.constant("request" as const), interrupt, calls: fc.integer({ min: 1, max: 2 }) }),
  fc.record({
    do: fc.constant("decide" as const),
    interrupt,
    index: fc.integer({ min: 0, max: 1 }),
    decision,
  }),
  fc.record({
    do: fc.constant("pause" as const),
    open: fc.uniqueArray(interrupt),
    delivered: fc.uniqueArray(interrupt),
  }),
  fc.record({
    do: fc.constantFrom("complete" as const, "fail" as const, "park" as const, "revoke" as const),
  }),
  fc.record({ do: fc.constantFrom("cancel" as const, "expire" as const) }),
  // Clocks are also set back.
  fc.record({ do: fc.constant("wait" as const), time: fc.integer({ min: -5, max: 20 }) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** One run in a database of its own, with whoever holds or once held its lease. */
const stoppedWith = (interrupts: PendingInterrupt[]) => ({
  interrupts,
  questions: [],
  modelAwaited: false,
  childAwaited: false,
});

class World {
  readonly database = openDatabase(":memory:");
  readonly runs: RunRepository;
  readonly work: StoredWork;
  readonly leases: Lease[] = [];
  now = 1;

  constructor() {
    migrate(this.database, "runs", RUN_MIGRATIONS);
    this.runs = sqliteRuns(this.database);
    this.work = this.runs.work({ deadlineMs: DEADLINE_MS });
  }

  static async begin(): Promise<World> {
    const world = new World();
    const fresh = { runId: RUN, newThreadId: "thr_1", environment: "e", now: world.now };
    await world.runs.create(ME, { task: "t" }, fresh);
    return world;
  }

  /** The newest claim, valid or not. */
  get lease(): Lease {
    return (
      this.leases.at(-1) ?? { runId: RUN, rootId: RUN, principal: ME, run: 1, owner: "nobody", epoch: 99 }
    );
  }

  readonly row = (): RunRow => this.database.prepare<[], RunRow>("SELECT * FROM runs").get()!;

  async apply(operation: Operation): Promise<void> {
    this.now += 1;
    try {
      await this.#apply(operation);
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
    }
  }

  async #apply(operation: Operation): Promise<void> {
    const { runs, work, lease, now } = this;
    switch (operation.do) {
      case "claim": {
        const expiresAt = now + 100;
        const active = new Map<string, number>();
        const request = { owner: operation.owner, environment: "e", active, now, expiresAt };
        const claim = await runs.claimNext(request, Number.POSITIVE_INFINITY);
        if (claim !== undefined) this.leases.push(claim.lease);
        return;
      }
      case "tell": {
        const call = { agent: [], callId: operation.call, tool: "t", summary: "" };
        const event = operation.started
          ? ({ kind: "tool_started", ...call } as const)
          : ({ kind: "tool_finished", status: "success", ...call } as const);
        return work.record(lease, [entryOf(event)], now);
      }
      case "request":
        return work.ask(lease, [], operation.interrupt, callRequests(requestOf(operation.calls)), now);
      case "decide": {
        const request = await runs.read.request(ME, RUN, `${operation.interrupt}:${operation.index}`);
        if (request !== undefined)
          await runs.answer(ME, { request, answer: operation.decision }, "test", now);
        return;
      }
      case "pause": {
        const open = operation.open.map((id) => ({ id, request: requestOf(1) }));
        const outcome = await work.pause(
          lease,
          stoppedWith(open),
          operation.delivered.map((interruptId) => ({ interruptId, again: false })),
          work.inbox(lease),
          now,
        );
        if (outcome === "stuck") await work.fail(lease, { reason: "internal", message: "stuck" }, now);
        return;
      }
      case "complete":
        await work.complete(lease, { answer: "done" }, work.inbox(lease), now);
        return;
      case "fail":
        return work.fail(lease, { reason: "internal", message: "broken" }, now);
      case "park":
        return work.park(lease, true, now);
      case "revoke":
        for (const expired of await runs.expiredLeases(now + 1000, 10_000)) await runs.revoke(expired);
        return;
      case "expire":
        await runs.expire(now);
        return;
      case "wait":
        this.now += operation.time;
        return;
      case "cancel":
        await runs.cancel(ME, RUN, "enough", now);
    }
  }
}

/** Pauses with `open`, after the answer to the interrupt `i1` was handed over. */
const pause = ({ work, lease }: World, open: PendingInterrupt[], again = false) =>
  work.pause(lease, stoppedWith(open), [{ interruptId: "i1", again }], work.inbox(lease), 1);

/** A world whose agent has asked one question, which is answered. */
async function answered(): Promise<World> {
  const world = await World.begin();
  await world.apply({ do: "claim", owner: "a" });
  await world.apply({ do: "request", interrupt: "i1", calls: 1 });
  await world.apply({ do: "decide", interrupt: "i1", index: 0, decision: { type: "approve" } });
  return world;
}

function requestOf(calls: number): HitlRequest {
  const names = Array.from({ length: calls }, () => "note");
  return {
    actionRequests: names.map((name) => ({ name, args: {}, description: "d", toolCallId: "c" })),
    reviewConfigs: names.map((actionName) => ({
      actionName,
      allowedDecisions: ["approve", "edit", "reject"],
    })),
  };
}

interface Moment {
  row: RunRow;
  views: Approval[];
  events: RunEvent[];
  approvals: Approval[];
}

async function look({ database, runs, row }: World): Promise<Moment> {
  const seen = await runs.read.picture(ME, RUN, 0, 10_000);
  // Nothing was read of it before.
  const fresh = await sqliteRuns(database).read.picture(ME, RUN, 0, 10_000);
  if (seen === undefined || fresh === undefined) throw new Error("the run is gone");
  return {
    row: row(),
    views: seen.requests.filter(isApproval),
    events: [...seen.events],
    approvals: fresh.requests.filter(isApproval),
  };
}

function check(before: Moment, after: Moment): void {
  const { row, events, approvals, views } = after;
  // What is not read again is as it is.
  expect(views).toEqual(approvals);
  const pending = approvals.filter(({ status }) => status === "pending").length;
  // The journal only grows, without gap or duplicate.
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(row.last_seq).toBe(events.length);
  expect(events.slice(0, before.events.length)).toEqual(before.events);
  // The status says whether people are waited for.
  expect(row.status === "input_required").toBe(pending > 0);
  // What is over stays as it was; its last event tells so.
  if (isFinal(before.row.status)) {
    expect({ events, approvals }).toEqual({ events: before.events, approvals: before.approvals });
    expect(row.status).toBe(before.row.status);
  } else if (row.status !== before.row.status) {
    const steps: readonly string[] = TRANSITIONS[before.row.status];
    expect([...steps, "completed"]).toContain(row.status);
  }
  if (isFinal(row.status)) expect(events.at(-1)?.kind).toBe(`run_${row.status}`);
  // An approval is decided once.
  for (const [index, approval] of before.approvals.entries()) {
    if (approval.status !== "pending") expect(approvals[index]).toEqual(approval);
  }
  // The journal tells when each was asked for, and once how it ended.
  const told = (wanted: "approval_requested" | "approval_decided") =>
    events.flatMap(({ kind, data }) =>
      (kind === "approval_requested" || kind === "approval_decided") && kind === wanted
        ? [data.approvalId]
        : [],
    );
  const idsOf = (some: Approval[]) => some.map(({ id }) => id);
  expect(told("approval_requested")).toEqual(idsOf(approvals));
  const ended = approvals.filter(({ status }) => status !== "pending");
  expect(told("approval_decided").toSorted()).toEqual(idsOf(ended).toSorted());
  // After its deadline an approval is denied, before it never for that reason.
  for (const { decidedAt = 0, expiresAt = 0, status, decidedBy } of approvals) {
    if (status === "pending" || status === "withdrawn") continue;
    expect(decidedBy === DEADLINE).toBe(decidedAt >= expiresAt);
    if (decidedBy === DEADLINE) expect(status).toBe("rejected");
  }
  // An open run is worked on, waits in the queue, or waits for a person: never for nothing.
  if (!isFinal(row.status)) expect(row.lease_owner !== null || row.runnable === 1 || pending > 0).toBe(true);
}

test("whatever happens in whatever order: no event is lost, no end undone, no run forgotten", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
      const world = await World.begin();
      try {
        let before = await look(world);
        for (const operation of operations) {
          await world.apply(operation);
          const after = await look(world);
          check(before, after);
          before = after;
        }
      } finally {
        world.database.close();
      }
    }),
    attempts(300),
  );
});

test("an interrupt with two calls is answered when both are decided, in the order of the calls", async () => {
  const world = await World.begin();
  await world.apply({ do: "claim", owner: "a" });
  await world.apply({ do: "request", interrupt: "i1", calls: 2 });
  await world.apply({ do: "request", interrupt: "i2", calls: 1 });
  await world.apply({ do: "decide", interrupt: "i1", index: 1, decision: { type: "reject" } });
  expect((await world.work.nextInput(world.lease)).kind).toBe("task");
  await world.apply({ do: "decide", interrupt: "i1", index: 0, decision: { type: "approve" } });
  const answers = { i1: { decisions: [{ type: "approve" }, { type: "reject" }] } };
  expect(await world.work.nextInput(world.lease)).toEqual({ kind: "resume", answers });
  const open = [{ id: "i2", request: requestOf(1) }];
  expect(await pause(world, open)).toBe("waiting");
  expect(world.row()).toMatchObject({
    status: "input_required",
    runnable: 0,
    lease_owner: null,
    in_flight: 0,
  });
  world.database.close();
});

test("an answer the agent did not take in, because it asks the same again, is offered once more", async () => {
  const world = await answered();
  const open = [{ id: "i1", request: requestOf(1) }];
  expect(await pause(world, open)).toBe("answered");
  expect((await world.work.nextInput(world.lease)).kind).toBe("resume");
  expect(await pause(world, open, true)).toBe("stuck");
  world.database.close();
});

test("an answer is never offered for another question under the same interrupt", async () => {
  const world = await answered();
  const request = requestOf(1);
  const changed = request.actionRequests.map((action) => ({ ...action, args: { other: true } }));
  const open = [{ id: "i1", request: { ...request, actionRequests: changed } }];
  expect(await pause(world, open)).toBe("stuck");
  world.database.close();
});

test("the database itself refuses to rewrite the journal, an end or a decision", async () => {
  const world = await World.begin();
  await world.apply({ do: "claim", owner: "a" });
  await world.apply({ do: "request", interrupt: "i1", calls: 1 });
  await world.apply({ do: "cancel" });
  const run = (sql: string) => () => world.database.prepare(sql).run();
  expect(run("UPDATE run_events SET data = '{}'")).toThrow("append-only");
  expect(run("UPDATE runs SET status = 'working', ended_at = NULL")).toThrow("has ended");
  expect(run("UPDATE questions SET status = 'approved'")).toThrow("decided once");
  world.database.close();
});
