import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newLines } from "../../../src/cli/terminal/screen.ts";
import {
  chopText,
  colorsFor,
  displayWidth,
  fit,
  withoutTabs,
  wrapText,
} from "../../../src/cli/terminal/text.ts";
import { type RunPicture, renderTree } from "../../../src/cli/terminal/tree.ts";

const plain = colorsFor({}, {});

const nothingOpen = { pending_approvals: 0, pending_questions: 0 };
const named = (name: string) => ({ agent: "general-purpose", name, description: name, ...nothingOpen });

const picture: RunPicture = {
  status: "working",
  activity: "Study docs: reads",
  todos: [
    { content: "Map the workspace", status: "completed" },
    { content: "Study the areas", status: "in_progress" },
    { content: "Write the report", status: "pending" },
  ],
  agents: [
    { ...named("Study src"), call_ids: ["a"], status: "completed", step: "12 findings", tool_calls: 1 },
    {
      ...named("Study docs"),
      call_ids: ["b"],
      status: "working",
      step: "read_file /workspace/docs/a.md",
      tool_calls: 3,
    },
  ],
  created_at: "2026-01-01T12:00:00.000Z",
  usage: { input_tokens: 12_345, output_tokens: 678, cost_usd: 0.0123 },
};

const style = { colors: plain, frame: 0, now: Date.parse("2026-01-01T12:01:05.000Z") };

const anyPicture = fc.record<RunPicture>({
  status: fc.constantFrom("working", "input_required", "completed", "failed", "cancelled"),
  activity: fc.string({ unit: "binary" }),
  todos: fc.array(
    fc.record({
      content: fc.string({ unit: "binary" }),
      status: fc.constantFrom("pending" as const, "in_progress" as const, "completed" as const),
    }),
  ),
  agents: fc.array(
    fc.record({
      agent: fc.constantFrom("a", "a › b", "a › b › c"),
      name: fc.string({ unit: "binary", maxLength: 20 }),
      call_ids: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 }),
      description: fc.string({ unit: "binary", maxLength: 200 }),
      status: fc.constantFrom(...(["queued", "working", "completed", "failed", "cancelled"] as const)),
      step: fc.string({ unit: "binary", maxLength: 200 }),
      tool_calls: fc.nat(9999),
      pending_approvals: fc.nat(2),
      pending_questions: fc.nat(2),
    }),
    { maxLength: 30 },
  ),
  created_at: fc.constant("2026-01-01T12:00:00.000Z"),
  usage: fc.record({
    input_tokens: fc.nat(),
    output_tokens: fc.nat(),
    cost_usd: fc.constant("unknown" as const),
  }),
});

describe("renderTree", () => {
  const shown = (some: Partial<RunPicture>, more: { width: number; height?: number }): string[] =>
    renderTree({ ...picture, ...some }, { ...style, ...more }).map((line) => line.trimEnd());

  it("shows todos, agents with their steps, what happened last, and what it took", () => {
    expect(shown({}, { width: 80 })).toEqual([
      "  ✔ Map the workspace",
      "  ▸ Study the areas",
      "  ○ Write the report",
      "",
      "  ├─ ✔ Study src   12 findings                                           1 call",
      "  └─ ⠋ Study docs  read_file /workspace/docs/a.md                       3 calls",
      "",
      "  ⠋ 1 of 2 agents at work",
      "    1m 05s · 12k tokens in, 678 out · $0.01",
    ]);
  });

  it("names an agent by its task, after its type where that is not the usual one", () => {
    const named = (agent: string, description: string): string | undefined =>
      shown({ todos: [], agents: [{ ...picture.agents[1]!, agent, description }] }, { width: 60 })[0];
    expect(named("general-purpose", "Compare prices. Then report.")).toMatch(/⠋ Compare prices {2}/);
    expect(named("general-purpose › scout", "Look around\nand back")).toMatch(/⠋ scout: Look around {2}/);
    expect(named("scout", " ")).toMatch(/⠋ scout {2}/);
  });

  const MARKS = { completed: "✔", working: "⠋", queued: "◌", failed: "✖", cancelled: "■" };
  /** So many agents of each kind, in an order that says nothing. */
  function agentsOf(counts: Partial<Record<keyof typeof MARKS | "asking", number>>): RunPicture["agents"] {
    return Object.entries(counts).flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, index) => ({
        ...picture.agents[1]!,
        call_ids: [`${kind}${index}`],
        description: `${kind} ${index} 👩‍👩‍👧`,
        status: kind === "asking" ? ("working" as const) : (kind as keyof typeof MARKS), // a key of the counts
        pending_approvals: kind === "asking" ? 1 : 0,
        pending_questions: 0,
      })),
    );
  }
  const marksOf = (lines: string[]): string =>
    lines.flatMap((line) => /[├└]─ (.) /u.exec(line)?.[1] ?? []).join("");

  it("puts first who needs a person, of many agents, and those that are done last", () => {
    const agents = agentsOf({ completed: 2, queued: 3, working: 4, failed: 1, asking: 2, cancelled: 1 });
    expect(marksOf(shown({ agents }, { width: 100, height: 40 }))).toBe("??✖⠋⠋⠋⠋◌◌◌■✔✔");
    expect(marksOf(shown({ agents: agents.slice(0, 8) }, { width: 100, height: 40 }))).toBe("✔✔◌◌◌⠋⠋⠋");
  });

  it.each([40, 100])("shows what matters of a hundred agents, on %i columns", (width) => {
    const agents = agentsOf({ completed: 87, queued: 20, working: 8, failed: 12, asking: 1 });
    const lines = shown({ agents, todos: [] }, { width, height: 16 });
    expect(lines).toHaveLength(16);
    expect(marksOf(lines)).toBe("?✖✖✖⠋⠋⠋⠋⠋⠋⠋◌");
    expect(lines[11]).toMatch(/◌ queued 0 👩‍👩‍👧 +queued \(#/);
    expect(lines[12]).toMatch(/^ {2}… 9 more failed · 1 more at work · /);
    if (width === 100) expect(lines[12]).toMatch(/ · 19 more queued · 87 finished$/);
    for (const line of lines) expect(displayWidth(line)).toBeLessThan(width);
    // The steps stand below each other, whatever is in the titles.
    const columns = lines.slice(4, 11).map((line) => displayWidth(line.slice(0, line.indexOf("read_file"))));
    expect(new Set(columns).size).toBe(1);
  });

  it.each([80, 120])(
    "starts the steps of waiting agents where those of the others start, on %i columns",
    (width) => {
      const long = agentsOf({ working: 3, queued: 3 }).map((agent) => ({
        ...agent,
        description: `検潮所 ${agent.description} ${"and its neighbours ".repeat(5)}`,
      }));
      const agents = long.map((agent, at) => ({ ...agent, tool_calls: at === 0 ? 1 : 120 }));
      const lines = shown({ agents, todos: [] }, { width });
      const startOf = (line: string): number =>
        displayWidth(line.slice(0, Math.max(line.indexOf("read_file"), line.indexOf("queued (#"))));
      expect(new Set(lines.slice(0, 6).map(startOf)).size).toBe(1);
    },
  );

  it("draws every agent below the one that started it", () => {
    const nested = (ids: string[]) => ({
      ...picture.agents[1]!,
      agent: ids.map(() => "general-purpose").join(" › "),
      call_ids: ids,
      description: ids.join("/"),
    });
    const agents = [["a"], ["b"], ["a", "x"], ["b", "y"], ["a", "x", "z"]].map(nested);
    const lines = shown({ agents, todos: [] }, { width: 60 }).slice(0, 5);
    expect(lines.map((line) => line.slice(0, 20).trimEnd())).toEqual([
      "  ├─ ⠋ a      read_f",
      "  │  └─ ⠋ a/x    rea",
      "  │     └─ ⠋ a/x/z",
      "  └─ ⠋ b      read_f",
      "     └─ ⠋ b/y    rea",
    ]);
  });

  it("shows a run that nobody works on as one that waits", () => {
    const activity = "waits for a server of its workspace";
    expect(shown({ activity, queue: { number: 1 } }, { width: 60 }).at(-2)).toBe(`  ◌ ${activity}`);
  });

  it("never writes a line that the terminal would wrap, nor a control character, nor too many lines", () => {
    fc.assert(
      fc.property(
        anyPicture,
        fc.integer({ min: 20, max: 200 }),
        fc.integer({ min: 2, max: 40 }),
        (any, width, height) => {
          const lines = renderTree(any, { ...style, width, height });
          expect(lines.length).toBeLessThanOrEqual(height);
          for (const line of lines) {
            expect(displayWidth(line)).toBeLessThan(width);
            expect(line).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
          }
        },
      ),
    );
  });
});

describe("newLines", () => {
  it("tells everything of a first view, and then only what changed", () => {
    expect(newLines(undefined, picture)).toEqual([
      "plan: 3 todos",
      "  - Map the workspace",
      "  - Study the areas",
      "  - Write the report",
      "done: Map the workspace",
      "now: Study the areas",
      "  Study src: completed after 1 tool call: 12 findings",
      "  Study docs: read_file /workspace/docs/a.md",
    ]);
    expect(newLines(picture, picture)).toEqual([]);
    const agents = picture.agents.map((agent) => ({ ...agent, step: "grep TODO" }));
    expect(newLines(picture, { ...picture, agents, activity: "Study docs: grep TODO" })).toEqual([
      "  Study docs: grep TODO",
    ]);
    expect(newLines(picture, { ...picture, activity: "waits for approval" })).toEqual(["waits for approval"]);
    const todos = picture.todos.map((todo) => ({ ...todo, status: "completed" as const }));
    expect(newLines(picture, { ...picture, todos })).toEqual([
      "done: Study the areas",
      "done: Write the report",
    ]);
  });

  it("never breaks a line", () => {
    fc.assert(
      fc.property(anyPicture, anyPicture, (before, after) => {
        for (const line of newLines(before, after)) expect(line).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

describe("text width", () => {
  it("counts columns, not characters", () => {
    expect(displayWidth("e\u0301")).toBe(1);
    expect(displayWidth("漢字")).toBe(4);
    expect(["✅", "❌", "⚡", "🚀"].map(displayWidth)).toEqual([2, 2, 2, 2]);
    expect(["👩‍👩‍👧", "🇩🇪", "👍🏽", "✔️", "1️⃣"].map(displayWidth)).toEqual([2, 2, 2, 2, 2]);
    expect(["✔", "▸", "…", "├", "⠋"].map(displayWidth)).toEqual([1, 1, 1, 1, 1]);
    expect(displayWidth("\u001b[31mred\u001b[0m")).toBe(3);
  });

  it("takes joined letters and marks for what they look like", () => {
    expect(["각", "\u1100\u1161\u11a8", "ก็", "🏴\u200d☠️", "👩🏽‍🚀"].map(displayWidth)).toEqual([2, 2, 1, 2, 2]);
    expect(withoutTabs("a\tb\t漢\tc")).toBe("a   b   漢  c");
  });

  it("loses nothing where it cuts lines", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 9 }), (text, columns) => {
        const pieces = chopText(text, columns);
        expect(pieces.join("")).toBe(text);
        for (const piece of pieces) expect(displayWidth(piece)).toBeLessThanOrEqual(columns);
      }),
    );
  });

  it("cuts to the columns there are", () => {
    expect(fit("abcdef", 4)).toBe("abc…");
    expect(fit("漢字漢字", 5)).toBe("漢字…");
    expect(fit("👩‍👩‍👧👩‍👩‍👧", 3)).toBe("👩‍👩‍👧…");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, columns) => {
        expect(displayWidth(fit(text, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });

  it("wraps between words and loses none", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z]{1,9}$/)),
        fc.integer({ min: 10, max: 40 }),
        (words, columns) => {
          const lines = wrapText(words.join(" "), columns);
          expect(lines.join(" ")).toBe(words.join(" "));
          for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});

it("an agent whose own subagent waits for a person does not work", () => {
  const agent = (name: string, call_ids: string[], more = {}): RunPicture["agents"][number] => ({
    ...named(name),
    call_ids,
    status: "working",
    step: "task",
    tool_calls: 1,
    ...more,
  });
  const agents = [
    agent("Parent", ["a"], { waiting: true }),
    agent("Asks", ["a", "b"], { waiting: true, pending_questions: 1, step: "asked: Which?" }),
    agent("Works", ["c"], { step: "grep" }),
  ];
  const lines = renderTree(
    { ...picture, todos: [], agents, activity: "Works: grep" },
    { ...style, width: 80 },
  );
  expect(lines.slice(0, 5)).toEqual([
    expect.stringContaining("├─ ◌ Parent  waiting for its agents"),
    expect.stringContaining("│  └─ ? Asks    asked: Which?"),
    expect.stringContaining("└─ ⠋ Works   grep"),
    "",
    "  ⠋ 1 of 3 agents at work, 2 waiting",
  ]);
});
