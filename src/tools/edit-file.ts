import { z } from "zod";
import type { Failure } from "../backends/backend.ts";
import { fileNotFound } from "../backends/errors.ts";
import { textRefusal } from "../backends/file-data.ts";
import { nearestLines } from "../backends/near-match.ts";
import { editFileText, notebookText } from "../backends/notebook.ts";
import { displayName } from "../core/text.ts";
import { type CallPlace, failedAt, pathText, pathTool, storedText, underOtherNames } from "./call.ts";
import {
  argumentsPreview,
  currentText,
  resolveDestination,
  editPreview,
  failing,
  withRemarks,
} from "./call-preview.ts";
import { type TextChange, changeArtifact, readChange, replacementDiff } from "./diff-preview.ts";
import { counted } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type BoundPreview, type ToolContext, type ToolSpec } from "./tool.ts";

const editSchema = z.strictObject({
  file_path: pathText(),
  old_string: z.string().describe("Text to replace, without read_file's line prefix."),
  new_string: storedText(),
  replace_all: z.boolean().default(false),
});

export const editFileTool = (settings: FileToolSettings): ToolSpec<typeof editSchema> =>
  pathTool(
    {
      name: "edit_file",
      kind: "write",
      description: [
        "Replace text in a file that you have read.",
        "`old_string` is literal and must match exactly, whitespace included, and once, unless `replace_all` is true: add surrounding lines to make it unique.",
      ].join(" "),
      schema: editSchema,
      aliases: { old_str: "old_string", new_str: "new_string" },
      work: async ({ old_string: old, new_string: replacement, replace_all: all }, { path }, context) => {
        const { backend, signal, expectedVersion, evenReadOnly } = context;
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
          const error = isMiss ? missed(result.error, path, text, old) : result.error;
          return failedAt(path, { ...result, error }, context);
        }
        const { path: edited = path, occurrences = 1, version, filesUpdate } = result;
        return {
          content: `Successfully replaced ${occurrences} occurrence(s) in '${displayName(edited)}'${underOtherNames(result)}`,
          artifact: { path: edited, occurrences, version, ...(await changeArtifact(changes.at(-1))) },
          ...(filesUpdate ? { update: { files: filesUpdate } } : {}),
        };
      },
      shown: { title: "Edit a file", preview: previewEdit },
      changeOf(args, artifact) {
        const { file_path: path, old_string: before, new_string: after, replace_all: everywhere } = args;
        return readChange(artifact) ?? replacementDiff({ path, before, after }, everywhere);
      },
    },
    settings,
  );

/** The error of text that is not found, with the lines that come nearest to it. */
function missed(error: string, path: string, text: string, old: string): string {
  const near = nearestLines(notebookText(path, text) ?? text, old);
  return `${error}. Read the file again and copy the text exactly, with its whitespace and without the number and tab before each line.${near === undefined ? "" : ` ${near}`}`;
}

async function previewEdit(args: z.output<typeof editSchema>, { path }: CallPlace, context: ToolContext) {
  const { backend, signal } = context;
  const to = await resolveDestination(path, backend);
  const { name } = to;
  const fails = async (failure: Failure): Promise<BoundPreview> =>
    failing(`Edit ${name}`, args, { failure: await failedAt(path, failure, context), to });
  const refused = await backend.refusal?.("edit", path, { signal });
  if (refused) return fails(refused);
  const current = await currentText(path, backend, signal);
  if (current.kind === "absent") return fails(fileNotFound(path));
  if (current.kind === "unreadable") {
    if (current.failure) return fails(current.failure);
    const summary = `Edit ${name}; its content could not be compared: ${current.reason}`;
    return withRemarks(argumentsPreview(summary, args, to), current);
  }
  const { old_string: before, new_string: after, replace_all: everywhere } = args;
  const unstorable = textRefusal(path, current, after);
  if (unstorable !== undefined) return fails(unstorable);
  const edited = editFileText(path, current.text, [before, after], everywhere);
  if (!edited.ok) {
    const { error, code } = edited;
    return fails({ code, error: code === "no_match" ? missed(error, path, current.text, before) : error });
  }
  const summary = `Edit ${name} (${counted(edited.occurrences, "occurrence")})`;
  const change = { path, before: current.text, after: edited.text };
  const shown = await editPreview({ summary, change, to }, { path, before, after }, everywhere);
  const preview = withRemarks(shown, current);
  return current.version === undefined ? preview : { ...preview, version: current.version };
}
