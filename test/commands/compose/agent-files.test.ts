import { expect, test } from "vitest";
import { openWorld } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";

const scribe =
  "---\nname: scribe\ndescription: Writes things down.\n---\nYou write down what you are told.\n";

test("the agent delegates to a subagent that a file of the workspace describes", async () => {
  const task = { description: "write down the weather", subagent_type: "scribe" };
  const world = await openWorld("memory", {
    files: { ".deepagent/agents/scribe.md": scribe },
    think: play({
      "Note the weather": [{ toolCalls: [{ name: "task", args: task }] }, { text: "noted" }],
      "write down the weather": [{ text: "sunny" }],
    }),
  });
  const client = await world.connect("v1");
  const result = await client.call("run_deep_agent", { task: "Note the weather" });
  expect(result).toMatchObject({
    isError: false,
    structured: { status: "completed", answer: "noted", agents: [{ status: "completed" }] },
  });
});
