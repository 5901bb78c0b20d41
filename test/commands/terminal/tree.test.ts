import fc from "fast-check";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { type RunPicture, newLines, renderTree } from "../../../src/cli/terminal/screen.ts";
import { displayWidth, fit, wrapText } from "../../../src/cli/terminal/text.ts";

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
  files_changed: [],
  usage: { input_tokens: 0, output_tokens: 0 },
};

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
      status: fc.constantFrom("working" as const, "completed" as const, "failed" as const),
      step: fc.string({ unit: "binary", maxLength: 200 }),
      tool_calls: fc.nat(9999),
    }),
  ),
  files_changed: fc.constant([]),
  usage: fc.constant({ input_tokens: 0, output_tokens: 0 }),
});

describe("renderTree", () => {
  it("shows todos, agents with their steps, and what happened last", () => {
    expect(renderTree(picture, { colors: plain, width: 80, frame: 0 }).map((line) => line.trimEnd())).toEqual(
      [
        "  ✔ Map the workspace",
        "  ▸ Study the areas",
        "  ○ Write the report",
        "",
        "  ├─ ✔ Study src  12 findings                                            1 call",
        "  └─ ⠋ Study docs  read_file /workspace/docs/a.md                       3 calls",
        "",
        "  ⠋ general-purpose: reads",
      ],
    );
  });

  it("never writes a line that the terminal would wrap, nor a control character", () => {
    fc.assert(
      fc.property(anyPicture, fc.integer({ min: 20, max: 200 }), (any, width) => {
        for (const line of renderTree(any, { colors: plain, width, frame: 3 })) {
          expect(displayWidth(line)).toBeLessThan(width);
          expect(line).not.toMatch(/\p{Cc}/u);
        }
      }),
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
      "  subagent 1 (general-purpose): Study src",
      "  subagent 1 completed after 1 tool calls: 12 findings",
      "  subagent 2 (general-purpose): Study docs",
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
