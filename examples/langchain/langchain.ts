// An agent of LangChain that delegates to a deepagent-mcp server: each tool of the server is a tool of the agent.
// Needs the package @modelcontextprotocol/client.
// Usage: npm run build && node examples/run.mjs langchain
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { tool } from "@langchain/core/tools";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createAgent } from "langchain";
import { PlayedModel, results } from "../support/played-model.ts";

const home = mkdtempSync(join(tmpdir(), "deepagent-langchain-"));
const workspace = join(home, "project");
mkdirSync(workspace);
writeFileSync(join(workspace, "app.js"), "// TODO: mind the gap\nexport const gap = 1;\n");

// With a published package: command: "npx", args: ["-y", "deepagent-mcp", ...]
const client = new Client(
  { name: "example", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } } },
);
// The approvals of the deep agent come to this program, which asks its user; here a line of code decides.
client.setRequestHandler("elicitation/create", async ({ params }) => {
  console.log("asked:", params.message.split("\n")[0]);
  return { action: "accept", content: { decision: "approve" } };
});
const options = ["--workspace", workspace, "--data-dir", join(home, "data"), "--model", "offline"];
const bin = fileURLToPath(
  new URL("dist/bin/deepagent-mcp.js", import.meta.resolve("deepagent-mcp/package.json")),
);
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [bin, ...options, "--log-level", "error"],
  }),
);

try {
  const { tools: offered } = await client.listTools();
  const tools = offered.map(({ name, description = "", inputSchema }) =>
    tool(
      async (args: unknown) => {
        // The schema of the tool has been checked: it is an object.
        const { content } = await client.callTool({ name, arguments: args as Record<string, unknown> });
        return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
      },
      { name, description, schema: inputSchema },
    ),
  );
  console.log("tools:", offered.map(({ name }) => name).join(", "));

  // With a real model: model: "anthropic:claude-sonnet-4-5-20250929"
  const model = new PlayedModel(({ messages }) => {
    const [report] = results(messages);
    return report === undefined
      ? { calls: [{ name: "run_deep_agent", args: { task: "Which files have a TODO?" } }] }
      : { text: `The deep agent reports: ${report}` };
  });
  const agent = createAgent({ model, tools });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Where are TODOs?" }] });
  const answer = messages.at(-1)?.text ?? "";
  console.log(answer);
  assert.match(answer, /app\.js/);
} finally {
  await client.close();
  rmSync(home, { recursive: true, force: true });
}
