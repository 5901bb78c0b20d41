import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/runs/events.ts";
import type { RunView, SubagentView } from "../../../src/runs/run.ts";
import { RunFold } from "../../../src/runs/view.ts";
import type { Question } from "../../../src/tools/request.ts";
import { html } from "../../../src/server/views/html.ts";
import { renderDiff } from "../../../src/server/views/content/diff.ts";
import { renderAnswer } from "../../../src/server/views/room/answer.ts";
import type { Complaint } from "../../../src/server/views/room/request.ts";
import { renderReview, requestsIn } from "../../../src/server/views/room/review.ts";
import { renderRunHead } from "../../../src/server/views/room/run-head.ts";
import { renderContent, renderFrame } from "../../../src/server/views/room/shell.ts";
import { documentOf } from "../../support/screen-html.ts";
import { type AgentRow, agentRows, inOrder } from "../../../src/server/views/room/timeline.ts";
import { deltaOf } from "../../../src/server/views/tree.ts";
import { renderWork } from "../../../src/server/views/room/work.ts";
import type { PageSession } from "../../../src/server/contracts/viewer.ts";
import { ME } from "../../runs/support.ts";
import { NO_WORK, anApproval, aQuestion, aView } from "../support.ts";

const SESSION: PageSession = {
  id: "s1",
  run: "run_1",
  principal: ME,
  scopes: ["run", "approve", "read"],
};
const EVIL = `"><script src="https://evil.example"></script><img src=x onerror=alert(1)>`;

const agent = (path: string[], name = "researcher"): SubagentView => ({
  agent: path.map((callId) => ({ callId, name })),
  name,
  description: `does ${path.join(" ")}`,
  status: "working",
  step: `step of ${path.join(" ")}`,
  ...NO_WORK,
  toolCalls: 1,
});

const EVIL_QUESTIONS: readonly Question[] = [
  {
    kind: "ask",
    text: EVIL,
    fields: [
      {
        name: EVIL,
        title: EVIL,
        description: EVIL,
        type: "choice",
        options: [EVIL],
        labels: [EVIL],
        other: true,
      },
      { name: "text", type: "text" },
    ],
  },
  { kind: "interrupt", value: { question: EVIL, [EVIL]: EVIL }, schema: { type: "array", title: EVIL } },
  { kind: "elicitation", server: EVIL, message: EVIL, mode: "url", url: "https://example.org/?q=<b>" },
  { kind: "elicitation", server: EVIL, message: EVIL, mode: "url", url: `javascript:${EVIL}` },
];

/** What is offered for a run that continues one. */
const NEXT = {
  readiness: { model: EVIL, models: [{ spec: EVIL, problem: EVIL }], limits: { modelCalls: 4 } },
  chosen: new URLSearchParams({ model: EVIL, goal: EVIL, tokens: EVIL }),
};

/** All screens of a run in one document. */
function rendered(view: RunView, events: RunEvent[] = [], complaint?: Complaint): string {
  const requests = requestsIn(view, new Map([[EVIL, EVIL]]));
  const viewer = { session: SESSION, openCommand: undefined };
  const more = { steps: events, activity: events, isAll: true, older: undefined, selected: "" };
  const points = [{ id: EVIL, time: 0, summary: EVIL }];
  const files = events
    .filter((event) => event.kind === "file_changed")
    .map(({ time, data: { path, diff = "" } }) => ({
      path,
      time,
      changes: 1,
      diffs: [renderDiff(diff, { label: EVIL, path: EVIL, remark: EVIL })],
    }));
  const main = html`${renderRunHead(view, SESSION, { tab: "work", now: 0 })}
  ${renderWork({ view, viewer: SESSION, now: 0, ...more })}
  ${renderReview({ requests, viewer, now: 0, view, complaint })}
  ${renderAnswer({ view, viewer: SESSION, files, points, next: NEXT })}`;
  const screen = { title: EVIL, place: "runs", waiting: 1, isLive: true, session: SESSION, main } as const;
  return documentOf({ ...renderContent(screen), frame: renderFrame(screen).trees });
}

test("text of models, files, tools and people is shown as it is and is never markup", () => {
  const event: RunEvent = {
    runId: "run_1",
    seq: 1,
    time: 0,
    agent: [{ callId: "c", name: EVIL }],
    kind: "tool_started",
    data: { callId: "c", tool: EVIL, summary: EVIL },
  };
  const changed: RunEvent = {
    ...event,
    kind: "file_changed",
    data: { callId: "c", path: EVIL, diff: `+${EVIL}` },
  };
  const view = aView({
    run: { task: EVIL, answer: EVIL, todos: [{ content: EVIL, status: "pending" }], status: "completed" },
    activity: EVIL,
    goal: {
      criteria: [EVIL],
      judged: {
        round: 1,
        rounds: 5,
        verdicts: [{ criterion: EVIL, verdict: "uncertain", evidence: EVIL, missing: EVIL }],
      },
      line: `goal not met: ${EVIL}`,
    },
    filesChanged: [EVIL],
    subagents: [{ ...agent(["c"], EVIL), description: EVIL, step: EVIL }],
    requests: [
      anApproval({
        id: EVIL,
        tool: EVIL,
        agent: [{ callId: "c", name: EVIL }],
        args: { text: EVIL },
        preview: { kind: "diff", summary: EVIL, detail: `+${EVIL}\n-</pre>${EVIL}` },
      }),
      ...EVIL_QUESTIONS.map((question, index) =>
        aQuestion({ id: `${EVIL}${index}`, agent: [{ callId: "c", name: EVIL }], question }),
      ),
    ],
  });
  const complaint = { requestId: EVIL, problem: EVIL, form: new URLSearchParams({ edited_args: EVIL }) };
  const text = rendered(view, [event, changed], complaint);
  expect(text).not.toMatch(/<img|<script src="https|onerror=(?!alert\(1\)&#62;)/);
  expect(text).not.toContain("<script");
  expect(text.match(/<\/textarea>/g)).toHaveLength(8);
  const failed = rendered(
    aView({ run: { status: "failed", failure: { reason: "internal", message: EVIL } } }),
  );
  expect(failed).toContain("&#60;script");
  expect(failed).not.toContain("<script");
});

test("agents stand below those that started them", () => {
  const view = aView({ subagents: [agent(["a"]), agent(["a", "x"]), agent(["b"]), agent(["a", "x", "y"])] });
  const text = rendered(view);
  const order = ["does a<", "does a x<", "does a x y", "does b"].map((part) =>
    text.replace(/\s*<small>/g, "<").indexOf(part),
  );
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order).not.toContain(-1);
});

describe("of many agents", () => {
  const states: Partial<SubagentView>[] = [
    { status: "completed", startedAt: 0, endedAt: 5 },
    { status: "queued" },
    { status: "working", startedAt: 1 },
    { status: "working", startedAt: 2, isRetrying: true },
    { status: "failed", startedAt: 0, endedAt: 5 },
    { status: "working", startedAt: 3 },
  ];
  const many = Array.from({ length: 12 }, (_, index) => ({ ...agent([`c${index}`]), ...states[index % 6] }));
  const below = { ...agent(["c6", "x"]), status: "completed" as const };
  const asking = anApproval({ agent: [{ callId: "c5", name: "researcher" }] });
  const view = aView({ subagents: [...many, below], requests: [asking] });
  const namesIn = (rows: readonly AgentRow[]) => rows.map(({ name }) => name.replace("does ", ""));

  test("those come first that need something, and those that have finished are folded", () => {
    const { shown, folded } = inOrder(agentRows(view), "");
    expect(namesIn(shown)).toEqual(["Main agent", ..."c5 c3 c4 c9 c10 c2 c8 c11 c1 c7".split(" ")]);
    expect(namesIn(folded)).toEqual(["c0", "c6", "c6 x"]);
    expect(rendered(view)).toMatch(/<summary class="tl-row" data-row>[^]*3 finished/);
  });

  test("the one that is looked at is shown, and few are not folded", () => {
    const rows = agentRows(view);
    const selected = rows.find(({ name }) => name === "does c6 x")?.key ?? "";
    const { shown, folded } = inOrder(rows, selected);
    expect(folded).toEqual([]);
    expect(namesIn(shown).slice(-3)).toEqual(["c0", "c6", "c6 x"]);
  });

  test("a few stand in the order in which they were started", () => {
    const rows = agentRows(aView({ subagents: many.slice(0, 8) }));
    expect(inOrder(rows, "")).toEqual({ shown: rows, folded: [] });
  });
});

test("when a person was waited for is shown, also after the run", () => {
  const waits = (...times: [number, number][]) =>
    times.map(([requestedAt, decidedAt]) =>
      anApproval({ agent: [], status: "approved", requestedAt, decidedAt }),
    );
  // Two that overlap are one wait; one that took no time is none.
  const approvals = waits([6_000, 8_000], [2_000, 4_000], [3_000, 5_000], [9_000, 9_000]);
  const view = aView({
    run: { status: "completed", createdAt: 0, endedAt: 10_000 },
    mainAgent: { ...NO_WORK, startedAt: 0, endedAt: 10_000 },
    subagents: [agent(["c1"])],
    requests: approvals,
  });
  const bars = [...rendered(view).matchAll(/class="asks past"\s+x="([^"]+)"\s+width="([^"]+)"/g)];
  expect(bars.map(([, x, width]) => [x, width])).toEqual([
    ["20.00%", "30.00%"],
    ["60.00%", "20.00%"],
  ]);
});

test("a call that is still at work is drawn in the bar of its agent until now", () => {
  const view = aView({
    run: { createdAt: 0 },
    mainAgent: { ...NO_WORK, startedAt: 0, busy: [[1_000, 2_000]], busySince: 6_000 },
    subagents: Array.from({ length: 60 }, (_, index) => ({
      ...agent([`c${index}`]),
      startedAt: 0,
      busySince: 0,
    })),
  });
  const more = { steps: [], activity: [], isAll: true, older: undefined, selected: "" };
  const { text } = renderWork({ view, viewer: SESSION, now: 10_000, ...more });
  const bars = [...text.matchAll(/class="at-work-tick"\s+x="([^"]+)"\s+width="([^"]+)"/g)];
  // The axis ends at a quarter of 15 s that leaves room for the future. Calls of many subagents are not drawn.
  expect(bars.map(([, x, width]) => [x, width])).toEqual([
    ["8.89%", "8.89%"],
    ["53.33%", "35.56%"],
  ]);
});

test("between two steps of the axis a run at work looks the same", () => {
  const view = aView({
    run: { createdAt: 0 },
    mainAgent: { ...NO_WORK, startedAt: 0, busySince: 60_000 },
    subagents: [{ ...agent(["c1"]), startedAt: 1_000, busySince: 2_000 }],
  });
  const more = { steps: [], activity: [], isAll: true, older: undefined, selected: "" };
  const at = (now: number) => renderWork({ view, viewer: SESSION, now, ...more }).trees;
  // After ten minutes there is a mark every three, the line of now moves every 3 s, and the axis grows every 45 s.
  expect(deltaOf(at(609_000), at(611_999))).toBeUndefined();
  const moved = JSON.stringify(deltaOf(at(609_000), at(612_000)));
  expect(moved.length).toBeLessThan(1000);
  expect(moved).toContain("x1");
});

test("calls that a cancelled run broke off are drawn until its end", () => {
  const fold = new RunFold();
  const add = (time: number, seq: number, event: Pick<RunEvent, "kind" | "data">): void =>
    // Each brings the data of its kind.
    fold.add({ runId: "run_1", seq, time, agent: [], ...event } as RunEvent);
  add(0, 1, { kind: "run_started", data: {} });
  add(2_000, 2, { kind: "tool_started", data: { callId: "t1", tool: "execute", summary: "sleep" } });
  add(10_000, 3, { kind: "run_cancelled", data: { reason: "enough" } });
  const times = { createdAt: 0, endedAt: 10_000 };
  const view = aView({
    run: { status: "cancelled", ...times },
    mainAgent: fold.mainAgent(times),
    subagents: [agent(["c1"])],
  });
  const [bar] = rendered(view).matchAll(/class="tick"\s+x="([^"]+)"\s+width="([^"]+)"/g);
  expect(bar?.slice(1)).toEqual(["20.00%", "80.00%"]);
});

test("the costs of agents and models add up to what the run cost", () => {
  const cents = [0.0248, 0.0248, 0.0248, 0.0093];
  const [own = 0, ...others] = cents;
  const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, calls: 1, model: "m" };
  const sum = others.reduce((total, one) => total + one, 0);
  const view = aView({
    run: { status: "completed", endedAt: 10_000 },
    mainAgent: { ...NO_WORK, model: "m", costUsd: own, startedAt: 0 },
    subagents: others.map((costUsd, at) => ({ ...agent([`c${at}`]), model: "m", costUsd, startedAt: 0 })),
    models: [
      { ...usage, role: "main", costUsd: own },
      { ...usage, role: "subagents", costUsd: sum },
    ],
  });
  const text = rendered(view);
  const centsOf = (found: Iterable<RegExpMatchArray>): number[] =>
    Array.from(found, ([, amount]) => Math.round(100 * Number(amount)));
  const total = centsOf(text.matchAll(/<dt>Cost<\/dt>\s*<dd>\$([^<]*)<\/dd>/g));
  expect(total).toEqual([8]);
  const column = centsOf(text.matchAll(/<span class="num">\$([\d.]+)<\/span\s*><\/a/g));
  expect(column).toHaveLength(4);
  const [models, agents] = Array.from(text.matchAll(/<ul class="cost">[^]*?<\/ul>/g), ([list]) =>
    centsOf(list.matchAll(/\$([\d.]+)/g)),
  );
  expect([models?.length, agents?.length]).toEqual([2, 4]);
  for (const parts of [column, models, agents]) expect(parts?.reduce((all, one) => all + one, 0)).toBe(8);
  // The panel of an agent has its number of the column.
  expect(text).toContain(`<span>$${((column[0] ?? 0) / 100).toFixed(2)}</span>`);
});

test("a call beyond a limit of calls is explained as the report", () => {
  const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, model: "m", role: "main" as const };
  const run = { status: "completed", stopReason: "max_iterations", limits: { modelCalls: 4 } } as const;
  const shown = (calls: number): string =>
    /<dt>Model calls<\/dt>\s*<dd>([^<]*)/.exec(
      rendered(aView({ run, models: [{ ...usage, calls }] })),
    )?.[1] ?? "";
  expect([shown(5), shown(4)]).toEqual(["5, with the final report", "4"]);
});

test("the words of a server and of the agent have names above them", () => {
  const question = aQuestion({
    question: { kind: "elicitation", server: "tracker", message: "Which?", mode: "form", fields: [] },
  });
  const view = aView({ run: { status: "input_required" }, requests: [question] });
  const requests = requestsIn(view, new Map([[question.id, "I file the issue."]]));
  const viewer = { session: SESSION, openCommand: undefined };
  const { text } = renderReview({ requests, viewer, now: 0, view });
  const quotes = Array.from(text.matchAll(/<blockquote[^>]*>([^]*?)<\/blockquote>/g), ([, quote = ""]) =>
    quote
      .replaceAll(/<[^>]*>|\s+/g, " ")
      .replaceAll(/ +/g, " ")
      .trim(),
  );
  expect(quotes).toEqual(["What the server says Which?", "What the agent said before I file the issue."]);
  expect(text.match(/<span class="label">What the/g)).toHaveLength(2);
});

test("a model that answered that it is overloaded was reached", () => {
  const message = "The model 'm' is overloaded (HTTP 529). Try again later, or choose another model.";
  const text = rendered(
    aView({ run: { status: "failed", failure: { reason: "model_unavailable", message } } }),
  );
  expect(text).toContain("<h2>The model is not available</h2>");
  expect(text).not.toContain("reached");
});

test("a long run is shown in bounds", () => {
  const many = Array.from({ length: 2000 }, (_, index) => index);
  const view = aView({
    run: { todos: many.map((index) => ({ content: `t${index}`, status: "pending" })) },
    subagents: many.map((index) => agent([`c${index}`])),
    filesChanged: many.map((index) => `/workspace/${index}`),
  });
  const text = rendered(view);
  expect(text).toContain("2000");
  expect(text.length).toBeLessThan(500_000);
});

test.each([
  [["approve", "reject"] as const, ["approve", "reject"]],
  [["approve", "edit", "reject"] as const, ["approve", "edit", "reject"]],
  [["reject"] as const, ["reject"]],
])("of %j the buttons are %j", (allowed, buttons) => {
  const view = aView({
    run: { status: "input_required" },
    requests: [anApproval({ allowedDecisions: [...allowed] })],
  });
  const text = rendered(view);
  expect([...text.matchAll(/name="decision" value="(\w+)"/g)].map(([, value]) => value)).toEqual(buttons);
});

test.each([
  [[0.0123, 0.001], "$0.01"],
  [[0.0123, undefined], "≥ $0.01"],
  [[undefined], "unknown"],
  [[0], undefined],
])("calls of %j dollars cost %j", (costs, shown) => {
  const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, calls: 1 };
  const models = costs.map((costUsd) => ({
    ...usage,
    model: "m",
    role: "main" as const,
    ...(costUsd === undefined ? {} : { costUsd }),
  }));
  const text = rendered(aView({ models }));
  expect(/<dt>Cost<\/dt>\s*<dd>([^<]*)<\/dd>/.exec(text)?.[1]).toBe(shown);
  expect(text.includes("The price of m is not known. Set it in limits.prices.")).toBe(
    shown === "unknown" || shown?.startsWith("≥") === true,
  );
});

test("a proposed change that the folder has by now is said", () => {
  const view = aView({ run: { status: "completed", changes: "propose", unapplied: 4 } });
  const proposed = { run: view.run, change: undefined, other: undefined, folder: undefined };
  const viewer = { session: SESSION, openCommand: undefined };
  const { text } = renderReview({ requests: [], viewer, now: 0, view, proposed });
  expect(text).toContain("The folder already has every change of this run.");
  expect(text).not.toContain("machine");
});

test("a request to delete names the path once, and shows the lost content", () => {
  const path = "/workspace/docs/検潮所/old-notes.md";
  const preview = { kind: "arguments" as const, summary: `Delete ${path}`, destination: path, detail: path };
  const lost = "312 lines, 10.4 kB\n\n# Notes <b>\n";
  const approval = anApproval({
    tool: "delete",
    args: { file_path: path },
    preview: { ...preview, lost },
    allowedDecisions: ["approve"],
  });
  const requests = requestsIn(aView({ requests: [approval] }), new Map());
  const { text } = renderReview({ requests, viewer: { session: SESSION, openCommand: undefined }, now: 0 });
  const card = text.slice(text.indexOf("<article"), text.indexOf("</article>"));
  expect(card.replaceAll(/<[^>]*>/g, "").match(/old-notes\.md/g)).toHaveLength(1);
  expect(card).toContain("312 lines, 10.4 kB\n\n# Notes &#60;b&#62;");
  expect(card).not.toContain("<dt>Action</dt>");
});

describe("the retries of a call of a model", () => {
  const retry = (seq: number, attempt: number): RunEvent => ({
    runId: "run_1",
    seq,
    time: seq * 1000,
    agent: [],
    kind: "model_retry",
    data: {
      model: "m",
      reason: "model_unavailable",
      message: `Model overloaded (HTTP 529). Attempt ${attempt + 1} in 31 s.`,
      attempt,
      pauseMs: 31_000,
    },
  });
  const events = [1, 2, 3, 1, 2].map((attempt, at) => retry(at + 1, attempt)).toReversed();
  const shown = (status: "working" | "failed"): string[] => {
    const screen = { view: aView({ run: { status } }), viewer: SESSION, now: 10_000, selected: "" };
    const { text } = renderWork({ ...screen, steps: events, activity: [], isAll: false, older: undefined });
    const writing = /<li[^>]*id="writing"[^]*?<\/li>/;
    const steps = text.slice(text.indexOf('<ol class="steps"'), text.indexOf("</ol>")).replace(writing, "");
    return Array.from(steps.matchAll(/<li[^]*?<\/li>/g), ([row]) =>
      row
        .replaceAll(/<time[^]*?<\/time>|<[^>]*>/g, "")
        .replaceAll(/\s+/g, " ")
        .trim(),
    );
  };

  test("are one row, the newest with the time until the next attempt", () => {
    expect(shown("working")).toEqual([
      "Model overloaded (HTTP 529). Attempt 3 in 26s.",
      "Model overloaded (HTTP 529). 3 retries.",
    ]);
    expect(shown("failed")[0]).toBe("Model overloaded (HTTP 529). 2 retries.");
  });
});
