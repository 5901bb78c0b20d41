import { describe, expect, test } from "vitest";
import { MATRIX, connect, openHome, openStdio, openWorld } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { APPROVE, inWorkspace, person, repeat, runIdOf, untilStatus, writeFile } from "./support.ts";

const start = (description: string) => ({
  name: "start_async_task",
  args: { description, subagent_type: "general-purpose" },
});

describe.each(MATRIX)("$kind over $transport", ({ transport, kind }) => {
  const tags = transport === "stdio" ? ["long"] : [];

  test("a background agent asks through its run, and its report ends the run", { tags }, async () => {
    const world = await openWorld(transport, {
      think: play({
        "Send somebody out": [
          { toolCalls: [start("write the file")] },
          { text: "I wait for the file." },
          { text: "The file is there." },
        ],
        "write the file": [{ toolCalls: [writeFile("/workspace/made.md", "made\n")] }, repeat],
      }),
    });
    const { answer, forms } = person({ "made.md": APPROVE });
    const client = await world.connect(kind, answer);
    const lines: string[] = [];
    const { structured } = await client.call(
      "run_deep_agent",
      { task: "Send somebody out" },
      { onProgress: (line) => lines.push(line) },
    );
    expect(structured).toMatchObject({
      status: "completed",
      answer: "The file is there.",
      agents: [{ status: "completed" }],
    });
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toContain("write the file");
    expect(lines.join("\n")).toMatch(/started in the background/);
    expect(inWorkspace(world, "made.md")).toBe("made\n");
    const told = world.brain.thoughts.filter(({ task }) => task.includes("Send somebody out")).at(-1);
    expect(JSON.stringify(told)).toContain("task_report");
    expect(wronglyAnswered(world.brain)).toEqual([]);
  });
});

test("a background agent works in the folder of its run's thread", async () => {
  const world = await openWorld("memory", {
    env: { DEEPAGENT_WORKSPACE_FOLDER: "{thread}" },
    think: play({
      "Send somebody out": [{ toolCalls: [start("write the file")] }, { text: "I wait." }, { text: "done" }],
      "write the file": [{ toolCalls: [writeFile("/workspace/made.md", "made\n")] }, repeat],
    }),
  });
  const { answer } = person({ "made.md": APPROVE });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Send somebody out" });
  expect(structured).toMatchObject({ status: "completed", answer: "done" });
  expect(inWorkspace(world, `${String(structured["thread_id"])}/made.md`)).toBe("made\n");
});

test("a killed server loses neither the background agent nor its parent", { tags: "long" }, async () => {
  let silent = true;
  const asked = deferred();
  const home = await openHome({
    env: { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    think: play({
      "Send somebody out": [{ toolCalls: [start("look around")] }, { text: "I wait." }, { text: "reported" }],
      "look around": [
        { toolCalls: [writeFile("/memories/once.md", "first\n")] },
        () => {
          asked.resolve();
          return silent ? { fault: "hang" } : { text: "nothing special" };
        },
      ],
    }),
  });
  const first = await openStdio(home);
  const before = await connect(first, "v2-legacy");
  const runId = runIdOf(await before.call("run_deep_agent", { task: "Send somebody out" }));
  await asked.promise;
  process.kill(first.pid(), "SIGKILL");
  silent = false;
  const after = await connect(await openStdio(home), "v2-modern");
  expect(await untilStatus(after, runId, "completed")).toMatchObject({
    answer: "reported",
    agents: [{ status: "completed" }],
    files_changed: ["/memories/once.md"],
  });
  expect(wronglyAnswered(home.brain)).toEqual([]);
});
