import { z } from "zod";
import type { WriteResult } from "../backends/backend.ts";
import { invalidBase64, isDirectory } from "../backends/errors.ts";
import { decodeBase64, isTextType, mimeTypeOf } from "../backends/mime.ts";
import { writtenNotebook as fileText } from "../backends/notebook.ts";
import { inFormOf } from "../backends/text-edit.ts";
import { displayName, oneLine } from "../core/text.ts";
import { type Place, backendError, pathText, pathTool, underOtherNames } from "./call.ts";
import { argumentsPreview, currentText, destinationOf, diffPreview, withRemarks } from "./call-preview.ts";
import { type TextChange, artifactOf, diffIn, fileDiff, lineCount } from "./diff-preview.ts";
import { counted } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type BoundPreview, type ToolContext, type ToolResult, type ToolSpec, toolError } from "./tool.ts";

const schema = z.strictObject({
  file_path: pathText(),
  content: z.string().describe("The whole text; base64 for a binary type such as .png."),
});

type WriteArguments = z.output<typeof schema>;

/** Creates a file, or overwrites one that the conversation has seen as it is. */
export const writeFileTool = (settings: FileToolSettings): ToolSpec<typeof schema> =>
  pathTool(
    {
      name: "write_file",
      kind: "write",
      description:
        "Write a whole file, and missing parent directories. An existing one is overwritten only if you have read it and it has not changed since; to change a part, use edit_file.",
      schema,
      work: write,
      shown: { title: "Write a file", preview: previewWrite },
      changeOf({ file_path: path, content }, artifact) {
        if (!isTextType(mimeTypeOf(path))) return { diff: binarySummary(path, content) };
        return diffIn(artifact) ?? fileDiff({ path, before: undefined, after: content });
      },
    },
    settings,
  );

async function write(
  { content }: WriteArguments,
  { path, directory }: Place,
  context: ToolContext,
): Promise<ToolResult> {
  const { backend, signal } = context;
  if (directory) return backendError(isDirectory(path), path);
  if (!content.isWellFormed()) return toolError(UNPAIRED_SURROGATE, { code: "encoding" });
  const created = await backend.write(path, fileText(path, content), { mode: "create", signal });
  const version = created.code === "exists" ? versionToReplace(path, context) : undefined;
  const replaced = version === undefined ? undefined : await overwrite(path, content, version, context);
  const { change, kept = [], ...result }: Overwritten = replaced ?? created;
  if (result.error !== undefined) return backendError(result, path);
  const written = result.path ?? path;
  const form = kept.length === 0 ? "" : `. Kept from the file before: ${kept.join(", ")}`;
  return {
    content: `Successfully wrote to '${displayName(written)}'${form}${underOtherNames(result)}`,
    artifact: { path: written, version: result.version, ...(await artifactOf(change)) },
    ...(result.filesUpdate ? { update: { files: result.filesUpdate } } : {}),
  };
}

/** The version that may be overwritten. Binary files are not shown as a diff, and stay as they are. */
const versionToReplace = (path: string, context: ToolContext): string | undefined =>
  isTextType(mimeTypeOf(path)) ? context.versionSeen?.(path) : undefined;

interface Overwritten extends WriteResult {
  change?: TextChange;
  /** Properties of the file before that were given to the new text. */
  kept?: readonly string[];
}

/** Replaces the content if the file still is the version that was seen. The new text takes its form. */
async function overwrite(
  path: string,
  content: string,
  expectedVersion: string,
  { backend, signal, evenReadOnly }: ToolContext,
): Promise<Overwritten> {
  const options = { mode: "overwrite", expectedVersion, signal, evenReadOnly } as const;
  const current = await currentText(path, backend, signal);
  if (current.kind !== "text") {
    const after = fileText(path, content);
    const result = await backend.write(path, after, options);
    return { ...result, change: { path, before: "", after } };
  }
  const { text: before, encoding } = current;
  const { text: after, kept } = inFormOf(before, fileText(path, content, before));
  const result = await backend.write(path, after, { ...options, encoding });
  const encodings = encoding === "utf-8" ? [] : [`encoding (${encoding.toUpperCase()})`];
  return { ...result, change: { path, before, after }, kept: [...kept, ...encodings] };
}

async function previewWrite(
  { content }: WriteArguments,
  { path }: Place,
  context: ToolContext,
): Promise<BoundPreview> {
  const { backend, signal } = context;
  const to = await destinationOf(path, backend);
  const { name } = to;
  if (!isTextType(mimeTypeOf(path))) {
    // The beginning of the base64 text: a person learns more from type and size, and can ask for the
    // rest.
    const beginning = oneLine(content, BASE64_HEAD);
    const shown = argumentsPreview(binarySummary(path, content), { file_path: path, content: beginning }, to);
    return beginning === content ? shown : { ...shown, isPart: true };
  }
  const current = await currentText(path, backend, signal);
  if (current.kind === "unreadable") {
    const summary = `Write ${name}; its content could not be compared: ${current.reason}`;
    return withRemarks(argumentsPreview(summary, { file_path: path, content }, to), current);
  }
  if (current.kind === "absent") {
    const after = fileText(path, content);
    const lines = counted(lineCount(after), "line");
    const change = { path, before: undefined, after };
    return diffPreview({ summary: `Create ${name} (${lines})`, change, to });
  }
  const change = {
    path,
    before: current.text,
    after: inFormOf(current.text, fileText(path, content, current.text)).text,
  };
  const seen = versionToReplace(path, context);
  if (seen !== undefined && seen === current.version) {
    return withRemarks(await diffPreview({ summary: `Overwrite ${name}`, change, to }), current);
  }
  const reason = seen === undefined ? "the file already exists" : "the file changed since it was read";
  return diffPreview({ summary: `Write ${name}; it would fail, because ${reason}`, change, to });
}

function binarySummary(path: string, content: string): string {
  const mimeType = mimeTypeOf(path);
  const bytes = decodeBase64(content);
  return bytes
    ? `Create ${path} (${mimeType}, ${bytes.length} bytes)`
    : `Write ${path}; it would fail: ${invalidBase64(path, mimeType).error}`;
}

const BASE64_HEAD = 200;
const UNPAIRED_SURROGATE =
  "content has half of a surrogate pair and cannot be stored as UTF-8; send the whole character or leave it out.";
