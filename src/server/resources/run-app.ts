import { APP_VIEW_META, RUN_APP_URI } from "../contracts/extensions.ts";
import type { ResourceSpec } from "./resource.ts";

const TTL_MS = 3_600_000;

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
