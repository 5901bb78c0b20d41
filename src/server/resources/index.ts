import type { McpServer } from "@modelcontextprotocol/server";
import { listMemories, registerFiles } from "./files.ts";
import { registerGraph } from "./graph.ts";
import { registerRuns } from "./runs.ts";
import type { ResourceScope } from "./scope.ts";
import { registerSkills } from "./skills.ts";
import { serveSubscriptions } from "./subscriptions.ts";

/** Registers every resource. Nothing of `scope` is used before a client asks. */
export function registerResources(mcp: McpServer, scope: ResourceScope): void {
  registerFiles(mcp, scope);
  registerRuns(mcp, scope);
  listMemories(scope);
  registerSkills(mcp, scope);
  registerGraph(mcp, scope);
  if (scope.era === "legacy") serveSubscriptions(mcp, scope);
}
