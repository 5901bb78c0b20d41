import { McpServer, type McpRequestContext } from "@modelcontextprotocol/server";
import { ConfigSchema } from "../../src/config/schema.ts";
import { monotonicClock, systemClock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { ServerDeps } from "../../src/server/contracts/deps.ts";
import { serveHttp } from "../../src/server/http/http.ts";
import type { ChangeSink, ResourceChanges } from "../../src/server/contracts/changes.ts";
import { createResourceChanges } from "../../src/server/resources/changes.ts";
import { serveSubscriptions } from "../../src/server/resources/subscriptions.ts";
import { createStateCodec } from "../../src/server/calls/state.ts";
import { TaskPages, TaskQuestions, registerTasks } from "../../src/server/tasks/tasks.ts";
import { TASKS_EXTENSION } from "../../src/server/contracts/extensions.ts";
import { revisionOf } from "../../src/server/contracts/revisions.ts";
import { openStreams } from "../../src/storage/sqlite/streams.ts";
import { registerAskingTools } from "./fixtures/asking.ts";
import { registerContentTools } from "./fixtures/content.ts";
import { registerInputRequired } from "./fixtures/input-required.ts";
import { registerFixturePrompts } from "./fixtures/prompts.ts";
import { registerFixtureResources } from "./fixtures/resources.ts";
import { registerTaskTools, takeConfirmations } from "./fixtures/tasks.ts";
import { openFixtureRuns } from "./runs.ts";

/** What listens to changes of lists; the SDK's notifier, which the HTTP server attaches, is one. */
interface ListSink extends ChangeSink {
  toolsChanged(): void;
  promptsChanged(): void;
}

const isListSink = (sink: ChangeSink): sink is ListSink => "toolsChanged" in sink && "promptsChanged" in sink;

/**
 * The product's HTTP endpoint, sessions, subscriptions, tasks and signed state with the tools, resources and
 * prompts that the conformance suite asks for. Prints its address; ends when its standard input does.
 */
const { service, close } = openFixtureRuns();
const changes = createResourceChanges({ runs: () => Promise.resolve(service), logger: silentLogger });
const sinks = new Set<ChangeSink>();
const watched: ResourceChanges = {
  follow: (principal, uri) => changes.follow(principal, uri),
  watch: (principal) => changes.watch(principal),
  runStarted: (principal, runId) => changes.runStarted(principal, runId),
  close: () => changes.close(),
  attach: (principal, sink) => {
    const detach = changes.attach(principal, sink);
    sinks.add(sink);
    return () => {
      sinks.delete(sink);
      detach();
    };
  },
};
const deps: ServerDeps = {
  version: "1.0.0",
  config: ConfigSchema.parse({ dataDir: "/nowhere" }),
  logger: silentLogger,
  clock: systemClock,
  monotonic: monotonicClock,
  runs: () => Promise.resolve(service),
  stateKey: () => Promise.resolve(new Uint8Array(32).fill(7)),
  principalOf: () => "local",
  openCommand: () => undefined,
  changes: watched,
};
const TRIGGER = { description: "Announces a change" };
const codec = createStateCodec(deps);
const questions = new TaskQuestions(deps);
const pages = new TaskPages(deps.clock);

function factory({ era }: McpRequestContext): McpServer {
  const mcp = new McpServer(
    { name: "fixture", version: deps.version },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        ...(era === "modern" ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
      },
      requestState: { verify: codec.verify },
    },
  );
  registerContentTools(mcp);
  registerFixtureResources(mcp);
  registerFixturePrompts(mcp);
  const own = { ...deps, runs: async () => (await deps.runs()).as({ principal: "local" }) };
  if (era === "legacy") {
    registerAskingTools(mcp);
    serveSubscriptions(mcp, { ...own, principal: "local" });
    return mcp;
  }
  registerInputRequired(mcp, codec);
  registerTaskTools(mcp, deps, codec);
  takeConfirmations(mcp);
  registerTasks(mcp, { deps: own, revision: revisionOf(era), questions, pages });
  mcp.registerTool("test_trigger_tool_change", TRIGGER, () => announce("toolsChanged"));
  mcp.registerTool("test_trigger_prompt_change", TRIGGER, () => announce("promptsChanged"));
  return mcp;
}

function announce(change: "toolsChanged" | "promptsChanged") {
  for (const sink of sinks) if (isListSink(sink)) sink[change]();
  return { content: [{ type: "text" as const, text: change }] };
}

const server = await serveHttp({
  openStreams: () => openStreams(":memory:"),
  host: "127.0.0.1",
  port: 0,
  allowedHosts: [],
  allowedOrigins: [],
  factory,
  changes: watched,
  logger: silentLogger,
});
process.stdout.write(`${server.url}\n`);
process.stdin.resume().once("end", () => {
  server
    .close()
    .then(() => changes.close())
    .then(() => close())
    .catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exitCode = 1;
    });
});
