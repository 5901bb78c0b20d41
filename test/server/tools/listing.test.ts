import { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { cleanUpWith } from "../../runs/support.ts";
import { depsFor, inMemory } from "../support.ts";

const MAX_BYTES = 6000;

async function listed(mode: "legacy" | { pin: string }) {
  const deps = depsFor(() => Promise.reject(new Error("a list needs no runs")));
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(inMemory(deps).modern());
  cleanUpWith(() => client.close());
  return (await client.listTools()).tools;
}

test.each(["legacy", { pin: "2026-07-28" }] as const)("tools/list in %j is under 6 kB", async (mode) => {
  const tools = await listed(mode);
  expect(tools.map(({ name }) => name)).toEqual([
    "run_deep_agent",
    "check_deep_agent",
    "answer_deep_agent",
    "cancel_deep_agent",
    "read_agent_file",
    "search_memories",
  ]);
  const size = Buffer.byteLength(JSON.stringify({ tools }));
  expect(size).toBeLessThan(MAX_BYTES);
});

test("what a model sees of each tool", async () => {
  for (const tool of await listed({ pin: "2026-07-28" })) {
    await expect(`${JSON.stringify(tool, null, 2)}\n`).toMatchFileSnapshot(`__toolsnaps__/${tool.name}.json`);
  }
});

test("every tool has a title, truthful hints, strict arguments and an output schema", async () => {
  for (const tool of await listed("legacy")) {
    expect(tool.title).toBeTruthy();
    expect(tool.annotations?.readOnlyHint).toBe(
      ["check_deep_agent", "read_agent_file", "search_memories"].includes(tool.name),
    );
    expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(tool.outputSchema).toMatchObject({ type: "object" });
  }
});
