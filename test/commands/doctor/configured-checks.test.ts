import { expect, it } from "vitest";
import { checkMcpServers, checkOtherModels } from "../../../src/commands/doctor/configured-checks.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { toyServer } from "../../agent/mcp-tools/toy-server.ts";

const read = (config: object) => ConfigSchema.parse({ dataDir: "/data", ...config });

it("starts other MCP servers and counts what they offer", async () => {
  const { command, args } = await toyServer();
  const config = read({
    mcpServers: {
      toy: { command, args, tools: ["store", "look.up"] },
      broken: { command: "/no/such/program" },
    },
  });
  expect(await checkMcpServers(config, {})).toEqual([
    { name: "MCP server", ok: true, text: "toy: 2 tools, 1 of them with approval" },
    { name: "MCP server", ok: false, text: "broken is not available: its command was not found" },
  ]);
  expect(await checkMcpServers(read({}), {})).toEqual([]);
});

it("looks at the models of fallbacks and subagents", () => {
  const config = read({
    fallbackModels: ["openai:gpt-5.4", "offline"],
    subagents: [{ name: "reviewer", description: "d", systemPrompt: "p", model: "anthropic:claude-x" }],
  });
  expect(checkOtherModels(config, { OPENAI_API_KEY: "key" })).toMatchObject([
    { ok: true, text: "openai:gpt-5.4 (fallback)" },
    { ok: true, text: "offline (fallback)" },
    { ok: false, text: expect.stringContaining("of reviewer: Model 'anthropic:claude-x' needs") },
  ]);
});
