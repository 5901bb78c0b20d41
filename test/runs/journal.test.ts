import { anApproval } from "../server/support.ts";
import { expect, test } from "vitest";
import type { AgentEvent } from "../../src/agent/agent.ts";
import { callRequests, requestedEntry } from "../../src/runs/asked-events.ts";
import { entryOf, type JournalledEvent } from "../../src/runs/events.ts";
import { isRepeat } from "../../src/runs/sql/journal.ts";
import { toJson } from "../../src/core/json.ts";

const MAIN: [] = [];
const SUB = [{ callId: "c1", name: "helper" }];
const long = "x".repeat(100_000);
const usage = { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 };

const EVENTS: JournalledEvent[] = [
  {
    kind: "todos",
    agent: MAIN,
    todos: Array.from({ length: 5000 }, () => ({ content: long, status: "pending" as const })),
  },
  { kind: "subagent_queued", agent: SUB, callId: "c1", name: "helper", description: long },
  { kind: "subagent_started", agent: SUB, callId: "c1", name: "helper", description: long },
  { kind: "subagent_finished", agent: SUB, callId: "c1", name: "helper", status: "success", report: long },
  { kind: "tool_started", agent: MAIN, callId: "c2", tool: "grep", summary: long },
  { kind: "tool_finished", agent: MAIN, callId: "c2", tool: "grep", status: "error", summary: long },
  { kind: "model_called", agent: MAIN, model: "m", usage, text: long },
  { kind: "warning", agent: MAIN, message: long },
];

test("whatever an agent tells, one journal line stays short", () => {
  for (const event of EVENTS) {
    const entry = entryOf(event);
    expect(entry.kind).toBe(event.kind);
    expect(toJson(entry.data).length).toBeLessThan(event.kind === "todos" ? 30_000 : 2500);
  }
});

test("what changes the run's row is the main agent's alone, tokens excepted", () => {
  const todos = [{ content: "a", status: "pending" as const }];
  expect(entryOf({ kind: "todos", agent: MAIN, todos }).effect).toEqual({ todos });
  expect(entryOf({ kind: "todos", agent: SUB, todos }).effect).toBeUndefined();
  expect(entryOf({ kind: "model_called", agent: MAIN, model: "m", usage, text: "t" }).effect).toEqual({
    usage,
    cost: "unknown",
    answer: "t",
  });
  expect(entryOf({ kind: "model_called", agent: SUB, model: "m", usage, text: "t" }).effect).toEqual({
    usage,
    cost: "unknown",
  });
});

test("events about the same call share an identity, others do not", () => {
  const of = (event: JournalledEvent) => entryOf(event).identity;
  const started = (agent: typeof SUB | typeof MAIN, callId: string): JournalledEvent => ({
    kind: "tool_started",
    agent,
    callId,
    tool: "t",
    summary: "",
  });
  const finished: JournalledEvent = {
    kind: "tool_finished",
    agent: MAIN,
    callId: "a",
    tool: "t",
    status: "success",
    summary: "",
  };
  expect(of(started(MAIN, "a"))).toBe(of(finished));
  const subagent: AgentEvent = {
    kind: "subagent_started",
    agent: MAIN,
    callId: "a",
    name: "n",
    description: "",
  };
  const different = [started(MAIN, "a"), started(MAIN, "b"), started(SUB, "a"), subagent].map(of);
  expect(new Set(different).size).toBe(different.length);
  expect(of({ kind: "model_called", agent: MAIN, model: "m", usage, text: "" })).toBeUndefined();
});

test("a repeat tells what was told last; a call that runs again after its end is news", () => {
  const call = { agent: MAIN, callId: "a", tool: "t", summary: "" };
  const started = entryOf({ kind: "tool_started", ...call });
  const finished = entryOf({ kind: "tool_finished", status: "success", ...call });
  const line = (entry: typeof started) => ({ kind: entry.kind, data: toJson(entry.data) });
  expect(isRepeat(started, line(started))).toBe(true);
  expect(isRepeat(finished, line(started))).toBe(false);
  expect(isRepeat(started, line(finished))).toBe(false);
  const todos = (content: string) =>
    entryOf({ kind: "todos", agent: MAIN, todos: [{ content, status: "pending" }] });
  expect(isRepeat(todos("a"), line(todos("a")))).toBe(true);
  expect(isRepeat(todos("b"), line(todos("a")))).toBe(false);
});

test("an interrupt with several calls becomes one approval each, with a preview in any case", () => {
  const preview = { kind: "command" as const, summary: "Run ls", detail: "ls" };
  const request = {
    actionRequests: [
      { name: "execute", args: { command: "ls" }, description: "d", toolCallId: "c1", preview },
      { name: "note", args: { text: "x" }, description: "Note\nx", toolCallId: "c2" },
    ],
    reviewConfigs: [{ actionName: "execute", allowedDecisions: ["approve" as const] }],
  };
  const contents = callRequests(request);
  expect(contents).toMatchObject([
    { kind: "approval", tool: "execute", preview, allowedDecisions: ["approve"] },
    {
      preview: { kind: "arguments", summary: "Note x", detail: '{\n  "text": "x"\n}' },
      allowedDecisions: ["approve", "edit", "reject"],
    },
  ]);
  const entries = contents.map((content, index) =>
    requestedEntry(anApproval({ ...content, agent: SUB, index })),
  );
  expect(entries.map(({ data }) => data)).toMatchObject([{ summary: "Run ls" }, { summary: "Note x" }]);
});
