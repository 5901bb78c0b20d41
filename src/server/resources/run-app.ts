import type { ResourceSpec } from "./resource.ts";

/** The MCP Apps extension: a host shows this document beside the results of the tool that links it. */
export const APPS_EXTENSION = "io.modelcontextprotocol/ui";
export const RUN_APP_URI = "ui://deepagent/run";
const TTL_MS = 3_600_000;

/** Key of the run's picture in the `_meta` of a result; it is for the app, and models do not see it. */
export const APP_VIEW_META = "deepagent-mcp/view";

/** The document. What is in it is loaded when a host reads it. */
export const RUN_APP: ResourceSpec = {
  name: "run-app",
  uri: RUN_APP_URI,
  title: "Run",
  description: "Shows a run while it works, in hosts that render MCP Apps.",
  mimeType: "text/html;profile=mcp-app",
  read: async () => {
    const { appDocument } = await import("../page/app-document.ts");
    // An empty policy allows nothing but what is in the document.
    return {
      text: appDocument(APP_VIEW_META),
      _meta: { ui: { csp: {} } },
      ttlMs: TTL_MS,
      cacheScope: "public",
    };
  },
};
