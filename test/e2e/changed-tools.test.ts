/** Subagents get tools that a server of the agent unlocks while the run is at work. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { HUB } from "../agent/mcp-tools/hub-server.ts";
import { filesIn } from "../support/files-in.ts";
import { connect, openHome } from "../support/harness.ts";
import { type Line, answersOf, play } from "../support/harness-brain.ts";
import { program, stdioServer } from "../support/harness-stdio.ts";
import { repeat } from "./support.ts";

const call = (name: string): Line => ({ toolCalls: [{ name: `hub__${name}`, args: {} }] });
const task = (subagent_type: string, description: string) => ({
  name: "task",
  args: { description, subagent_type },
});

test("the general one and one with tools of the server get them, one with other tools does not", async () => {
  const folder = filesIn();
  const config = join(folder, "config.json");
  const hub = { command: process.execPath, args: ["-e", HUB], approve: "none" };
  const described = (name: string, tools: string[]) => ({
    name,
    description: name,
    systemPrompt: name,
    tools,
  });
  writeFileSync(
    config,
    JSON.stringify({
      mcpServers: { hub },
      subagents: [described("reader", ["hub"]), described("narrow", ["hub__enable"])],
    }),
  );
  const home = await openHome({
    env: { DEEPAGENT_CONFIG: config },
    think: play({
      Unlock: [
        call("enable"),
        {
          toolCalls: [task("general-purpose", "General"), task("reader", "Reader"), task("narrow", "Narrow")],
        },
        (thought) => ({
          text: answersOf(thought)
            .map(({ text }) => text)
            .sort()
            .join(" | "),
        }),
      ],
      General: [call("issues"), repeat],
      Reader: [call("issues"), repeat],
      Narrow: [call("issues"), repeat],
    }),
  });
  const client = await connect(stdioServer(await program(), home.env), "v2-modern");
  const { structured } = await client.call("run_deep_agent", { task: "Unlock" });
  expect(structured).toMatchObject({ status: "completed" });
  const ofSubagents = home.brain.thoughts.filter((thought) => !thought.task.includes("Unlock"));
  const told = ofSubagents.flatMap((thought) => answersOf(thought).map(({ text }) => text));
  expect(told.filter((text) => text === "issues after 2 lists")).toHaveLength(2);
  expect(told.filter((text) => text.includes("hub__issues is not a valid tool"))).toHaveLength(1);
});
