import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { type McpTools, openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { callingOnce, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { hostileServer, type Mischief } from "./hostile-server.ts";

function open(...servers: Mischief[]) {
  const lines: string[] = [];
  const configs = servers.map((mischief, index): [string, McpServerConfig] => [
    `s${index}`,
    { ...hostileServer(mischief), env: {}, approve: "writes", timeout: 30 },
  ]);
  const log = createLogger("debug", (line) => void lines.push(line));
  const options = { env: { PATH: process.env["PATH"] }, version: "0.0.0-test", log };
  const mcp = openMcpTools(Object.fromEntries(configs), options);
  onTestFinished(() => mcp.close());
  return { mcp, log: () => lines.join("") };
}

const namesOf = async (mcp: McpTools) => (await mcp.forAgent()).tools.map(({ name }) => name);

/** What the calls of one reply come back as. */
async function resultsOf(mcp: McpTools, toolCalls: ScriptedToolCall[]): Promise<string[]> {
  const { tools } = await mcp.forAgent();
  const agent = buildAgent({
    model: callingOnce(...toolCalls),
    tools,
    checkpointer: new MemorySaver(),
  });
  const events = await collect(agent, { kind: "task", task: "go" });
  expect(events.at(-1)).toEqual({ kind: "finished", answer: "end" });
  return (await toolMessages(agent)).map(({ status, text }) => `${status}: ${text}`);
}

describe("a server that does as it likes", () => {
  it("is refused what it asks of a model or the machine in the middle of a call, and of a person where nobody can be asked", async () => {
    const { mcp } = open("plain");
    const names = ["person", "model", "roots"];
    const results = await resultsOf(
      mcp,
      names.map((name) => ({ name: `s0__${name}`, args: {} })),
    );
    expect(results).toHaveLength(3);
    const [person, ...others] = results;
    expect(person).toMatch(/^success: it was told: \{.*"action":"cancel"/);
    for (const result of others) expect(result).toMatch(/^success: it was told: \{"code":-3\d+,"message":/);
  });

  it("cannot make the check of arguments and answers take for ever by a pattern", async () => {
    const { mcp } = open("plain");
    const results = await resultsOf(mcp, [
      { name: "s0__slow_check", args: { pattern: `${"a".repeat(60)}!` } },
      { name: "s0__slow_check", args: { pattern: [] } },
      { name: "s0__slow_answer", args: {} },
    ]);
    expect(results[0]).toContain("success: slow_check");
    expect(results[1]).toMatch(/^error: .*Invalid arguments for s0__slow_check/);
    expect(results[2]).toBe("success: said");
  });

  it("is told to give less at a time when an answer has too many values or levels", async () => {
    const { mcp } = open("plain");
    const results = await resultsOf(mcp, [
      { name: "s0__large_answer", args: {} },
      { name: "s0__deep_answer", args: {} },
      { name: "s0__constructor", args: {} },
    ]);
    const refused =
      "error: Error: The MCP server s0 answered the call with an error: its answer was not read: it has more than 8388608 bytes, 50000 elements and members, or 200 levels; ask it for less at a time";
    expect(results).toEqual([refused, refused, "success: constructor {}"]);
  });

  it("has tools with long names or schemas left out, and long descriptions cut", async () => {
    const { mcp, log } = open("plain");
    const { tools } = await mcp.forAgent();
    const names = tools.map(({ name }) => name);
    expect(names).not.toContain("s0__too_large");
    expect(names.filter((name) => name.includes("nnnn"))).toEqual([]);
    expect(tools.find(({ name }) => name === "s0__talkative")?.offered).toMatchObject({
      description: "d".repeat(4000),
    });
    const line = log()
      .split("\n")
      .find((one) => one.includes('"mcp_tools_left_out"'));
    expect(JSON.parse(line ?? "")).toMatchObject({
      server: "s0",
      count: 2,
      tools: [
        { tool: "too_large", reason: "its schema has more than 100000 characters" },
        { tool: `${"n".repeat(79)}…`, reason: "its name has more than 256 characters" },
      ],
    });
  });

  it("checks arguments itself where its schema takes long to compile", async () => {
    const { mcp } = open("plain");
    const results = await resultsOf(mcp, [{ name: "s0__large_check", args: { pattern: 5 } }]);
    expect(results).toEqual(['success: large_check {"pattern":5}']);
  });

  it("may change its tools, name them as it likes, and twice; those of two servers never meet", async () => {
    const { mcp } = open("plain", "plain");
    const first = await namesOf(mcp);
    const second = await namesOf(mcp);
    expect(new Set(first).size).toBe(first.length);
    expect(first).toEqual(expect.arrayContaining(["s0__constructor", "s1__constructor", "s0____proto__"]));
    expect(first).toContain("s0__first_time_only");
    expect(second).not.toContain("s0__first_time_only");
    expect(second).toContain("s0__later");
    const results = await resultsOf(mcp, [
      { name: "s0__first_time_only", args: {} },
      { name: "s0__constructor", args: {} },
      { name: "s0____proto__", args: {} },
    ]);
    expect(results[0]).toMatch(/^error: Error: s0__first_time_only is not a valid tool/);
    expect(results.slice(1)).toEqual(["success: constructor {}", "success: __proto__ {}"]);
  });

  it("with pages without end is left when they have nothing new, and that is named", async () => {
    const { mcp, log } = open("endless-pages");
    const { tools, problems, leftOut } = await mcp.forAgent();
    expect(tools.map(({ name }) => name)).toContain("s0__constructor");
    expect(problems).toEqual([]);
    expect(leftOut).toContainEqual({
      server: "s0",
      tool: "(further tools)",
      reason: "8 pages of its list in a row had no new tool",
    });
    expect(log()).toContain('"mcp_tools_left_out"');
  });

  it("may say what is no message", async () => {
    const { mcp } = open("noise");
    const results = await resultsOf(mcp, [{ name: "s0__constructor", args: { a: 1 } }]);
    expect(results).toEqual(['success: constructor {"a":1}']);
  });
});
