import type { McpServer } from "@modelcontextprotocol/server";
import { serveSubscriptions } from "./subscriptions.ts";
import { FILES, RUN_FILES, listMemories } from "./files.ts";
import { type ResourceScope, type ResourceSpec, registerResource, serveList } from "./resource.ts";
import { RUN_APP } from "./run-app.ts";
import { RUN_RESOURCES, listRuns } from "./runs.ts";
import { SKILLS, serveSkills } from "./skills.ts";

const GRAPH: ResourceSpec = {
  name: "graph",
  uri: "deepagent://graph",
  title: "Agent graph",
  description: "How the agent works, as a drawing: its steps and what leads to which.",
  mimeType: "text/vnd.mermaid",
  read: async (_, { runs, principal }) => ({ text: await (await runs()).drawing(principal), ttlMs: 0 }),
};

/** Every resource of the server, in the order clients list them. */
const RESOURCES: readonly ResourceSpec[] = [FILES, ...RUN_RESOURCES, RUN_FILES, SKILLS, GRAPH, RUN_APP];

/** Registers every resource. Nothing of `scope` is used before a client asks. */
export function registerResources(mcp: McpServer, scope: ResourceScope): void {
  for (const spec of RESOURCES) registerResource(mcp, scope, spec);
  serveList(mcp, scope, RESOURCES, [listRuns, listMemories]);
  serveSkills(mcp, scope);
  if (scope.revision.sessions) serveSubscriptions(mcp, scope);
}
