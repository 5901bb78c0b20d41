/** Servers with any number of tools: all are found on demand, and no list keeps an agent waiting or fills the memory. */
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { changedTools } from "../../../src/agent/mcp-tools/server-layers.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { collect, paused, toolMessages } from "../../support/run-agent.ts";
import { type ScriptedReply, scriptedSteps } from "../../support/scripted-model.ts";
import { run } from "./connect-to.ts";
import { MANY } from "./many-tools-server.ts";

function open(
  settings: readonly (number | string)[],
  policy: Partial<McpServerConfig> = {},
  patienceMs = 60_000,
) {
  const server = run({ command: process.execPath, args: ["-e", MANY, ...settings.map(String)] });
  const options = { env: { PATH: process.env["PATH"] }, version: "0", log: silentLogger, patienceMs };
  const mcp = openMcpTools({ many: { ...server, ...policy } }, options);
  onTestFinished(() => mcp.close());
  return mcp;
}

const call = (name: string, args: object = {}): ScriptedReply => ({
  toolCalls: [{ name, args: { ...args } }],
});
const find = (query: string, limit = 5): ScriptedReply => call("find_tools", { query, limit });

/** Lets an agent with the tools of a server make these replies; returns what it read, and what it was shown. */
async function work(mcp: ReturnType<typeof open>, replies: readonly ScriptedReply[]) {
  const { tools, gated, leftOut } = await mcp.forAgent();
  const model = scriptedSteps([...replies, { text: "end" }]);
  const agent = buildAgent({
    model,
    tools,
    toolsOnDemand: { names: tools.map(({ name }) => name), tokens: 10_000 },
    interruptOn: Object.fromEntries(gated.map((name) => [name, true])),
    middleware: [changedTools(mcp)()],
    checkpointer: new MemorySaver(),
  });
  const events = await collect(agent, { kind: "task", task: "go" });
  const offered = model.requests.map((request) => request.tools.filter((name) => /many__|find_/.test(name)));
  const texts = (await toolMessages(agent)).map(({ text }) => text);
  const prompts = model.requests.map(({ messages }) => String(messages[0]?.text));
  return { tools, gated, leftOut, events, offered, texts, prompts };
}

describe.each([
  [1200, 100],
  [5000, 5000],
  [20_000, 50],
])("%i tools in pages of %i", (count, size) => {
  it("are found by words and by name, wherever they are in the list, and can be called", async () => {
    const last = `many__get_${["invoice", "parcel", "tenant", "garden", "ledger", "violin", "harbor"][(count - 1) % 7]}_${count - 1}`;
    const walrus = count - 223;
    const { tools, offered, texts, prompts, events, leftOut } = await work(open([count, size]), [
      find("how heavy is the walrus"),
      find(`walrus ${walrus}`, 1),
      find(last, 1),
      call(last, { number: 3 }),
    ]);
    expect([tools.length, leftOut]).toEqual([count, []]);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(
      texts[0]
        ?.split("\n")
        .slice(1, 6)
        .every((line) => line.includes("Weighs the walrus")),
    ).toBe(true);
    expect(offered[2]).toContain(offered[2]?.find((name) => name.endsWith(`_${walrus}`)) ?? "none");
    expect(offered[3]).toContain(last);
    expect(texts[3]).toBe(`did ${last.slice(6)} {"number":3}`);
    // The prompt and each request stay small.
    for (const prompt of prompts) expect(prompt.length).toBeLessThan(25_000);
    for (const names of offered) expect(names.length).toBeLessThanOrEqual(128);
    expect(prompts[0]).toMatch(/\n\d+ more are not listed here; find_tools finds them\./);
    for (const text of texts) expect(text.length).toBeLessThan(3000);
  });
});

it("a misspelt name gets the names that are near, not all of them", async () => {
  const { texts } = await work(open([5000, 1000]), [call("many__get_parcle_1401")]);
  expect(texts[0]).toContain("many__get_parcle_1401 is not a valid tool, try one of [many__get_parcel_1401");
  expect(texts[0]?.length).toBeLessThan(4000);
});

it("selections, approvals, duplicates and names that cannot be offered count as with few tools", async () => {
  const mcp = open([3000, 250, "odd"], {
    approve: "writes",
    disabledTools: ["get_parcel_1"],
    alwaysAllow: ["get_tenant_2"],
  });
  const { tools, gated, leftOut, events } = await work(mcp, [call("many__get_ledger_4", { number: 1 })]);
  const names = tools.map(({ name }) => name);
  expect(names.filter((name) => /_(?:1|2|3)$/.test(name))).toEqual([
    "many__get_tenant_2",
    "many__get_garden_3",
  ]);
  expect(new Set(names).size).toBe(3000);
  expect(tools.some(({ offered }) => offered.description === "second")).toBe(false);
  expect(names.filter((name) => name.includes("dotted"))).toEqual([expect.stringMatching(/_[0-9a-f]{8}$/)]);
  expect(gated.filter((name) => /_(?:2|3|4)$/.test(name))).toEqual(["many__get_ledger_4"]);
  expect(paused(events)[0]?.request.actionRequests).toMatchObject([{ name: "many__get_ledger_4" }]);
  // Fifty are named.
  expect(leftOut).toHaveLength(51);
  expect(leftOut[0]?.reason).toBe("its name has more than 256 characters");
  expect(leftOut.at(-1)).toMatchObject({ tool: "(more tools)" });
  const only = await open([3000, 250], { tools: ["get_ledger_2999", "get_gone_1"] }).forAgent();
  expect(only.tools).toEqual([]);
});

it("thousands that a server unlocks during a run are found in the same run", async () => {
  const mcp = open([3, 1000, "plain", 4000]);
  const { offered, texts } = await work(mcp, [
    call("many__get_parcel_1", { number: 1 }),
    find("walrus 3777", 1),
    call("many__get_ledger_3777", { number: 7 }),
  ]);
  expect(offered.map(({ length }) => length)).toEqual([3, 4, 5, 5]);
  expect(offered[2]?.at(-1)).toMatch(/_3777$/);
  expect(texts[1]).toContain("Weighs the walrus 3777");
});

it("a later agent shares the tools whose entries are the same", async () => {
  const mcp = open([1500, 500]);
  const [one, other] = [await mcp.forAgent(), await mcp.forAgent()];
  expect(other.tools).toHaveLength(1500);
  expect(other.tools.every((tool, at) => tool === one.tools[at])).toBe(true);
});

it("an agent does not wait for a slow list: it gets the rest in its run", async () => {
  // The first page comes at once, the others take longer than anybody waits.
  const mcp = open([300, 100, "slow"], {}, 600);
  await expect.poll(async () => (await mcp.forAgent()).tools.length).toBeGreaterThan(0);
  await expect.poll(() => mcp.changes(), { timeout: 20_000 }).toBeGreaterThan(0);
  const before = mcp.changes();
  const later = await mcp.forAgent();
  expect([later.tools.length, later.leftOut]).toEqual([300, []]);
  // Nobody is sent around in a circle by that.
  await mcp.forAgent();
  expect(mcp.changes()).toBe(before);
});

it("a list whose last page comes again and again has ended", async () => {
  const { tools, leftOut } = await open([250, 0, "repeating"]).forAgent();
  expect([tools.length, leftOut]).toEqual([250, []]);
});

it("a list that never ends costs its further tools only, and keeps nobody waiting", async () => {
  const { tools, leftOut } = await open([1, 1, "endless"], {}, 3000).forAgent();
  expect(tools.length).toBeGreaterThan(1);
  expect(leftOut).toMatchObject([
    { tool: "(further tools)", reason: expect.stringContaining("not ended yet") },
  ]);
});
