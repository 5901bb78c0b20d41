import type { McpServer, Resource } from "@modelcontextprotocol/server";
import { guarded } from "./guarded.ts";
import type { ResourceScope } from "./scope.ts";

const GRAPH: Resource = {
  uri: "deepagent://graph",
  name: "graph",
  title: "Agent graph",
  description: "How the agent works, as a drawing: its steps and what leads to which.",
  mimeType: "text/vnd.mermaid",
};

/** `deepagent://graph`: the agent's graph in the language of Mermaid. */
export function registerGraph(mcp: McpServer, scope: ResourceScope): void {
  const { uri, name, mimeType = "", ...metadata } = GRAPH;
  scope.listing.add(async () => [GRAPH]);
  mcp.registerResource(name, uri, { ...metadata, mimeType }, () =>
    guarded(`resources/read of ${uri}`, scope, async () => ({
      contents: [{ uri, mimeType, text: await (await scope.runs()).drawing(scope.principal) }],
      ttlMs: 0,
      cacheScope: "private",
    })),
  );
}
