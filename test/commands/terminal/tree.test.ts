import fc from "fast-check";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { newLines } from "../../../src/cli/terminal/screen.ts";
import { chopText, displayWidth, fit, withoutTabs, wrapText } from "../../../src/cli/terminal/text.ts";
import { type RunPicture, renderTree } from "../../../src/cli/terminal/tree.ts";

const plain = picocolors.createColors(false);

const picture: RunPicture = {
  run_id: "run_1",
  status: "working",
  activity: "general-purpose: reads",
  todos: [
    { content: "Map the workspace", status: "completed" },
    { content: "Study the areas", status: "in_progress" },
    { content: "Write the report", status: "pending" },
  ],
  agents: [
    {
      agent: "general-purpose",
      description: "Study src",
      status: "completed",
      step: "12 findings",
      tool_calls: 1,
    },
    {
      agent: "general-purpose",
      description: "Study docs",
      status: "working",
      step: "read_file /workspace/docs/a.md",
      tool_calls: 3,
    },
  ],
  created_at: "2026-01-01T12:00:00.000Z",
  files_changed: [],
  usage: { input_tokens: 12_345, output_tokens: 678, cost_usd: 0.0123 },
};

const style = { colors: plain, frame: 0, now: Date.parse("2026-01-01T12:01:05.000Z") };

const anyPicture = fc.record<RunPicture>({
  run_id: fc.constant("run_1"),
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
      description: fc.string({ unit: "binary", maxLength: 200 }),
      status: fc.constantFrom("queued" as const, "working" as const, "completed" as const, "failed" as const),
      step: fc.string({ unit: "binary", maxLength: 200 }),
      tool_calls: fc.nat(9999),
    }),
  ),
  created_at: fc.constant("2026-01-01T12:00:00.000Z"),
  files_changed: fc.constant([]),
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
      "    1 min 5 s · 12.3k tokens in, 678 out · $0.0123",
    ]);
  });

  it("names an agent by its task, after its type where that is not the usual one", () => {
    const named = (agent: string, description: string): string | undefined =>
      shown({ todos: [], agents: [{ ...picture.agents[1]!, agent, description }] }, { width: 60 })[0];
    expect(named("general-purpose", "Compare prices. Then report.")).toMatch(/⠋ Compare prices {2}/);
    expect(named("general-purpose › scout", "Look around\nand back")).toMatch(/⠋ scout: Look around {2}/);
    expect(named("scout", " ")).toMatch(/⠋ scout {2}/);
  });

  it("folds what is done and what waits where the screen is too low, and never hides who works", () => {
    const agents = Array.from({ length: 12 }, (_, index) => ({
      ...picture.agents[1]!,
      description: `Task ${index}`,
      status: index < 4 ? ("completed" as const) : index < 8 ? ("working" as const) : ("queued" as const),
    }));
    const lines = shown({ agents }, { width: 60, height: 12 });
    expect(lines).toHaveLength(12);
    expect(lines.filter((line) => line.includes("⠋ Task"))).toHaveLength(4);
    expect(lines).toContain("  and 4 done · 4 waiting");
    expect(lines.at(-2)).toBe("  ⠋ 4 of 12 agents at work, 4 waiting");
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
      "  subagent 1: Study src",
      "  subagent 1 completed after 1 tool calls: 12 findings",
      "  subagent 2: Study docs",
    ]);
    expect(newLines(picture, picture)).toEqual([]);
    const agents = picture.agents.map((agent) => ({ ...agent, step: "grep TODO" }));
    expect(newLines(picture, { ...picture, agents, activity: "general-purpose: grep TODO" })).toEqual([
      "  subagent 2: grep TODO",
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
