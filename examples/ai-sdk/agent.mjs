// An agent of the AI SDK that delegates to a deepagent-mcp server: it starts the server over stdio, hands over a task,
// watches the run, and has a person answer its approvals.
// Usage, with Node 22.13 or later, which the AI SDK asks for:
// npm run build && npm --prefix examples/ai-sdk ci && npm --prefix examples/ai-sdk start
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { isStepCount, ToolLoopAgent } from "ai";
import { playedModel, resultsIn } from "./played-model.mjs";

const home = mkdtempSync(join(tmpdir(), "deepagent-ai-sdk-"));
const workspace = join(home, "project");
mkdirSync(workspace);
writeFileSync(join(workspace, "app.js"), "// TODO: mind the gap\nexport const gap = 1;\n");

// With a published package: command: "npx", args: ["-y", "deepagent-mcp", ...]
const bin = join(import.meta.dirname, "../../dist/bin/deepagent-mcp.js");
const options = ["--workspace", workspace, "--data-dir", join(home, "data"), "--model", "offline"];
const client = await createMCPClient({
  transport: new StdioMCPTransport({
    command: process.execPath,
    args: [bin, ...options, "--log-level", "error"],
  }),
  capabilities: { elicitation: { form: {} } },
});
// The approvals of the deep agent come to this program, which asks its user; here a line of code decides.
client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
  console.log("asked:", params.message.split("\n")[0]);
  return { action: "accept", content: { decision: "approve" } };
});

// With a real model: model: anthropic("claude-sonnet-4-5-20250929") of @ai-sdk/anthropic
const model = playedModel((prompt) => {
  const report = resultsIn(prompt).at(-1);
  if (report === undefined)
    return { tool: "run_deep_agent", input: { task: "Which files have a TODO?", wait_seconds: 0 } };
  const [, run_id] = /^Run (\S+) is (?:working|input_required)/.exec(report) ?? [];
  if (run_id !== undefined) return { tool: "check_deep_agent", input: { run_id } };
  return { text: `The deep agent reports: ${report}` };
});

try {
  const tools = await client.tools();
  console.log("tools:", Object.keys(tools).join(", "));
  const agent = new ToolLoopAgent({
    model,
    tools,
    stopWhen: isStepCount(50),
    // The client of the AI SDK takes no progress notifications: each check returns as soon as something has changed.
    onStepEnd: ({ toolResults }) => {
      for (const { output } of toolResults) {
        const { status, activity } = output.structuredContent;
        console.log(`run: ${status}, ${activity}`);
      }
    },
  });
  const { text } = await agent.generate({ prompt: "Where are TODOs?" });
  console.log(text);
  assert.match(text, /app\.js/);
  assert.match(readFileSync(join(workspace, "deepagent-report.md"), "utf8"), /app\.js/);
} finally {
  await client.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 10 });
}
