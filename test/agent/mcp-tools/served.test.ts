// @module-tag long
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, it } from "vitest";
import { connect, openHome, openStdio, openWorld } from "../../support/harness.ts";
import { answersOf, play } from "../../support/harness-brain.ts";
import { processesWith } from "../../support/harness-process.ts";
import { toyServer } from "./toy-server.ts";
import { filesIn } from "../../support/files-in.ts";

const configFile = (config: object): string =>
  join(filesIn({ "config.json": JSON.stringify(config) }), "config.json");

it("serves an agent that uses another server's tools, asks before it writes there, and ends it", async () => {
  const toy = await toyServer();
  const id = randomUUID();
  const { command, args } = toy;
  const config = configFile({
    mcpServers: {
      toy: { command, args, env: { TOY_MARK: "${TEST_MARK}" } },
      broken: { command: "/no/such/program" },
    },
    subagents: [
      { name: "clerk", description: "Stores.", systemPrompt: "You store.", tools: ["toy__store"] },
      { name: "thinker", description: "Thinks.", systemPrompt: "You think.", tools: [] },
    ],
  });
  const delegate = (subagent_type: string) => ({
    name: "task",
    args: { description: `part of the ${subagent_type}`, subagent_type },
  });
  const world = await openWorld("stdio", {
    env: { DEEPAGENT_CONFIG: config, TEST_MARK: id },
    think: play({
      "the whole": [
        {
          toolCalls: [
            { id: "c1", ...delegate("clerk") },
            { id: "c2", ...delegate("thinker") },
          ],
        },
        (thought) => ({
          text: answersOf(thought)
            .map(({ text }) => text)
            .join(" | "),
        }),
      ],
      "part of the clerk": [
        { toolCalls: [{ id: "c3", name: "toy__store", args: { word: "ebb" } }] },
        (thought) => ({ text: answersOf(thought)[0]?.text ?? "" }),
      ],
      "part of the thinker": [{ text: "thought about it" }],
    }),
  });
  const forms: string[] = [];
  const client = await world.connect("v2-legacy", ({ message }) => {
    forms.push(message);
    expect(toy.effects()).toEqual([]);
    return { action: "accept", content: { decision: "approve" } };
  });
  const outcome = await client.call("run_deep_agent", { task: "the whole" });
  expect(outcome.text).toContain("stored ebb | thought about it");
  expect(forms).toHaveLength(1);
  expect(forms[0]).toContain(String.raw`toy\_\_store`);
  expect(toy.effects()).toEqual(["ebb"]);

  const toolsOf = (task: string) => {
    const { request } = world.brain.thoughts.find((thought) => thought.task.includes(task)) ?? {};
    const tools = (request?.body["tools"] ?? []) as { name: string }[]; // the provider's request
    return tools.map(({ name }) => name).filter((name) => name.startsWith("toy__"));
  };
  expect(toolsOf("the whole").length).toBeGreaterThan(5);
  expect(toolsOf("part of the clerk")).toEqual(["toy__store"]);
  expect(toolsOf("part of the thinker")).toEqual([]);

  const runId = String(outcome.structured["run_id"]);
  const events = await client.readResource(`deepagent://runs/${runId}/events`);
  expect(JSON.stringify(events)).toContain("MCP server broken is unavailable (its command was not found).");

  expect(processesWith(`TOY_MARK=${id}`)).toHaveLength(1);
  await client.close();
  await expect.poll(() => processesWith(`TOY_MARK=${id}`)).toEqual([]);
});

it("starts no server to read a run that has ended", async () => {
  const toy = await toyServer();
  const { command, args } = toy;
  const id = randomUUID();
  const config = configFile({ mcpServers: { toy: { command, args, env: { TOY_MARK: id } } } });
  const home = await openHome({ env: { DEEPAGENT_CONFIG: config }, think: () => ({ text: "done" }) });
  const first = await connect(await openStdio(home), "v2-legacy");
  const { structured } = await first.call("run_deep_agent", { task: "go" });
  expect(structured["status"]).toBe("completed");
  await first.close();
  await expect.poll(() => processesWith(`TOY_MARK=${id}`)).toEqual([]);
  const second = await connect(await openStdio(home), "v2-legacy");
  const files = await second.readResource(`deepagent://runs/${String(structured["run_id"])}/todos`);
  expect(files.contents).toHaveLength(1);
  await second.call("read_agent_file", { run_id: structured["run_id"], path: "/" });
  expect(processesWith(`TOY_MARK=${id}`)).toEqual([]);
});
