import type { McpServer } from "@modelcontextprotocol/server";
import { type ResourceScope, guarded } from "./scope.ts";

/** The MCP Apps extension: a host shows this document beside the results of the tool that links it. */
export const APPS_EXTENSION = "io.modelcontextprotocol/ui";
export const RUN_APP_URI = "ui://deepagent/run";
const MIME_TYPE = "text/html;profile=mcp-app";
const TTL_MS = 3_600_000;

/** Where a result carries the picture of its run for the app; models are not shown it. */
export const APP_VIEW_META = "deepagent-mcp/view";

/** Registers the document; what is in it is loaded when a host reads it. */
export function registerRunApp(mcp: McpServer, scope: ResourceScope): void {
  const metadata = {
    title: "Run",
    description: "Shows a run while it works, in hosts that render MCP Apps.",
    mimeType: MIME_TYPE,
  };
  scope.listing.add(async () => [{ uri: RUN_APP_URI, name: "run-app", ...metadata }]);
  mcp.registerResource("run-app", RUN_APP_URI, metadata, ({ href }) =>
    guarded(`resources/read of ${href}`, scope, async () => {
      const { appDocument } = await import("../page/app-document.ts");
      // Nothing from elsewhere is loaded or asked: an empty policy allows just what is in the document.
      const contents = { uri: href, mimeType: MIME_TYPE, text: appDocument(), _meta: { ui: { csp: {} } } };
      return { contents: [contents], ttlMs: TTL_MS, cacheScope: "public" as const };
    }),
  );
}
