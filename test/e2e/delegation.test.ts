import { describe, expect, test } from "vitest";
import { MATRIX, openWorld } from "../support/harness.ts";
import { answersOf, play, wronglyAnswered } from "../support/harness-brain.ts";
import {
  APPROVE,
  delegate,
  inWorkspace,
  person,
  repeat,
  runIdOf,
  untilStatus,
  writeFile,
} from "./support.ts";

const todos = (status: string) => ({
  name: "write_todos",
  args: { todos: [{ content: "survey both areas", status }] },
});

describe.each(MATRIX)("$kind over $transport", ({ transport, kind }) => {
  const tags = transport === "stdio" ? ["long"] : [];

  test("plans, sends out subagents and answers; progress names them", async () => {
    const world = await openWorld(transport, {
      files: { "alpha.txt": "one\n", "beta.txt": "two\n" },
      think: play({
        "Survey the workspace": [
          { toolCalls: [todos("in_progress")] },
          { toolCalls: [delegate("look at alpha"), delegate("look at beta")] },
          { toolCalls: [todos("completed")] },
          { text: "alpha says one, beta says two" },
        ],
        "look at alpha": [
          { toolCalls: [{ name: "read_file", args: { file_path: "/workspace/alpha.txt" } }] },
          repeat,
        ],
        "look at beta": [
          { toolCalls: [{ name: "read_file", args: { file_path: "/workspace/beta.txt" } }] },
          repeat,
        ],
      }),
    });
    const client = await world.connect(kind);
    const lines: string[] = [];
    const values: number[] = [];
    const onProgress = (line: string, value: number) => {
      lines.push(line);
      values.push(value);
    };
    const result = await client.call("run_deep_agent", { task: "Survey the workspace" }, { onProgress });
    expect(result).toMatchObject({
      isError: false,
      structured: {
        status: "completed",
        answer: "alpha says one, beta says two",
        todos: [{ content: "survey both areas", status: "completed" }],
        agents: [{ status: "completed" }, { status: "completed" }],
      },
    });
    expect(result.text).toContain("alpha says one, beta says two");
    expect(lines.join("\n")).toMatch(/look at alpha: read_file/);
    expect(lines.every((line) => line.length <= 200)).toBe(true);
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
    const reports = world.brain.thoughts.flatMap((thought) => answersOf(thought).map(({ text }) => text));
    expect(reports.join("\n")).toMatch(/one/);
    expect(wronglyAnswered(world.brain)).toEqual([]);
  });

  test("a person approves, edits and rejects; the agent goes on with what they said", { tags }, async () => {
    const world = await openWorld(transport, {
      files: { "readme.md": "hello\n" },
      think: play({
        "Write three files": [
          {
            toolCalls: [
              writeFile("/workspace/approved.md", "as proposed\n"),
              writeFile("/workspace/edited.md", "as proposed\n"),
              writeFile("/workspace/rejected.md", "as proposed\n"),
              { name: "read_file", args: { file_path: "/workspace/readme.md" } },
            ],
          },
          repeat,
        ],
      }),
    });
    const edited = JSON.stringify({ file_path: "/workspace/edited.md", content: "as edited\n" });
    const { forms, answer } = person({
      "approved.md": APPROVE,
      "edited.md": { action: "accept", content: { decision: "edit", edited_args: edited } },
      "rejected.md": { action: "accept", content: { decision: "reject", message: "not this one" } },
    });
    const client = await world.connect(kind, answer);
    const { structured } = await client.call("run_deep_agent", { task: "Write three files" });
    expect(structured).toMatchObject({ status: "completed", approvals: [] });
    expect(inWorkspace(world, "approved.md")).toBe("as proposed\n");
    expect(inWorkspace(world, "edited.md")).toBe("as edited\n");
    expect(inWorkspace(world, "rejected.md")).toBeUndefined();
    expect(structured["answer"]).toContain("not this one");
    expect(structured["answer"]).toContain("hello");
    expect(structured["files_changed"]).toEqual(["/workspace/approved.md", "/workspace/edited.md"]);
    expect(forms).toHaveLength(3);
    for (const form of forms) expect(form.message).toContain("+as proposed");
    expect(wronglyAnswered(world.brain)).toEqual([]);
  });

  test("a client that cannot ask gets a handle, and another one's person decides", { tags }, async () => {
    const world = await openWorld(transport, {
      think: play({
        "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
      }),
    });
    const silent = await world.connect(kind);
    const first = await silent.call("run_deep_agent", { task: "Write one file" });
    expect(first).toMatchObject({
      isError: false,
      structured: { status: "input_required", approvals: [{ tool: "write_file" }] },
    });
    expect(first.text).toContain("/workspace/new.md");
    expect(inWorkspace(world, "new.md")).toBeUndefined();
    const runId = runIdOf(first);
    const approvals = first.structured["approvals"] as { id: string }[];
    const forged = { run_id: runId, approval_id: approvals[0]?.id, decision: "approve" };
    await expect(silent.call("answer_deep_agent", forged)).rejects.toThrow("not found");
    expect(inWorkspace(world, "new.md")).toBeUndefined();

    const { answer, forms } = person({ "new.md": APPROVE });
    const asking = await world.connect(kind, answer);
    const ended = await untilStatus(asking, runId, "completed");
    expect(ended).toMatchObject({ status: "completed", answer: "written" });
    expect(forms).toHaveLength(1);
    expect(inWorkspace(world, "new.md")).toBe("new\n");
    expect(await untilStatus(silent, runId, "completed")).toMatchObject({
      status: "completed",
      answer: "written",
    });
  });
});
