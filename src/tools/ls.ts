import { z } from "zod";
import type { FileInfo } from "../backends/backend.ts";
import { withSlash } from "../backends/paths.ts";
import { displayName } from "../core/text.ts";
import { backendError, cancellable, checkPath, failedAt, pathArgument, pathText } from "./call.ts";
import { counted, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool } from "./tool.ts";

const schema = z.strictObject({
  path: pathText().optional().describe("Directory. Default: /"),
  times: z.boolean().optional().describe("Show when each file was last changed."),
});

/** Lists one directory. */
export function lsTool(settings: FileToolSettings): ToolSpec<typeof schema> {
  return defineTool({
    name: "ls",
    kind: "read",
    description: "List one directory: entries with their sizes, a directory ends in /.",
    schema,
    pathOf: ({ path }) => pathArgument(path, settings.allowedPrefixes),
    handle: (args, context) =>
      cancellable("ls", context.signal, () => list(args, context, settings.allowedPrefixes)),
  });
}

async function list(
  { path: raw, times }: z.output<typeof schema>,
  context: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<ToolResult> {
  const { backend, signal } = context;
  const checked = checkPath(raw, backend, allowedPrefixes);
  if (!checked.ok) return backendError(checked, raw ?? "/");
  const { path } = checked;
  const result = await backend.ls(path, { signal });
  if (result.error !== undefined) return failedAt(path, result, context);
  const { files = [], skipped = 0 } = result;
  const text =
    files.length > 0
      ? files.map((file) => entryLine(file, times)).join("\n")
      : `No files found in ${displayName(path)}`;
  const notices =
    skipped > 0
      ? [
          `[${counted(skipped, "entry", "entries")} not listed: permission denied, or a name that no path can express]`,
        ]
      : [];
  return {
    content: withNotices(text, notices),
    artifact: { path, entries: files.slice(0, MAX_ARTIFACT_ENTRIES), count: files.length, skipped },
  };
}

/** `/a.md (120 bytes)`, `/notes/ (directory)`; with times `/a.md (120 bytes, modified 2026-01-01T00:00:00.000Z)`. */
function entryLine(
  { path, is_dir: isDirectory, size, modified_at: modified }: FileInfo,
  times = false,
): string {
  if (isDirectory) return `${withSlash(displayName(path))} (directory)`;
  const facts = [
    ...(size === undefined ? [] : [`${size} bytes`]),
    ...(times && modified ? [`modified ${modified}`] : []),
  ];
  return displayName(path) + (facts.length > 0 ? ` (${facts.join(", ")})` : "");
}

/** The artifact is stored with the message and is not evicted, so it is bounded here. */
const MAX_ARTIFACT_ENTRIES = 1000;
