import { z } from "zod";
import { withSlash } from "../backends/paths.ts";
import { displayName } from "../core/text.ts";
import { failedAt, pathText, pathTool } from "./call.ts";
import { counted, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { ToolSpec } from "./tool.ts";

const lsSchema = z.strictObject({
  path: pathText().optional().describe("Directory. Default: /"),
  times: z.boolean().optional().describe("Show when each file was last changed."),
});

export const lsTool = (settings: FileToolSettings): ToolSpec<typeof lsSchema> =>
  pathTool(
    {
      name: "ls",
      kind: "read",
      description: "List one directory: entries with their sizes, a directory ends in /.",
      schema: lsSchema,
      async work({ times }, { path }, context) {
        const { backend, signal } = context;
        const { files = [], skipped = 0, ...result } = await backend.ls(path, { signal });
        if (result.error !== undefined) return failedAt(path, result, context);
        const missing = `[${counted(skipped, "entry", "entries")} not listed: permission denied, or a name that no path can express]`;
        const lines = files.map((file) => {
          if (file.is_dir) return `${withSlash(displayName(file.path))} (directory)`;
          const facts = [
            ...(file.size === undefined ? [] : [`${file.size} bytes`]),
            ...(times && file.modified_at ? [`modified ${file.modified_at}`] : []),
          ];
          return displayName(file.path) + (facts.length > 0 ? ` (${facts.join(", ")})` : "");
        });
        const text = lines.length > 0 ? lines.join("\n") : `No files found in ${displayName(path)}`;
        return {
          content: withNotices(text, skipped > 0 ? [missing] : []),
          // It is stored with the message and is not evicted.
          artifact: { path, entries: files.slice(0, 1000), count: files.length, skipped },
        };
      },
    },
    settings,
  );
