import { z } from "zod";
import type { Failure, WriteResult } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import { textRefusal } from "../backends/file-data.ts";
import { decodeBase64, isTextType, mimeTypeOf } from "../backends/mime.ts";
import { writtenNotebook as fileText } from "../backends/notebook.ts";
import { keepForm } from "../backends/text-edit.ts";
import { displayName, oneLine } from "../core/text.ts";
import { type CallPlace, backendError, pathText, pathTool, storedText, underOtherNames } from "./call.ts";
import {
  type CurrentText,
  argumentsPreview,
  currentText,
  resolveDestination,
  diffPreview,
  failing,
  withRemarks,
} from "./call-preview.ts";
import { type TextChange, changeArtifact, readChange, fileDiff, lineCount } from "./diff-preview.ts";
import { counted } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { BoundPreview, ToolContext, ToolSpec } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

const writeSchema = z.strictObject({
  file_path: pathText(),
  content: storedText().describe("The whole text; base64 for a binary type such as .png."),
});

/** Creates a file, or overwrites one that the conversation has seen as it is. */
export const writeFileTool = (settings: FileToolSettings): ToolSpec<typeof writeSchema> =>
  pathTool(
    {
      name: "write_file",
      kind: "write",
      description: texts.writeFile,
      schema: writeSchema,
      async work({ content }, { path, directory }, context) {
        const { backend, signal, evenReadOnly } = context;
        if (directory) return backendError(errors.isDirectory(path), path);
        const created = await backend.write(path, fileText(path, content), { mode: "create", signal });
        const expectedVersion = created.code === "exists" ? versionToReplace(path, context) : undefined;
        let result: WriteResult = created;
        let change: TextChange | undefined;
        /** Properties of the earlier file that the new text kept. */
        const kept: string[] = [];
        // Replaces the content if the file still is the version that was seen. The new text takes its form.
        if (expectedVersion !== undefined) {
          const options = { mode: "overwrite", expectedVersion, signal, evenReadOnly } as const;
          const current = await currentText(path, backend, signal);
          if (current.kind === "text") {
            const { text: before, encoding } = current;
            const adapted = keepForm(before, fileText(path, content, before));
            kept.push(
              ...adapted.kept,
              ...(encoding === "utf-8" ? [] : [`encoding (${encoding.toUpperCase()})`]),
            );
            change = { path, before, after: adapted.text };
            result =
              textRefusal(path, current, adapted.text) ??
              (await backend.write(path, adapted.text, { ...options, encoding }));
          } else {
            change = { path, before: "", after: fileText(path, content) };
            result = await backend.write(path, change.after, options);
          }
        }
        if (result.error !== undefined) return backendError(result, path);
        const written = result.path ?? path;
        const form = kept.length === 0 ? "" : `. Kept from the file before: ${kept.join(", ")}`;
        return {
          content: `Successfully wrote to '${displayName(written)}'${form}${underOtherNames(result)}`,
          artifact: { path: written, version: result.version, ...(await changeArtifact(change)) },
          ...(result.filesUpdate ? { update: { files: result.filesUpdate } } : {}),
        };
      },
      shown: { title: "Write a file", preview: previewWrite },
      changeOf({ file_path: path, content }, artifact) {
        if (!isTextType(mimeTypeOf(path))) return { diff: binarySummary(path, content) };
        return readChange(artifact) ?? fileDiff({ path, before: undefined, after: content });
      },
    },
    settings,
  );

/** The version that may be overwritten. Binary files are not shown as a diff, and stay as they are. */
const versionToReplace = (path: string, context: ToolContext): string | undefined =>
  isTextType(mimeTypeOf(path)) ? context.versionSeen?.(path) : undefined;

/** The reason why a file cannot be written, unless that may end by itself. */
function writeRefusal(path: string, current: CurrentText, seen: string | undefined): Failure | undefined {
  const failure = current.kind === "unreadable" ? current.failure : undefined;
  if (failure && failure.code !== "binary") return failure;
  const isThere = current.kind === "text" || failure !== undefined || current.entry !== undefined;
  if (isThere && seen === undefined) return errors.alreadyExists(path);
  return current.kind === "text" && seen !== current.version ? errors.changedSinceRead(path) : undefined;
}

async function previewWrite(
  args: z.output<typeof writeSchema>,
  { path, directory }: CallPlace,
  context: ToolContext,
): Promise<BoundPreview> {
  const { content } = args;
  const { backend, signal } = context;
  const to = await resolveDestination(path, backend);
  const { name } = to;
  const mimeType = mimeTypeOf(path);
  const current = await currentText(path, backend, signal);
  const seen = versionToReplace(path, context);
  const known = directory ? errors.isDirectory(path) : await backend.refusal?.("write", path, { signal });
  const refusal = known ?? writeRefusal(path, current, seen);
  const failure = refusal && backendError(refusal, path);
  const isText = isTextType(mimeType);
  if (!isText && !decodeBase64(content))
    return failing(`Write ${name}`, args, {
      failure: backendError(errors.invalidBase64(path, mimeType), path),
    });
  if (failure && !(isText && current.kind === "text")) return failing(`Write ${name}`, args, { failure, to });
  if (!isText) {
    // The beginning of the base64 text: a person learns more from type and size, and can ask for the rest.
    const beginning = oneLine(content, 200);
    const summary = binarySummary(path, content);
    const shown = argumentsPreview(summary, { file_path: path, content: beginning }, to);
    return beginning === content ? shown : { ...shown, isPart: true };
  }
  if (current.kind === "unreadable") {
    const summary = `Write ${name}; its content could not be compared: ${current.reason}`;
    return withRemarks(argumentsPreview(summary, args, to), current);
  }
  if (current.kind === "absent") {
    const after = fileText(path, content);
    const lines = counted(lineCount(after), "line");
    const change = { path, before: undefined, after };
    return diffPreview({ summary: `Create ${name} (${lines})`, change, to });
  }
  const { text: before } = current;
  const change = { path, before, after: keepForm(before, fileText(path, content, before)).text };
  const refused = textRefusal(path, current, change.after);
  if (failure === undefined && refused !== undefined)
    return failing(`Write ${name}`, args, { failure: backendError(refused, path), to });
  if (failure === undefined)
    return withRemarks(await diffPreview({ summary: `Overwrite ${name}`, change, to }), current);
  const reason = seen === undefined ? "the file already exists" : "the file changed since it was read";
  const summary = `Write ${name}; it would fail, because ${reason}`;
  return { ...(await diffPreview({ summary, change, to })), failure };
}

const binarySummary = (path: string, content: string): string =>
  `Create ${path} (${mimeTypeOf(path)}, ${decodeBase64(content)?.length} bytes)`;
