import type { McpServer } from "@modelcontextprotocol/server";
import { APP_VIEW_META, RUN_APP_URI } from "../contracts/extensions.ts";
import { serveSubscriptions } from "./subscriptions.ts";
import { FILES, RUN_FILES, listMemories } from "./files.ts";
import { type ResourceScope, type ResourceSpec, registerResource, serveList } from "./resource.ts";
import { RUN_RESOURCES, listRuns } from "./runs.ts";
import { SKILLS, serveSkills } from "./skills.ts";
import facts from "./resources.json" with { type: "json" };

/** Every resource of the server, in the order clients list them. */
const RESOURCES: readonly ResourceSpec[] = [
  FILES,
  ...RUN_RESOURCES,
  RUN_FILES,
  SKILLS,
  {
    ...facts.graph,
    uri: "deepagent://graph",
    read: async (_, { runs }) => ({ text: await (await runs()).agents.drawing(), ttlMs: 0 }),
  },
  // The MCP App. Its document is loaded when a host reads it.
  {
    ...facts.app,
    uri: RUN_APP_URI,
    read: async () => {
      const { appDocument } = await import("../page/app-document.ts");
      // An empty policy allows only the document's own content.
      return {
        text: appDocument(APP_VIEW_META),
        _meta: { ui: { csp: {} } },
        ttlMs: 3_600_000,
        cacheScope: "public",
      };
    },
  },
];

/** Registers every resource. Nothing of `scope` is used before a client asks. */
export function registerResources(mcp: McpServer, scope: ResourceScope): void {
  for (const spec of RESOURCES) registerResource(mcp, scope, spec);
  serveList(mcp, scope, RESOURCES, [listRuns, listMemories]);
  serveSkills(mcp, scope);
  if (scope.revision.sessions) serveSubscriptions(mcp, scope);
}
