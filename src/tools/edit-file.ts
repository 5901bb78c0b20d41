import { z } from "zod";
import { fileNotFound } from "../backends/errors.ts";
import { nearestLines } from "../backends/near-match.ts";
import { editFileText, notebookText } from "../backends/notebook.ts";
import { displayName } from "../core/text.ts";
import {
  backendError,
  cancellable,
  checkPath,
  failedAt,
  pathArgument,
  pathText,
  truePath,
  underOtherNames,
} from "./call.ts";
import { argumentsPreview, currentText, destinationOf, editPreview, withRemarks } from "./call-preview.ts";
import { type TextChange, artifactOf, diffIn, replacementDiff } from "./diff-preview.ts";
import { counted, isWellFormed } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import {
  type BoundPreview,
  type ToolContext,
  type ToolResult,
  type ToolSpec,
  defineTool,
  toolError,
} from "./tool.ts";

const schema = z.strictObject({
  file_path: pathText(),
  old_string: z.string().describe("Text to replace, without read_file's line prefix."),
  new_string: z.string(),
  replace_all: z.boolean().default(false),
});

type EditArguments = z.output<typeof schema>;

/** Replaces literal text in a file. */
export function editFileTool(settings: FileToolSettings): ToolSpec<typeof schema> {
  const { allowedPrefixes } = settings;
  return defineTool({
    name: "edit_file",
    kind: "write",
    description: [
      "Replace text in a file that you have read.",
      "`old_string` is literal and must match exactly, whitespace included, and once, unless `replace_all` is true: add surrounding lines to make it unique.",
    ].join(" "),
    schema,
    aliases: { path: "file_path" },
    pathOf: ({ file_path: path }) => pathArgument(path, allowedPrefixes),
    handle: (args, context) =>
      cancellable("edit_file", context.signal, () => edit(args, context, allowedPrefixes)),
    preview: (args, context) => previewEdit(args, context, allowedPrefixes),
    changeOf: (
      { file_path: path, old_string: before, new_string: after, replace_all: everywhere },
      artifact,
    ) => diffIn(artifact) ?? replacementDiff({ path, before, after }, everywhere),
  });
}

async function edit(
  { file_path: raw, old_string: old, new_string: replacement, replace_all: all }: EditArguments,
  context: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<ToolResult> {
  const { backend, signal, expectedVersion, evenReadOnly } = context;
  const checked = checkPath(raw, backend, allowedPrefixes);
  if (!checked.ok) return backendError(checked, raw);
  const path = await truePath(checked.path, backend);
  if (!isWellFormed(replacement)) return toolError(UNPAIRED_SURROGATE, { code: "encoding" });
  const changes: TextChange[] = [];
  const result = await backend.edit(path, old, replacement, all, {
    signal,
    evenReadOnly,
    onChange: (before, after) => void changes.push({ path, before, after }),
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
  });
  if (result.error !== undefined) {
    const isMiss = result.code === "no_match" && old !== "" && old !== replacement;
    const current = isMiss ? await currentText(path, backend, signal) : undefined;
    const text = current?.kind === "text" ? current.text : "";
    return failedAt(
      path,
      isMiss ? { ...result, error: missed(result.error, path, text, old) } : result,
      context,
    );
  }
  const { path: edited = path, occurrences = 1, version, filesUpdate } = result;
  return {
    content: `Successfully replaced ${occurrences} occurrence(s) in '${displayName(edited)}'${underOtherNames(result)}`,
    artifact: { path: edited, occurrences, version, ...(await artifactOf(changes.at(-1))) },
    ...(filesUpdate ? { update: { files: filesUpdate } } : {}),
  };
}

/** The error of text that is not found, with the lines that come nearest to it. */
function missed(error: string, path: string, text: string, old: string): string {
  const near = nearestLines(notebookText(path, text) ?? text, old);
  return `${error}. ${ON_MISS}${near === undefined ? "" : ` ${near}`}`;
}

async function previewEdit(
  args: EditArguments,
  { backend, signal }: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<BoundPreview> {
  const checked = checkPath(args.file_path, backend, allowedPrefixes);
  if (!checked.ok) return argumentsPreview(`Edit a file; it would fail: ${checked.error}`, args);
  const path = await truePath(checked.path, backend);
  const to = await destinationOf(path, backend);
  const { name } = to;
  const current = await currentText(path, backend, signal);
  if (current.kind === "absent")
    return {
      ...argumentsPreview(`Edit ${name}; it would fail: the file is missing`, args, to),
      failure: fileNotFound(path).error,
    };
  if (current.kind === "unreadable") {
    const summary = `Edit ${name}; its content could not be compared: ${current.reason}`;
    return withRemarks(argumentsPreview(summary, args, to), current);
  }
  const { old_string: before, new_string: after, replace_all: everywhere } = args;
  const edited = editFileText(path, current.text, [before, after], everywhere);
  if (!edited.ok)
    return {
      ...argumentsPreview(`Edit ${name}; it would fail: ${edited.error}`, args, to),
      failure: edited.code === "no_match" ? missed(edited.error, path, current.text, before) : edited.error,
    };
  const summary = `Edit ${name} (${counted(edited.occurrences, "occurrence")})`;
  const change = { path, before: current.text, after: edited.text };
  const shown = await editPreview({ summary, change, to }, { path, before, after }, everywhere);
  const preview = withRemarks(shown, current);
  return current.version === undefined ? preview : { ...preview, version: current.version };
}

const ON_MISS =
  "Read the file again and copy the text exactly, with its whitespace and without the number and tab before each line.";
const UNPAIRED_SURROGATE =
  "new_string has half of a surrogate pair and cannot be stored as UTF-8; send the whole character or leave it out.";
