import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../src/agent/agent.ts";
import type { Middleware } from "../../src/agent/contracts/middleware.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { collect, toolMessages } from "../support/run-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { filesIn } from "../support/files-in.ts";

/** An agent that runs one command, in a shell that shows 1000 bytes of output. */
async function ran(command: string, params: DeepAgentParams = {}) {
  const rootDir = filesIn();
  const shell = new LocalShellBackend({ rootDir, virtualMode: true, maxOutputBytes: 1000 });
  onTestFinished(() => shell.close());
  const model = scriptedModel(({ messages }) =>
    messages.some((message) => ToolMessage.isInstance(message))
      ? { text: "end" }
      : { toolCalls: [{ id: "c", name: "execute", args: { command } }] },
  );
  const backend = new CompositeBackend(StateBackend, { "/workspace/": shell }, { executor: "/workspace/" });
  const agent = buildAgent({ checkpointer: new MemorySaver(), model, backend, ...params });
  await collect(agent, { kind: "task", task: "go" });
  const [message] = await toolMessages(agent);
  const { files } = await agent.snapshot("t1");
  return { text: message?.text ?? "", kept: files["/large_tool_results/c"]?.content };
}

it("keeps all of an output above the limit in its file, and shows how the command ended", async () => {
  const { text, kept } = await ran("seq 1 50000; exit 3");
  expect(kept).toBe(`${Array.from({ length: 50_000 }, (_, index) => index + 1).join("\n")}\n`);
  expect(text).toContain("saved in /large_tool_results/c. It begins:\n\n1\n2\n");
  expect(text.endsWith("\n\n[Command failed with exit code 3]")).toBe(true);
  expect(text.length).toBeLessThan(1000);
});

it("ends the file of an output without an end where it says", async () => {
  const { text, kept } = await ran("head -c 12000000 /dev/zero | tr '\\0' x");
  expect(String(kept).replaceAll("x", "")).toBe("\n... Output truncated at 10485760 bytes.");
  expect(text.endsWith("[Command succeeded with exit code 0]")).toBe(true);
});

/** Gives the tool message of a call another text, in a message of its own. */
const rewriting = (rewrite: (text: string) => string): Middleware => ({
  name: "Rewriting",
  wrapToolCall: async (request, next) => {
    const result = await next(request);
    if (!ToolMessage.isInstance(result)) return result;
    return new ToolMessage({ content: rewrite(result.text), tool_call_id: result.tool_call_id });
  },
});

describe("a layer that makes a new tool message", () => {
  const whole = `${Array.from({ length: 200_000 }, (_, index) => index + 1).join("\n")}\n`;
  const seq = "seq 1 200000; exit 3";

  it("of the same text leaves the whole output to its file", async () => {
    const { text, kept } = await ran(seq, { middleware: [rewriting((said) => said)] });
    expect(kept === whole).toBe(true);
    expect(text).toMatch(/^The result of execute is too large[^]*\n\n\[Command failed with exit code 3\]$/);
  });

  it("around the text stands around its preview", async () => {
    const around = rewriting((said) => `Checked.\n${said}\nNothing found.`);
    const { text, kept } = await ran(seq, { middleware: [around] });
    expect(kept === whole).toBe(true);
    expect(text).toMatch(/^Checked\.\nThe result of execute is too large/);
    expect(text).toMatch(/\n\n\[Command failed with exit code 3\]\nNothing found\.$/);
  });

  it("of another text leaves no file, so that a redaction is not undone", async () => {
    const { text, kept } = await ran(seq, { middleware: [rewriting((said) => said.replace("7", "*"))] });
    expect(kept).toBeUndefined();
    expect(text).toMatch(/^1\n2\n3\n4\n5\n6\n\*\n/);
  });

  it("keeps the whole output of the attempt that it answers with", async () => {
    const twice: Middleware = {
      name: "Twice",
      wrapToolCall: async (request, next) => {
        const again = { ...request.toolCall, args: { command: "seq 3 50000" } };
        const [first] = [await next(request), await next({ ...request, toolCall: again })];
        return ToolMessage.isInstance(first)
          ? new ToolMessage({ content: first.text, tool_call_id: first.tool_call_id })
          : first;
      },
    };
    const { kept } = await ran(seq, { middleware: [twice] });
    expect(kept === whole).toBe(true);
  });
});

it("gives layers of this package the whole output, which they may redact", async () => {
  const redacting: Middleware = {
    name: "Redacting",
    wrapCall: async (request, next) => {
      const result = await next(request);
      return result.whole ? { ...result, whole: { text: "redacted", end: "" } } : result;
    },
  };
  const { text, kept } = await ran("seq 1 50000", { middleware: [redacting] });
  expect(kept).toBe("redacted");
  expect(text).toMatch(/^The result of execute is too large to show \(8 characters\)/);
});

it("shows the first bytes where results never go into files", async () => {
  const { text, kept } = await ran("seq 1 50000", { filesystem: { evictTokens: null } });
  expect(kept).toBeUndefined();
  expect(text).toMatch(/^1\n2\n[^]*\n\.\.\. Output truncated at 1000 bytes\./);
});
