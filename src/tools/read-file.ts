import { Buffer } from "node:buffer";
import { z } from "zod";
import { byValue } from "../core/by-identity.ts";
import { defined } from "../core/unknown.ts";
import type { ReadResult } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import { textRefusal } from "../backends/file-data.ts";
import { hasNul } from "../backends/mime.ts";
import { isNotebookPath, notebookText } from "../backends/notebook.ts";
import { readTextPage } from "../backends/pages.ts";
import { baseName } from "../backends/paths.ts";
import { describeMedia, mediaFacts, mediaKind, mediaProblem } from "../core/media.ts";
import { displayName, wellFormed } from "../core/text.ts";
import { decodeUtf8 } from "../core/utf8.ts";
import { type CallPlace, backendError, failedAt, pathText, pathTool } from "./call.ts";
import { currentText } from "./call-preview.ts";
import { numberLine, splitLines, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ContentBlock, type ToolContext, type ToolResult, type ToolSpec, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** Returns the bytes of a binary file as one content block, or an error with the reason. */
function mediaResult(
  path: string,
  named: string,
  bytes: Uint8Array,
  accepts: (mimeType: string) => boolean,
): ToolResult {
  const facts = mediaFacts(bytes, named);
  const { mimeType = named } = facts;
  const type = mediaKind(mimeType);
  const name = displayName(path);
  const binary = (text: string): ToolResult => toolError(`File '${name}' ${text}`, { code: "binary" });
  if (type === undefined)
    return binary(`is binary (${mimeType}, ${bytes.length} bytes) and cannot be shown as text`);
  const problem = mediaProblem(facts, { accepts });
  if (problem !== undefined) return binary(`(${describeMedia(facts, named)}) cannot be shown. ${problem}`);
  if (bytes.length > 10 * 1024 * 1024) return backendError(errors.binaryTooLarge(bytes.length), path);
  const block: ContentBlock = {
    type,
    mimeType,
    data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
    ...(type === "file" ? { metadata: { filename: displayName(baseName(path)) } } : {}),
  };
  return { content: [block], artifact: { path, mimeType, size: bytes.length } };
}

/** A page of a text file as a backend returned it. */
export interface TextPage {
  lines: readonly string[];
  /** Number of the first line, counted from 0. */
  start: number;
  /** Piece of the first line to begin with, counted from 0. Default 0. */
  piece?: number;
  /** Lines of the file, when known. */
  total?: number;
  /** True if the file has lines after this page. */
  more: boolean;
}

export interface FormattedPage {
  text: string;
  /** One past the last line shown, counted from 0. */
  end: number;
  /** Offset of the next page; absent when nothing remains. */
  nextOffset?: number;
  /** Piece of the line at `nextOffset` at which the next page starts; absent if it is the first piece. */
  nextPiece?: number;
}

/**
 * A page with line numbers (see `numberLine`) and, if anything remains, a footer that names where to continue. The output is
 * cut to size on a line end; a line that is larger than the output is cut between its pieces. `remarks` are
 * added to the footer.
 */
export function formatPage(
  page: TextPage,
  limits: Pick<FileToolSettings, "maxLineChars" | "maxChars">,
  remarks: readonly string[] = [],
): FormattedPage {
  const { maxChars = Infinity, maxLineChars } = limits;
  // Without the footer, and a piece without its label.
  const room = Math.max(maxChars - 300, Math.ceil(maxChars / 2));
  const pieceSize = Math.min(maxLineChars, room - 24);
  const shown: string[] = [];
  const notices = [...remarks];
  let used = 0;
  let lines = 0;
  for (const [index, line] of page.lines.entries()) {
    const from = index === 0 ? (page.piece ?? 0) : 0;
    const pieces = numberLine(wellFormed(line), page.start + index + 1, {
      maxLineChars: pieceSize,
      isFirst: shown.length === 0,
    }).slice(from);
    if (from > 0 && pieces.length === 0) notices.push(`[line ${page.start + 1} has no piece ${from}]`);
    let size = used - 1;
    const tooMany = pieces.findIndex((piece) => (size += piece.length + 1) > room);
    const fitting = tooMany < 0 ? pieces.length : tooMany;
    if (fitting < pieces.length && index > 0) break;
    shown.push(...pieces.slice(0, Math.max(fitting, 1)));
    if (fitting < pieces.length) {
      const next = from + Math.max(fitting, 1);
      const footer =
        `[line ${page.start + 1} has ${line.length} characters in ${from + pieces.length} pieces; ` +
        `continue with offset=${page.start} piece=${next}, or find text in it with grep]`;
      const text = withNotices(shown.join("\n"), [...notices, footer]);
      return { text, end: page.start + 1, nextOffset: page.start, nextPiece: next };
    }
    lines += 1;
    used += pieces.reduce((sum, piece) => sum + piece.length + 1, 0);
  }
  const end = page.start + lines;
  const remains = page.more || lines < page.lines.length;
  if (remains) notices.push(pageFooter(page.start, end, page.total));
  return { text: withNotices(shown.join("\n"), notices), end, ...(remains ? { nextOffset: end } : {}) };
}

/** `[lines 1-50 of 120; continue with offset=50]`; `start` and `end` count from 0, `end` is exclusive. */
function pageFooter(start: number, end: number, total: number | undefined): string {
  const of = total === undefined ? "" : ` of ${total}`;
  return `[lines ${start + 1}-${end}${of}; continue with offset=${end}]`;
}

const schemaFor = byValue((readLimit: number) =>
  z.strictObject({
    file_path: pathText(),
    offset: z.int().default(0).describe("First line, counted from 0."),
    limit: z.int().min(1).default(readLimit).describe("Number of lines."),
    piece: z.int().min(0).default(0).describe("Piece of a very long first line."),
  }),
);

type ReadSchema = ReturnType<typeof schemaFor>;

/** Reads one page of a text file, or a whole image, audio, video or PDF file. */
export const readFileTool = (settings: FileToolSettings): ToolSpec<ReadSchema> =>
  pathTool(
    {
      name: "read_file",
      kind: "read",
      description: texts.readFile,
      schema: schemaFor(settings.readLimit),
      work: (args, place, context) => readPath(args, place, context, settings),
      isTried: () => true,
    },
    settings,
  );

async function readPath(
  args: z.output<ReadSchema>,
  { path, asked }: CallPlace,
  context: ToolContext,
  settings: FileToolSettings,
): Promise<ToolResult> {
  const { backend, signal } = context;
  const offset = Math.max(args.offset, 0);
  // No more lines than could be shown: a numbered line takes at least 2 characters with its line break.
  const limit =
    settings.maxChars === undefined ? args.limit : Math.min(args.limit, Math.ceil(settings.maxChars / 2) + 1);
  const current = isNotebookPath(path) ? await currentText(path, backend, signal) : undefined;
  const cells = current?.kind === "text" ? notebookText(path, current.text) : undefined;
  const found =
    current?.kind === "text"
      ? defined({ version: current.version, encoding: current.encoding, doubt: current.doubt })
      : {};
  const notebook: ReadResult | undefined =
    cells === undefined ? undefined : { ...readTextPage(path, cells, { offset, limit }), ...found };
  const given = notebook ?? (await backend.read(path, offset, limit, { signal }));
  const { mimeType = "application/octet-stream", version, encoding = "utf-8", doubt } = given;
  const refusal = textRefusal(path, { encoding, ...defined({ doubt }) }, "");
  const bytes = typeof given.content === "string" ? undefined : given.content;
  // A file with a binary type's name may be a text, such as a Git LFS pointer in place of a picture.
  const isText =
    bytes !== undefined && bytes.length > 0 && !hasNul(bytes) && mediaFacts(bytes).mimeType === undefined;
  const text = isText ? decodeUtf8(bytes) : undefined;
  const result = text === undefined ? given : readTextPage(path, text, { offset, limit });
  if (result.error !== undefined) return failedAt(path, result, context);
  const { content = "", totalLines } = result;
  if (typeof content !== "string") return mediaResult(path, mimeType, content, settings.acceptsMedia);
  const notices = [
    ...(path === asked ? [] : [`[the name of this file is spelled ${displayName(path)}]`]),
    ...(notebook === undefined ? [] : [texts.notebook]),
    ...(refusal === undefined ? [] : [`[${displayName(refusal.error)}]`]),
    ...(encoding === "utf-8" || doubt !== undefined
      ? []
      : [`[encoding ${encoding.toUpperCase()}; edit_file and write_file keep it]`]),
    ...(args.offset < 0 ? [`[offset ${args.offset} is negative; read from offset 0]`] : []),
  ];
  if (content === "" && !totalLines) {
    const artifact = { path, version, totalLines: 0 };
    const reminder = "System reminder: File exists but has empty contents";
    return { content: withNotices(reminder, notices), plain: "", artifact };
  }
  const page = { ...toTextPage(result, content, offset, limit), piece: args.piece };
  const limits = context.isProgram ? { ...settings, maxChars: undefined } : settings;
  const { text: shown, end: endLine, nextOffset, nextPiece } = formatPage(page, limits, notices);
  // A program gets the lines unchanged.
  const lines = page.lines.slice(0, endLine - page.start).join("\n");
  const footer = nextOffset === undefined ? "" : `\n${pageFooter(page.start, endLine, page.total)}`;
  return {
    content: shown,
    ...(context.isProgram ? { plain: lines + footer } : {}),
    artifact: { path, version, startLine: page.start, endLine, totalLines, nextOffset, nextPiece },
  };
}

function toTextPage(result: ReadResult, content: string, offset: number, limit: number): TextPage {
  const { startLine: start = offset, endLine, totalLines: total, nextOffset } = result;
  const lines = splitLines(content, endLine === undefined ? undefined : endLine - start);
  const end = start + lines.length;
  // A backend may report neither the file's length nor the next offset: a full page may then have a next one.
  const more = nextOffset !== undefined || (total === undefined ? lines.length >= limit : end < total);
  return { lines, start, more, ...(total === undefined ? {} : { total }) };
}
