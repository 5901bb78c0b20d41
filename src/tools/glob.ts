import { z } from "zod";
import { compileGlob, patternFrom } from "../backends/glob.ts";
import { displayName } from "../core/text.ts";
import {
  backendError,
  cancellable,
  checkPath,
  failedAt,
  lookedAtRoot,
  pathArgument,
  pathText,
  patternText,
} from "./call.ts";
import { counted, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool } from "./tool.ts";

const schema = z.strictObject({
  pattern: patternText().describe("For example **/*.ts or src/{a,b}*.md"),
  path: pathText().optional().describe("Directory. Default: /"),
});

/** Finds files by name. */
export function globTool(settings: FileToolSettings): ToolSpec<typeof schema> {
  return defineTool({
    name: "glob",
    kind: "read",
    description: [
      `Find files by name. Returns absolute paths, sorted, one per line, at most ${MAX_LINES}.`,
      "`*` and `?` stay within a name, `**` spans directories, `[ab]` and `{a,b}` choose, a leading `!` negates.",
      "A pattern without `/` matches in `path` itself only; one that begins with `/` is taken from the root.",
    ].join(" "),
    schema,
    pathOf: ({ path }) => pathArgument(path, settings.allowedPrefixes),
    handle: (args, context) =>
      cancellable("glob", context.signal, () => find(args, context, settings.allowedPrefixes)),
  });
}

async function find(
  args: z.output<typeof schema>,
  context: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<ToolResult> {
  const { backend, signal } = context;
  const checked = checkPath(args.path, backend, allowedPrefixes);
  if (!checked.ok) return backendError(checked, args.path ?? "/");
  const { path } = checked;
  const pattern = patternFrom(args.pattern, path);
  const compiled = compileGlob(pattern);
  if (!compiled.ok) return backendError(compiled, path);
  const result = await backend.glob(pattern, path, { signal });
  if (result.error !== undefined) return failedAt(path, result, context);
  const { files = [], truncated = false, skipped = 0, notes = [] } = result;
  const paths = files.slice(0, MAX_LINES).map((file) => file.path);
  const hidden = files.length - paths.length;
  const elsewhere = paths.length === 0 && !truncated ? await lookedAtRoot(compiled.glob, path, context) : [];
  const notices = [
    ...elsewhere,
    ...(hidden > 0 ? [`[${hidden} more not shown; narrow the pattern]`] : []),
    ...(truncated ? ["[the search stopped before it was complete; narrow the pattern or path]"] : []),
    ...(skipped > 0
      ? [`[${counted(skipped, "directory", "directories")} could not be searched: permission denied]`]
      : []),
    ...notes.map((note) => `[not searched: ${displayName(note)}]`),
  ];
  const text =
    paths.length > 0
      ? paths.map(displayName).join("\n")
      : `No files found matching pattern '${displayName(args.pattern)}' in ${displayName(path)}`;
  return {
    content: withNotices(text, notices),
    artifact: { paths, count: files.length, truncated, skipped },
  };
}

const MAX_LINES = 1000;
