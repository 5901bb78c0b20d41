import { z } from "zod";
import type { ReadResult } from "../backends/backend.ts";
import { pathText } from "./arguments.ts";
import { backendError, cancellable, checkPath, failedAt, pathArgument } from "./call.ts";
import { splitLines, withNotices } from "./format.ts";
import { mediaResult } from "./media.ts";
import type { FileToolSettings } from "./options.ts";
import { type Page, formatPage } from "./page.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool } from "./tool.ts";

const schemaFor = (readLimit: number) =>
  z.strictObject({
    file_path: pathText(),
    offset: z.int().default(0).describe("First line, counted from 0."),
    limit: z.int().min(1).default(readLimit).describe("Number of lines."),
    piece: z.int().min(0).default(0).describe("Piece of a very long first line to begin with."),
  });

type ReadSchema = ReturnType<typeof schemaFor>;

/** Reads one page of a text file, or a whole image, audio, video or PDF file. */
export function readFileTool(settings: FileToolSettings): ToolSpec<ReadSchema> {
  return defineTool({
    name: "read_file",
    kind: "read",
    description: [
      "Read a text file.",
      "Each line comes after a tab, and the first and every fifth with its number before it; neither is part of the file. A very long line is continued on lines numbered 12.1, 12.2.",
      "When something remains, the last line of the answer names where to continue.",
      "Images, audio, video and PDF files are returned as such.",
      "To find something in a large file or in many files, use grep first.",
    ].join(" "),
    schema: schemaFor(settings.readLimit),
    aliases: { path: "file_path" },
    pathOf: ({ file_path: path }) => pathArgument(path, settings.allowedPrefixes),
    handle: (args, context) => cancellable("read_file", context.signal, () => read(args, context, settings)),
  });
}

async function read(
  args: z.output<ReadSchema>,
  context: ToolContext,
  settings: FileToolSettings,
): Promise<ToolResult> {
  const { backend, signal } = context;
  const checked = checkPath(args.file_path, backend, settings.allowedPrefixes);
  if (!checked.ok) return backendError(checked, args.file_path);
  const { path } = checked;
  const offset = Math.max(args.offset, 0);
  const limit = linesToAskFor(args.limit, settings.maxChars);
  const result = await backend.read(path, offset, limit, { signal });
  if (result.error !== undefined) return failedAt(path, result, context);
  const { content = "", mimeType = "application/octet-stream", version, totalLines } = result;
  if (typeof content !== "string") return mediaResult(path, mimeType, content, settings.acceptsMedia);
  const notices = args.offset < 0 ? [`[offset ${args.offset} is negative; read from offset 0]`] : [];
  if (content === "" && !totalLines) {
    return { content: withNotices(EMPTY_REMINDER, notices), artifact: { path, version, totalLines: 0 } };
  }
  const page = { ...pageOf(result, content, offset, limit), piece: args.piece };
  const formatted = formatPage(page, settings, notices);
  return {
    content: formatted.text,
    artifact: {
      path,
      version,
      startLine: page.start,
      endLine: formatted.end,
      totalLines,
      nextOffset: formatted.nextOffset,
      nextPiece: formatted.nextPiece,
    },
  };
}

function pageOf(result: ReadResult, content: string, offset: number, limit: number): Page {
  const { startLine: start = offset, endLine, totalLines: total, nextOffset } = result;
  const lines = splitLines(content, endLine === undefined ? undefined : endLine - start);
  const end = start + lines.length;
  // A backend that says neither how long the file is nor where to go on: a full page may have a next one.
  const more = nextOffset !== undefined || (total === undefined ? lines.length >= limit : end < total);
  return { lines, start, more, ...(total === undefined ? {} : { total }) };
}

/** No more lines than could be shown: a numbered line takes at least 2 characters with its line break. */
function linesToAskFor(limit: number, maxChars: number | undefined): number {
  return maxChars === undefined ? limit : Math.min(limit, Math.ceil(maxChars / 2) + 1);
}

const EMPTY_REMINDER = "System reminder: File exists but has empty contents";
