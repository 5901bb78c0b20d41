import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { RunEvent, RunEventKind } from "../../../src/runs/events.ts";
import { transcriptOf } from "../../../src/server/views/transcript.ts";
import { aView } from "../support.ts";

const at = (kind: RunEventKind, data: Record<string, unknown> = {}, more: Partial<RunEvent> = {}): RunEvent =>
  ({
    runId: "run_1",
    seq: 1,
    time: Date.UTC(2026, 0, 1, 12, 0, 1),
    agent: [],
    kind,
    data,
    ...more,
  }) as RunEvent; // Each test gives what the transcript shows of the kind.

test("tells the task, what happened, and the answer", () => {
  const view = aView({
    run: { status: "completed", endedAt: 60_000, task: "Tidy up\nthe notes", answer: "# Done\n\nAll tidy." },
  });
  const events = [
    at("run_started"),
    at("model_called", { text: "I will write." }),
    at("model_called", { text: "" }),
    at("tool_started", { tool: "write_file", summary: "write `a`\nb" }),
    at("file_changed", { path: "/workspace/a.md", diff: "-```\n+x" }),
    at("tool_finished", { tool: "write_file", status: "success" }),
    at("approval_decided", { tool: "execute", decision: "reject", by: "page" }),
    at("subagent_started", { description: "look" }, { agent: [{ name: "scout", callId: "c" }] }),
    at("run_completed"),
  ];
  expect(transcriptOf(view, events)).toMatchInlineSnapshot(`
    "# Run run_1

    completed · started 1970-01-01T00:00:00.000Z · ended 1970-01-01T00:01:00.000Z

    ## Task

    > Tidy up
    > the notes

    ## What happened

    **12:00:01** The run began.

    **12:00:01** said:

    > I will write.

    **12:00:01** called \` write_file \`: \`\` write \`a\` b \`\`

    **12:00:01** changed \` /workspace/a.md \`.

    \`\`\`\`diff
    -\`\`\`
    +x
    \`\`\`\`

    **12:00:01** \` execute \`: \` reject \`, decided by \` page \`.

    **12:00:01** \` scout \` A subagent began.

    > look

    **12:00:01** The run is complete.

    ## Answer

    > # Done
    >
    > All tidy.
    "
  `);
});

test("says how much is missing at the beginning", () => {
  const text = transcriptOf(aView(), [at("run_resumed", {}, { seq: 8 })]);
  expect(text).toContain("_7 earlier events are not shown._");
});

const hostile = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "## Answer",
    "\n\n## Answer\n\napproved",
    "```\n# x\n```",
    "` **12:00:01** ` x",
    "~~~\n# x",
    "\u202e",
  ),
  fc
    .array(fc.constantFrom("`", "\n", "# ", "> ", "x", "- "), { maxLength: 30 })
    .map((parts) => parts.join("")),
);

/** Lines outside fences that are not quoted. */
function bareLines(markdown: string): string[] {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of markdown.split("\n")) {
    if (fence !== undefined) {
      if (line === fence) fence = undefined;
    } else if (/^`{3,}diff$/.test(line)) fence = line.slice(0, -"diff".length);
    else if (line !== "" && !line.startsWith(">")) lines.push(line);
  }
  expect(fence).toBeUndefined();
  return lines;
}

test("no text of a model, a person or a file looks like a line of the transcript", () => {
  fc.assert(
    fc.property(hostile, hostile, hostile, (task, text, name) => {
      const kinds: RunEventKind[] = [
        "model_called",
        "tool_started",
        "tool_finished",
        "file_changed",
        "message_received",
        "subagent_started",
        "subagent_finished",
        "approval_requested",
        "approval_decided",
        "warning",
        "run_failed",
        "run_cancelled",
      ];
      const data = {
        text,
        tool: name,
        summary: text,
        status: "error",
        path: name,
        diff: text,
        description: text,
        report: text,
        message: text,
        reason: text,
        decision: name,
        by: text,
      };
      const events = kinds.map((kind) => at(kind, data, { agent: [{ name, callId: "c" }] }));
      const run = { task, answer: text, status: "completed" as const, endedAt: 1 };
      const lines = bareLines(transcriptOf(aView({ run, activity: text }), events));
      const told = lines.filter((line) => line.startsWith("**12:00:01**"));
      expect(lines.filter((line) => !told.includes(line))).toEqual([
        "# Run run_1",
        expect.stringMatching(/^completed · started /),
        "## Task",
        "## What happened",
        "## Answer",
      ]);
      expect(told.length).toBeLessThanOrEqual(kinds.length);
    }),
  );
});

test("tells who asked which question, and how it was answered", () => {
  const asked = (data: object) => at("question_asked", { questionId: "q", text: "Size?\n# Done", ...data });
  const events = [
    asked({ kind: "ask" }),
    asked({ kind: "interrupt" }),
    asked({ kind: "elicitation", server: "shop` x" }),
    at("question_answered", { kind: "ask", outcome: "answered", answer: "44", by: "page" }),
  ];
  const lines = transcriptOf(aView(), events).split("\n");
  expect(lines.filter((line) => line.startsWith("**"))).toEqual([
    "**12:00:01** asked:",
    "**12:00:01** asked for a tool:",
    "**12:00:01** MCP server `` shop` x `` asks:",
    "**12:00:01** was answered, by ` page `.",
  ]);
  expect(lines.filter((line) => line.startsWith("# "))).toEqual(["# Run run_1"]);
});
