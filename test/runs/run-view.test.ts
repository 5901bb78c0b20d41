import { expect, test } from "vitest";
import type { AgentPath, RunEvent, RunEventKind } from "../../src/runs/run.ts";
import { RunFold, RunFolds } from "../../src/runs/view.ts";

const SUB: AgentPath = [{ callId: "c1", name: "helper" }];

function journal(...lines: [RunEventKind, AgentPath, Record<string, unknown>][]): RunEvent[] {
  return lines.map(([kind, agent, data], index) => ({
    runId: "r",
    seq: index + 1,
    time: 0,
    agent,
    kind,
    data,
  }));
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
  expect(view.subagents()).toEqual([
    {
      agent: SUB,
      name: "helper",
      description: "Look around",
      status: "working",
      step: "Write /a",
      toolCalls: 2,
    },
  ]);
  expect(view.filesChanged()).toEqual(["/a", "/b"]);
  expect(view.activity).toBe("helper: Write /a");
  expect(view.lastSeq).toBe(8);
});

test.each([
  [
    "subagent_finished",
    SUB,
    { callId: "c1", name: "helper", status: "success", report: "All\nseen" },
    "completed",
    "All seen",
    "helper finished",
  ],
  [
    "subagent_finished",
    SUB,
    { callId: "c1", name: "helper", status: "error", report: "lost" },
    "failed",
    "lost",
    "helper failed: lost",
  ],
  [
    "approval_requested",
    SUB,
    { tool: "write_file", summary: "Write /a" },
    "working",
    "waits for approval: Write /a",
    "helper: waits for approval: Write /a",
  ],
  [
    "approval_decided",
    SUB,
    { tool: "write_file", decision: "reject", by: "page" },
    "working",
    "rejected (page): write_file",
    "helper: rejected (page): write_file",
  ],
  [
    "approval_decided",
    SUB,
    { tool: "write_file", decision: "reject", by: "deadline" },
    "working",
    "denied, because nobody decided in time: write_file",
    "helper: denied, because nobody decided in time: write_file",
  ],
  [
    "tool_finished",
    SUB,
    { tool: "ls", status: "error", summary: "no such path" },
    "working",
    "ls failed: no such path",
    "helper: ls failed: no such path",
  ],
  ["model_called", SUB, { text: "I see" }, "working", "I see", "helper: I see"],
  ["model_called", SUB, { text: "" }, "working", "Write /a", "helper: Write /a"],
  ["warning", [], { message: "careful" }, "working", "Write /a", "careful"],
  ["run_cancelled", [], { reason: "enough" }, "failed", "Write /a", "cancelled: enough"],
  ["run_failed", [], { message: "broken" }, "failed", "Write /a", "failed: broken"],
] as const)("%s of %o with %o", (kind, agent, data, status, step, activity) => {
  const view = fold([...DELEGATED, { runId: "r", seq: 9, time: 0, kind, agent, data }]);
  expect(view.subagents()).toMatchObject([{ status, step }]);
  expect(view.activity).toBe(activity);
});

test("a fold is brought up to date from where it stands, and each event is read once", async () => {
  const log = Array.from({ length: 1234 }, (_, index) => index + 1).map((seq): RunEvent => ({
    runId: "r",
    seq,
    time: 0,
    agent: [],
    kind: "file_changed",
    data: { path: `/${seq}` },
  }));
  let available = 1234 - 1;
  let read = 0;
  const folds = new RunFolds((_run, after, limit) => {
    const page = log.slice(after, Math.min(available, after + limit));
    read += page.length;
    return page;
  });
  const [one, two] = await Promise.all([folds.of("r"), folds.of("r")]);
  expect(one).toBe(two);
  expect(one.filesChanged()).toHaveLength(1233);
  available = 1234;
  expect((await folds.of("r")).filesChanged()).toHaveLength(1234);
  expect(read).toBe(1234);
});

test("a fold that was dropped for others is built again", async () => {
  const folds = new RunFolds((_run, after) => DELEGATED.slice(after), 2);
  const first = await folds.of("a");
  await folds.of("b");
  expect(await folds.of("a")).toBe(first);
  await folds.of("c");
  expect(await folds.of("a")).toBe(first);
  await folds.of("b");
  await folds.of("c");
  const again = await folds.of("a");
  expect(again).not.toBe(first);
  expect(again.subagents()).toEqual(first.subagents());
});
