import { McpServer, type McpRequestContext } from "@modelcontextprotocol/server";
import { APPS_EXTENSION, registerRunApp } from "./app/run-app.ts";
import { readableRuns, scopedRuns } from "./auth/scopes.ts";
import { OpenRequests } from "./delivery/open-requests.ts";
import type { ServerDeps } from "./deps.ts";
import { sendLegacyCodes } from "./http/legacy-errors.ts";
import { registerPrompts } from "./prompts.ts";
import { registerResources } from "./resources/index.ts";
import { ResourceListing } from "./resources/listing.ts";
import type { ResourceScope } from "./resources/scope.ts";
import { SKILLS_EXTENSION } from "./resources/skills.ts";
import { SentResults } from "./sent-results.ts";
import { createStateCodec } from "./state-codec.ts";
import { registerTasks } from "./tasks/tasks.ts";
import { TaskPages } from "./tasks/pages.ts";
import { TaskQuestions } from "./tasks/questions.ts";
import { TASKS_EXTENSION } from "./tasks/view.ts";
import { toolsFor } from "./tools/index.ts";
import { registerTool } from "./tools/tool.ts";

const INSTRUCTIONS =
  "A deep agent for work of many steps: it plans, reads, searches and edits files under /workspace/, sends out " +
  "subagents in parallel and remembers. Delegate with run_deep_agent; give the goal, the facts it cannot see " +
  "and the form of the result. A run goes on when a call returns early: follow it with check_deep_agent. " +
  "Changes wait for a person's approval; do not decide for them.";

const LISTS = { ttlMs: 300_000, cacheScope: "public" } as const;

/**
 * Makes server instances for clients of both eras: one per stdio connection, per 2025-era HTTP session and
 * per 2026-07-28 HTTP request. Cheap and without side effects: clients open connections only to probe.
 */
export function createServerFactory(deps: ServerDeps): (context: McpRequestContext) => McpServer {
  const codec = createStateCodec(deps);
  const questions = new TaskQuestions(deps);
  const pages = new TaskPages(deps.clock);
  return ({ era, authInfo }) => {
    const own: ServerDeps = { ...deps, runs: async () => scopedRuns(await deps.runs(), authInfo) };
    const mcp = new McpServer(
      { name: "deepagent-mcp", title: "Deep agent", version: deps.version },
      {
        instructions: INSTRUCTIONS,
        capabilities: {
          // Fixed at start: nobody needs to listen for changes of these lists.
          tools: { listChanged: false },
          prompts: { listChanged: false },
          resources: { subscribe: true, listChanged: true },
          extensions: {
            ...SKILLS_EXTENSION,
            [APPS_EXTENSION]: {},
            ...(era === "modern" ? { [TASKS_EXTENSION]: {} } : {}),
          },
        },
        requestState: { verify: codec.verify },
        cacheHints: { "tools/list": LISTS, "prompts/list": LISTS },
      },
    );
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is no event target
    mcp.server.onerror = (error) => deps.logger.debug("mcp.error", { error: error.message });
    const registration = { deps: own, codec, era, sent: new SentResults(mcp), open: new OpenRequests() };
    for (const tool of toolsFor(deps.config)) registerTool(mcp, tool, registration);
    if (era === "modern") registerTasks(mcp, { deps: own, questions, pages });
    registerPrompts(mcp);
    const scope: ResourceScope = {
      ...deps,
      runs: async () => readableRuns(await deps.runs(), authInfo),
      era,
      principal: deps.principalOf(authInfo),
      listing: new ResourceListing(),
    };
    registerResources(mcp, scope);
    registerRunApp(mcp, scope);
    scope.listing.serve(mcp, scope);
    if (era === "legacy") sendLegacyCodes(mcp);
    return mcp;
  };
}
