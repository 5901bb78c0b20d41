import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";
import { type Agent, buildAgent, type DeepAgentParams } from "../../src/agent/agent.ts";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import type { McpTools } from "../../src/agent/mcp-tools/open-mcp-tools.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import type { SandboxBackend } from "../../src/backends/executor.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { openBubblewrap } from "../../src/backends/sandbox/bubblewrap.ts";
import { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import type { SqliteCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { nextReply } from "./script.ts";

/** Commands in the sandbox where there is one. */
async function openWorkspace(rootDir: string): Promise<SandboxBackend> {
  const opened = await openBubblewrap({ rootDir, mountPath: "/workspace" });
  return opened.ok ? opened.backend : new LocalShellBackend({ rootDir, virtualMode: true });
}

/** The files of all agents of a folder. */
export async function openFiles(folder: string): Promise<CompositeBackend> {
  const mounts = {
    "/workspace": await openWorkspace(join(folder, "workspace")),
    "/skills": new FilesystemBackend({ rootDir: join(folder, "skills"), virtualMode: true }),
  };
  return new CompositeBackend(new StateBackend(), mounts, { executor: "/workspace" });
}

const needsPerson = ({ args }: { args: Record<string, unknown> }): boolean =>
  /(ask|deny|change)/.test(String(args["line"] ?? args["command"]));

/** Appends to the lines of the folder, and takes its time before and after; afterwards up to `longest` milliseconds. */
async function appendTo(log: string, line: string, longest = 5): Promise<string> {
  await delay(Math.random() * 5);
  appendFileSync(log, `${line}\n`);
  await delay(Math.random() * longest);
  return "appended";
}

/** Of those that have few calls in a story: so that they are met at work. */
const LONG_MS = 200;

/** The agent of the script, with every kind of subagent and the tools of the other servers that there are. */
export async function openAgent(
  folder: string,
  backend: CompositeBackend,
  checkpointer: SqliteCheckpointer,
  mcp: McpTools,
): Promise<Agent> {
  const log = join(folder, "lines.txt");
  const append = tool(({ line }) => appendTo(log, line), {
    name: "append",
    description: "Appends a line.",
    schema: z.object({ line: z.string() }),
  });
  const lines = {
    name: "lines",
    description: "All lines.",
    schema: z.object({}),
    kind: "read" as const,
    invoke: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
  };
  const shared = {
    model: scriptedModel(({ messages }) => nextReply(messages)),
    interruptOn: { append: { when: needsPerson }, execute: { when: needsPerson } },
    backend,
    limits: { subagentDepth: 2 },
    checkpointer,
  } satisfies DeepAgentParams;
  const { tools } = await mcp.forAgent();
  return buildAgent({
    ...shared,
    tools: [append, lines, ...tools],
    skills: ["/skills"],
    subagents: [
      { name: "fork", description: "Goes on from here.", mode: "fork" },
      {
        name: "deep",
        description: "Exists.",
        runnable: createDeepAgent({ ...shared, tools: [append, lines], name: "deep" }),
      },
      {
        name: "graph",
        description: "Is a graph.",
        runnable: graphThat((line) => appendTo(log, line, LONG_MS)),
      },
      {
        name: "function",
        description: "Is one.",
        runnable: functionThat((line) => appendTo(log, line, LONG_MS)),
      },
    ],
  });
}

/** What a foreign subagent is given to do is a line. */
const taskIn = (messages: readonly BaseMessage[]): string =>
  messages.findLast((message) => HumanMessage.isInstance(message))?.text ?? "";

function graphThat(act: (line: string) => Promise<string>) {
  return new StateGraph(MessagesAnnotation)
    .addNode("think", () => delay(Math.random() * 5, { messages: [new AIMessage("I shall.")] }))
    .addNode("act", async ({ messages }) => ({ messages: [new AIMessage(await act(taskIn(messages)))] }))
    .addNode("report", () => delay(Math.random() * 5, { messages: [new AIMessage("I did.")] }))
    .addEdge(START, "think")
    .addEdge("think", "act")
    .addEdge("act", "report")
    .addEdge("report", END)
    .compile();
}

const functionThat = (act: (line: string) => Promise<string>) =>
  RunnableLambda.from(async ({ messages }: { messages: BaseMessage[] }) => ({
    messages: [new AIMessage(await act(taskIn(messages)))],
  }));
