// @module-tag long
import { describe, expect, test } from "vitest";
import { openWorld } from "../support/harness.ts";
import { answersOf, play, type Line, wronglyAnswered } from "../support/harness-brain.ts";
import { APPROVE, delegate, inWorkspace, person, repeat, runIdOf, writeFile } from "./support.ts";

const AREAS = ["north", "east", "south", "west"];

/** A run that plans, sends out four subagents at once, each of which writes a file and a note, and reports. */
function parts(run: string): Record<string, readonly Line[]> {
  const todos = (status: string) => ({
    name: "write_todos",
    args: { todos: [{ content: `survey for ${run}`, status }] },
  });
  const agents = AREAS.map((area): [string, readonly Line[]] => [
    `${run} ${area}`,
    [
      {
        toolCalls: [
          writeFile(`/workspace/${run}-${area}.md`, `${run} found ${area}\n`),
          writeFile(`/notes-${area}.md`, `${run} ${area}\n`),
        ],
      },
      { text: `report of ${run} ${area}` },
    ],
  ]);
  return {
    [`main of ${run}`]: [
      { toolCalls: [todos("in_progress"), writeFile("/plan.md", `plan of ${run}\n`)] },
      { toolCalls: AREAS.map((area) => delegate(`${run} ${area}`)) },
      { toolCalls: [todos("completed"), { name: "read_file", args: { file_path: "/plan.md" } }] },
      repeat,
    ],
    ...Object.fromEntries(agents),
  };
}

describe.each([
  { transport: "stdio", kind: "v1" },
  { transport: "http", kind: "v2-modern" },
] as const)("$kind over $transport", ({ transport, kind }) => {
  test("two runs with four subagents each do not mix", async () => {
    const runs = ["crimson", "azure"];
    const world = await openWorld(transport, { think: play({ ...parts("crimson"), ...parts("azure") }) });
    const { answer, forms } = person({ "crimson-": APPROVE, "azure-": APPROVE });
    const client = await world.connect(kind, answer);
    const outcomes = await Promise.all(
      runs.map(async (run) => {
        const lines: string[] = [];
        const onProgress = (line: string) => void lines.push(line);
        const result = await client.call("run_deep_agent", { task: `main of ${run}` }, { onProgress });
        const read = async (file: string) => {
          const { contents } = await client.readResource(`deepagent://runs/${runIdOf(result)}/files${file}`);
          return contents[0]?.["text"];
        };
        const notes = await Promise.all(AREAS.map((area) => read(`/notes-${area}.md`)));
        return { run, result, lines, plan: await read("/plan.md"), notes };
      }),
    );
    expect(forms).toHaveLength(8);
    for (const { run, result, lines, plan, notes } of outcomes) {
      const other = run === "crimson" ? "azure" : "crimson";
      expect(result.structured).toMatchObject({
        status: "completed",
        todos: [{ content: `survey for ${run}`, status: "completed" }],
        approvals: [],
      });
      expect(result.structured["agents"]).toHaveLength(4);
      expect(result.structured["files_changed"]).toEqual(
        expect.arrayContaining(AREAS.map((area) => `/workspace/${run}-${area}.md`)),
      );
      expect(result.text).not.toContain(other);
      expect(lines.join("\n")).not.toContain(other);
      expect(plan).toBe(`plan of ${run}\n`);
      expect(notes).toEqual(AREAS.map((area) => `${run} ${area}\n`));
      const asked = forms.filter(({ message }) => message.includes(runIdOf(result)));
      expect(asked).toHaveLength(4);
      expect(asked.every(({ message }) => message.includes(`${run}-`) && !message.includes(other))).toBe(
        true,
      );
      for (const area of AREAS) {
        expect(inWorkspace(world, `${run}-${area}.md`)).toBe(`${run} found ${area}\n`);
      }
      const reports = world.brain.thoughts
        .filter(({ task, step }) => task.includes(`main of ${run}`) && step === 2)
        .flatMap((thought) => answersOf(thought).map(({ text }) => text));
      expect(reports.toSorted()).toEqual(AREAS.map((area) => `report of ${run} ${area}`).toSorted());
    }
    expect(wronglyAnswered(world.brain)).toEqual([]);
  });
});
