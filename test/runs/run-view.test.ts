import { expect, test } from "vitest";
import type { JournalEntry, RunEvent, RunEventKind } from "../../src/runs/events.ts";
import type { AgentPath } from "../../src/runs/run.ts";
import { RunFold } from "../../src/runs/view.ts";
import { append } from "../../src/runs/sql/journal.ts";
import { sqliteEngine } from "../../src/storage/sqlite/engine.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { databaseFile, ME, mine, openServer, startRun } from "./support.ts";

const USAGE = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
const SUB: AgentPath = [{ callId: "c1", name: "helper" }];

function journal(...lines: [RunEventKind, AgentPath, Record<string, unknown>][]): RunEvent[] {
  return lines.map(
    ([kind, agent, data], index) =>
      // Each line of this file brings what its kind needs here.
      ({ runId: "r", seq: index + 1, time: 0, agent, kind, data }) as RunEvent,
  );
}

function fold(events: RunEvent[]): RunFold {
  const result = new RunFold();
  for (const event of events) result.add(event);
  return result;
}

const DELEGATED = journal(
  ["run_started", [], {}],
  ["subagent_started", SUB, { callId: "c1", name: "helper", description: "Look around" }],
  ["tool_started", SUB, { callId: "t1", tool: "ls", summary: "List /" }],
  ["tool_finished", SUB, { callId: "t1", tool: "ls", status: "success", summary: "3 files" }],
  ["tool_started", SUB, { callId: "t2", tool: "write_file", summary: "Write /a" }],
  ["file_changed", SUB, { callId: "t2", path: "/b" }],
  ["file_changed", [], { callId: "t3", path: "/a" }],
  ["file_changed", [], { callId: "t4", path: "/b" }],
);

test("a subagent shows its newest step; changed files are listed once, sorted", () => {
  const view = fold(DELEGATED);
  expect(view.subagents()).toMatchObject([
    {
      agent: SUB,
      name: "helper",
      description: "Look around",
      status: "working",
      step: "Write /a",
      toolCalls: 2,
    },
  ]);
  expect(view.filesChanged({})).toEqual(["/a", "/b"]);
  expect(view.activity).toBe("helper: Write /a");
  expect(view.lastSeq).toBe(8);
});

test("an agent has its times, tokens, cost and model; calls that follow closely become one span", () => {
  const lines: RunEvent[] = [];
  const add = (time: number, agent: AgentPath, kind: RunEventKind, data: Record<string, unknown>): void => {
    lines.push({ ...journal([kind, agent, data])[0], seq: lines.length + 1, time } as RunEvent);
  };
  const called = { model: "m", usage: USAGE, text: "", costUsd: 0.25 };
  add(10, [], "model_called", called);
  add(20, SUB, "subagent_queued", { callId: "c1", name: "helper", description: "Look" });
  add(50, SUB, "subagent_started", { callId: "c1", name: "helper", description: "Look" });
  for (let call = 0; call < 200; call += 1) {
    const begun = 100 + call * 100 + (call >= 100 ? 5000 : 0);
    add(begun, SUB, "tool_started", { callId: `t${call}`, tool: "ls", summary: "" });
    add(begun + 40, SUB, "tool_finished", { callId: `t${call}`, tool: "ls", status: "success", summary: "" });
  }
  add(90_000, SUB, "model_called", { ...called, model: "n" });
  add(90_001, SUB, "subagent_finished", { callId: "c1", name: "helper", status: "success", report: "" });
  const view = fold(lines);
  expect(view.mainAgent({ createdAt: 5 })).toEqual({
    startedAt: 5,
    toolCalls: 0,
    busy: [],
    model: "m",
    usage: USAGE,
    costUsd: 0.25,
  });
  const [helper] = view.subagents();
  expect(helper).toMatchObject({ startedAt: 50, endedAt: 90_001, toolCalls: 200, model: "n", costUsd: 0.25 });
  const busy = helper?.busy ?? [];
  expect(busy.length).toBeLessThanOrEqual(64);
  expect(busy[0]?.[0]).toBe(100);
  expect(busy.at(-1)?.[1]).toBe(25_040);
  expect(busy.some(([start, end]) => start < 12_000 && end > 12_000)).toBe(false);
});

test.each<[RunEventKind, Record<string, unknown>, status: string, step: string, activity?: string]>([
  [
    "subagent_finished",
    { callId: "c1", name: "helper", status: "success", report: "All\nseen" },
    "completed",
    "All seen",
    "helper: finished",
  ],
  [
    "subagent_finished",
    { callId: "c1", name: "helper", status: "error", report: "lost" },
    "failed",
    "lost",
    "helper: failed: lost",
  ],
  [
    "approval_requested",
    { tool: "write_file", summary: "Write /a" },
    "working",
    "requested approval: Write /a",
  ],
  [
    "approval_decided",
    { tool: "write_file", decision: "reject", by: "page" },
    "working",
    "rejected calling write_file (page)",
  ],
  [
    "approval_decided",
    { tool: "write_file", decision: "reject", by: "deadline" },
    "working",
    "denied calling write_file, because nobody decided in time",
  ],
  [
    "tool_finished",
    { callId: "c2", tool: "ls", status: "error", summary: "no such path" },
    "working",
    "ls failed: no such path",
  ],
  [
    "tool_finished",
    { callId: "c2", tool: "ls", status: "error", summary: "User rejected it", rejected: true },
    "working",
    "Write /a",
  ],
  ["model_called", { model: "m", usage: USAGE, text: "I see" }, "working", "I see"],
  ["model_called", { model: "m", usage: USAGE, text: "" }, "working", "Write /a"],
])("%s of a subagent with %o", (kind, data, status, step, activity = `helper: ${step}`) => {
  const view = fold([...DELEGATED, ...journal([kind, SUB, data])]);
  expect(view.subagents()).toMatchObject([{ status, step }]);
  expect(view.activity).toBe(activity);
});

test.each<[RunEventKind, Record<string, unknown>, status: string, activity: string]>([
  ["warning", { message: "careful" }, "working", "careful"],
  ["run_cancelled", { reason: "enough" }, "cancelled", "cancelled: enough"],
  ["run_failed", { message: "broken" }, "failed", "failed: broken"],
])("%s of the main agent with %o", (kind, data, status, activity) => {
  const view = fold([...DELEGATED, ...journal([kind, [], data])]);
  expect(view.subagents()).toMatchObject([{ status, step: "Write /a" }]);
  expect(view.activity).toBe(activity);
});

const QUEUED = journal([
  "subagent_queued",
  SUB,
  { callId: "c1", name: "helper", description: "Look around" },
]);

test.each([
  [[], "queued", "queued"],
  [DELEGATED.slice(1, 2), "working", "started"],
  [
    journal(["tool_finished", [], { callId: "c1", tool: "task", status: "error", summary: "rejected" }]),
    "failed",
    "rejected",
  ],
  [
    journal(["tool_finished", SUB, { callId: "c1", tool: "ls", status: "success", summary: "3 files" }]),
    "queued",
    "queued",
  ],
  [journal(["run_cancelled", [], { reason: "enough" }]), "cancelled", "queued"],
])("a subagent in the queue that %o is %s", (events, status, step) => {
  expect(fold([...QUEUED, ...events]).subagents()).toMatchObject([{ agent: SUB, status, step }]);
});

test("subagents stand in the order in which they started, and those that wait behind them", () => {
  const event = (kind: RunEventKind, callId: string): Parameters<typeof journal>[0] => [
    kind,
    [{ name: "a", callId }],
    { callId, name: "a", description: callId },
  ];
  const queued = ["3", "4"].map((id) => event("subagent_queued", id));
  const started = ["1", "2"].map((id) => event("subagent_started", id));
  const order = (...events: Parameters<typeof journal>) =>
    fold(journal(...events))
      .subagents()
      .map(({ description }) => description)
      .join("");
  expect(order(...queued, ...started)).toBe("1234");
  expect(order(...queued, ...started, event("subagent_started", "4"))).toBe("1243");
});

test("views asked for at once take in each event of a long journal once", async () => {
  const file = databaseFile();
  const { service, database } = openServer(
    file,
    { model: scriptedModel(() => ({ text: "" })) },
    { concurrentRuns: 0 },
  );
  const run = await startRun(service, "go");
  const engine = sqliteEngine(database);
  const add = (entry: JournalEntry) => engine.note(() => append(run.id, entry, 1));
  const change = (n: number) =>
    add({ kind: "file_changed", agent: [], data: { callId: "c", path: `/${n}` } });
  const started = { kind: "subagent_started", data: { callId: "1", name: "a", description: "d" } } as const;
  const called = { kind: "tool_started", data: { callId: "c", tool: "ls", summary: "ls" } } as const;
  const agent = [{ name: "a", callId: "1" }];
  await add({ ...started, agent });
  for (let n = 0; n < 2345; n += 1) {
    await change(n);
    await add({ ...called, agent });
  }
  const views = await Promise.all(Array.from({ length: 5 }, () => mine(service).read.view(run.id)));
  for (const view of views) {
    expect(view?.filesChanged).toHaveLength(2345);
    expect(view?.subagents).toMatchObject([{ toolCalls: 2345 }]);
  }
  await change(2345);
  expect((await mine(service).read.view(run.id))?.filesChanged).toHaveLength(2346);
});

test("a row whose data no version writes is reported as a damaged database", async () => {
  const { service, database } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "" })) },
    { concurrentRuns: 0 },
  );
  const run = await startRun(service, "go");
  database
    .prepare(
      "INSERT INTO run_events (run_id, seq, time, agent, kind, data) VALUES (?, 9, 0, '[]', 'warning', '{}')",
    )
    .run(run.id);
  const { read } = sqliteRuns(database);
  await expect(read.journal(ME, run.id, 8, 1)).rejects.toThrow("the database of runs");
});
