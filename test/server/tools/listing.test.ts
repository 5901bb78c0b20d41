import { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { cleanUpWith } from "../../runs/support.ts";
import { depsFor, inMemory } from "../support.ts";

const MAX_BYTES = 6000;

type Mode = "legacy" | { pin: string };
const MODES = ["legacy", { pin: "2026-07-28" }] as const;

/** The tools, and the bytes of the answer on the wire. */
async function listed(mode: Mode, allowModelAnswers = false) {
  const deps = depsFor(() => Promise.reject(new Error("a list needs no runs")), {
    config: { approvals: { allowModelAnswers } },
  });
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const transport = inMemory(deps).modern();
  await client.connect(transport);
  cleanUpWith(() => client.close());
  let bytes = 0;
  const receive = transport.onmessage;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  transport.onmessage = (message, extra) => {
    bytes = Buffer.byteLength(`${JSON.stringify(message)}\n`);
    receive?.(message, extra);
  };
  const { tools } = await client.listTools();
  return { tools, bytes };
}

test.each(MODES)("tools/list in %j is under 6 kB on the wire", async (mode) => {
  const { tools, bytes } = await listed(mode);
  const names = "run_deep_agent check_deep_agent cancel_deep_agent read_agent_file search_memories";
  expect(tools.map(({ name }) => name)).toEqual(names.split(" "));
  expect(bytes).toBeGreaterThan(1000);
  expect(bytes).toBeLessThan(MAX_BYTES);
});

test.each(MODES)("answer_deep_agent is listed in %j only where models may pass answers on", async (mode) => {
  for (const isAllowed of [true, false]) {
    const { tools } = await listed(mode, isAllowed);
    expect(tools.some(({ name }) => name === "answer_deep_agent")).toBe(isAllowed);
  }
});

test("what a model sees of each tool", async () => {
  for (const tool of (await listed({ pin: "2026-07-28" }, true)).tools) {
    await expect(`${JSON.stringify(tool, null, 2)}\n`).toMatchFileSnapshot(`__toolsnaps__/${tool.name}.json`);
  }
});

test("every tool has a title, truthful hints, strict arguments and an output schema", async () => {
  for (const tool of (await listed("legacy", true)).tools) {
    expect(tool.title).toBeTruthy();
    expect(tool.annotations?.readOnlyHint).toBe(
      ["check_deep_agent", "read_agent_file", "search_memories"].includes(tool.name),
    );
    expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(tool.outputSchema).toMatchObject({ type: "object" });
  }
});
