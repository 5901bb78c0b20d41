/** An agent waits if all of its open calls wait, however deep the one that asks a person is. */
import { describe, expect, test } from "vitest";
import type { AgentPath } from "../../src/agent/agent.ts";
import type { RunEvent, RunEventKind } from "../../src/runs/events.ts";
import type { RunRequest } from "../../src/runs/run.ts";
import { RunFold } from "../../src/runs/view.ts";
import { waitsIn } from "../../src/server/views/waits.ts";

const path = (...ids: string[]): AgentPath => ids.map((callId) => ({ callId, name: "worker" }));
const started = (agent: AgentPath, callId: string, tool = "act", more = {}) =>
  ["tool_started", agent, { callId, tool, summary: tool, ...more }] as const;
const ended = (agent: AgentPath, callId: string) =>
  ["tool_finished", agent, { callId, tool: "act", status: "success", summary: "" }] as const;
const child = (agent: AgentPath, more = {}) =>
  [
    "subagent_started",
    agent,
    { callId: agent.at(-1)?.callId, name: "w", description: "d", ...more },
  ] as const;
const asks = (agent: AgentPath, callId?: string, kind = "ask") =>
  ["question_asked", agent, { questionId: `q ${agent.length} ${callId}`, kind, text: "?", callId }] as const;

type Happened = readonly [RunEventKind, AgentPath, object];

/** The agents that wait after these events, by depth. Each event takes a second; no question is answered. */
function waitingAfter(...happened: Happened[]) {
  const fold = new RunFold();
  const requests: RunRequest[] = [];
  for (const [index, [kind, agent, data]] of happened.entries()) {
    const event = { runId: "r", seq: index + 1, time: index * 1000, kind, agent, data } as RunEvent;
    fold.add(event);
    if (event.kind !== "question_asked") continue;
    const { questionId: id, kind: way } = event.data;
    const question =
      way === "ask" ? { kind: way, text: "?", fields: [] } : { kind: "interrupt" as const, value: "?" };
    const place = { id, runId: "r", interruptId: id, index: 0, agent };
    requests.push({ ...question, ...place, status: "pending", requestedAt: event.time });
  }
  const mainAgent = fold.mainAgent({ createdAt: 0 });
  const view = {
    requests: fold.withCalls(requests),
    mainAgent,
    subagents: fold.subagents(),
  };
  const waits = waitsIn(view);
  return [path(), ...view.subagents.map(({ agent }) => agent)].map((agent) => waits.ofAgent(agent));
}

const [main, one, two] = [path(), path("a"), path("a", "b")];
const nested = [started(main, "a", "task"), child(one), started(one, "b", "task"), child(two)] as const;

describe("agents below each other", () => {
  test.each<[string, Happened[], (number | undefined)[]]>([
    ["work until one asks", [...nested, started(two, "c")], [undefined, undefined, undefined]],
    ["wait for the one that asks", [...nested, started(two, "c"), asks(two, "c")], [5000, 5000, 5000]],
    [
      "work beside it",
      [...nested, started(two, "c"), asks(two, "c"), started(one, "d")],
      [undefined, undefined, 5000],
    ],
    [
      "wait when that has ended",
      [...nested, started(two, "c"), asks(two, "c"), started(one, "d"), ended(one, "d")],
      [7000, 7000, 5000],
    ],
    [
      "work on another call",
      [...nested, started(two, "c"), started(two, "d"), asks(two, "c")],
      [undefined, undefined, undefined],
    ],
    ["wait for a call of an older journal", [...nested, started(two, "c"), asks(two)], [5000, 5000, 5000]],
    [
      "wait for a graph that does not say where it asks",
      [...nested, asks(main, undefined, "interrupt")],
      [4000, 4000, 4000],
    ],
    [
      "do not wait for one that has its turn later",
      [
        ...nested,
        asks(two),
        started(one, "q", "task"),
        ["subagent_queued", path("a", "q"), { callId: "q", name: "w", description: "d" }],
      ],
      [4000, 4000, 4000, undefined],
    ],
    ["think", [...nested], [undefined, undefined, undefined]],
  ])("%s", (_what, happened, expected) => {
    expect(waitingAfter(...happened)).toEqual(expected);
  });

  test("in the background are waited for when there is nothing else to do", () => {
    const background = [child(one, { background: true }), started(one, "c"), asks(one, "c")] as const;
    expect(waitingAfter(...background)).toEqual([2000, 2000]);
    expect(waitingAfter(...background, started(main, "w", "check_async_task"))).toEqual([2000, 2000]);
    expect(waitingAfter(...background, started(main, "w"))).toEqual([undefined, 2000]);
  });

  test("a program waits for its calls, and works while one of them does", () => {
    const program = [
      started(main, "p", "run_program"),
      started(main, "p:1", "act", { within: "p" }),
    ] as const;
    expect(waitingAfter(...program, asks(main, "p:1"))).toEqual([2000]);
    expect(waitingAfter(...program, asks(main, "p:2"))).toEqual([undefined]);
  });
});
