import { createHash } from "node:crypto";
import { defined } from "../core/unknown.ts";
import type { Backend, EditOptions, FileData, FileDataV2, FileInfo, ReadResult } from "./backend.ts";
import { type FileText, type TextEncoding, encodeText, findUnencodable, readFileText } from "./encoding.ts";
import { type BackendFailure, errors } from "./errors.ts";
import { decodeBase64, DEFAULT_TEXT_TYPE, hasNul, isTextType, mimeTypeOf, plainBytes } from "./mime.ts";
import { editFileText } from "./notebook.ts";
import { MAX_BINARY_SIZE, type PageRequest, readTextPage } from "./pages.ts";

/** The content of a file: text, or bytes that are not shown as text. */
type FileContent =
  | ({ kind: "text"; mimeType: string } & FileText)
  | { kind: "binary"; bytes: Uint8Array; mimeType: string };

export type ContentResult = { ok: true; content: FileContent } | ({ ok: false } & BackendFailure);

/**
 * Decides whether bytes are text. They are binary by the type of the name or by a NUL in them, which text in UTF-16
 * has only in its characters. Other bytes must have a known encoding, or the result is an `encoding` failure.
 */
export function classifyBytes(path: string, bytes: Uint8Array): ContentResult {
  const mimeType = mimeTypeOf(path);
  if (!isTextType(mimeType)) return { ok: true, content: { kind: "binary", bytes, mimeType } };
  const found = readFileText(bytes);
  if (found !== undefined) return { ok: true, content: { kind: "text", ...found, mimeType } };
  return hasNul(bytes)
    ? { ok: true, content: { kind: "binary", bytes, mimeType: "application/octet-stream" } }
    : { ok: false, ...errors.unknownEncoding(path) };
}

/** Makes the bytes that a `write` stores: text in its encoding, or decoded base64 for a name of a binary type. */
export function bytesToWrite(
  path: string,
  content: string,
  encoding: TextEncoding = "utf-8",
): { ok: true; bytes: Uint8Array } | ({ ok: false } & BackendFailure) {
  const mimeType = mimeTypeOf(path);
  const refused = isTextType(mimeType) ? textRefusal(path, { encoding }, content) : undefined;
  if (refused !== undefined) return { ok: false, ...refused };
  const bytes = isTextType(mimeType) ? encodeText(content, encoding) : decodeBase64(content);
  return bytes === undefined ? { ok: false, ...errors.invalidBase64(path, mimeType) } : { ok: true, bytes };
}

/** Why a text cannot be stored in the place of one that was read, or as a part of it. */
export function textRefusal(
  path: string,
  { encoding, doubt }: Omit<FileText, "text">,
  text: string,
): BackendFailure | undefined {
  if (doubt !== undefined) return errors.uncertainEncoding(path, encoding, doubt);
  const missing = findUnencodable(text, encoding);
  return missing === undefined ? undefined : errors.notInEncoding(path, missing, encoding);
}

/** Reads stored file data of either version. Text content of a binary type is base64. */
export function parseContent(path: string, data: FileData): ContentResult {
  const { content } = data;
  if (Array.isArray(content)) return { ok: true, content: textContent(content.join("\n"), mimeTypeOf(path)) };
  const mimeType = ("mimeType" in data ? data.mimeType : undefined) ?? mimeTypeOf(path);
  if (isTextType(mimeType)) {
    if (typeof content !== "string") return classifyBytes(path, content);
    if (content.includes("\0")) return classifyBytes(path, Buffer.from(content, "utf8"));
    return { ok: true, content: textContent(content, mimeType) };
  }
  const bytes = typeof content === "string" ? decodeBase64(content) : content;
  return bytes === undefined
    ? { ok: false, ...errors.invalidBase64(path, mimeType) }
    : { ok: true, content: { kind: "binary", bytes, mimeType } };
}

const textContent = (text: string, mimeType: string): FileContent => ({
  kind: "text",
  text,
  encoding: "utf-8",
  mimeType,
});

/** Returns the bytes of stored file data, as a download needs them. */
export function toBytes(data: FileData): Uint8Array {
  if (Array.isArray(data.content)) return plainBytes(Buffer.from(data.content.join("\n"), "utf8"));
  if (typeof data.content !== "string") return plainBytes(data.content);
  const isText = !("mimeType" in data) || isTextType(data.mimeType ?? DEFAULT_TEXT_TYPE);
  const bytes = isText ? undefined : decodeBase64(data.content);
  return plainBytes(bytes ?? Buffer.from(data.content, "utf8"));
}

/** Reads a text file of at most `maxBytes`. A larger file is not even loaded if the backend lists sizes. */
export async function readText(
  backend: Backend,
  path: string,
  maxBytes: number,
): Promise<{ text: string } | ({ text?: undefined } & BackendFailure)> {
  const { files = [] } = await backend.ls(path);
  const size = files.find((entry) => entry.path === path)?.size ?? 0;
  if (size > maxBytes) return errors.tooLargeToLoad(path, size, maxBytes);
  const { data, error, code } = await backend.readRaw(path);
  if (!data) return { error: error ?? `File '${path}' cannot be read`, code: code ?? "io" };
  const known = parseContent(path, data);
  if (!known.ok) return { error: known.error, code: known.code };
  if (known.content.kind === "binary") return errors.binaryFile(path);
  const { text } = known.content;
  return text.length > maxBytes ? errors.tooLargeToLoad(path, text.length, maxBytes) : { text };
}

export type FileFormat = "v1" | "v2";

/** Makes file data of bytes. UTF-8 is stored as text, all else as it is. Version 1 cannot hold bytes, so version 2 is used for them. */
export function toFileData(
  path: string,
  bytes: Uint8Array,
  times: { createdAt?: string; now: string },
  format: FileFormat = "v2",
): FileData {
  const stamps = { created_at: times.createdAt ?? times.now, modified_at: times.now };
  const known = classifyBytes(path, bytes);
  const content = known.ok && known.content.kind === "text" ? known.content : undefined;
  if (content?.encoding === "utf-8" && content.doubt === undefined) {
    const { text, mimeType } = content;
    return format === "v1"
      ? { content: text.split("\n"), ...stamps }
      : { content: text, mimeType, ...stamps };
  }
  const mimeType = known.ok ? known.content.mimeType : mimeTypeOf(path);
  // A copy, because the caller may change its buffer.
  return { content: new Uint8Array(bytes), mimeType, ...stamps } satisfies FileDataV2;
}

/** A version that depends on the content alone. */
export const versionOfBytes = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, 16);

export const contentVersion = (data: FileData): string => versionOfBytes(toBytes(data));

export const toFileInfo = (path: string, data: FileData): FileInfo => ({
  path,
  is_dir: false,
  size:
    typeof data.content === "string" && (!("mimeType" in data) || isTextType(data.mimeType))
      ? Buffer.byteLength(data.content, "utf8")
      : toBytes(data).byteLength,
  modified_at: data.modified_at,
});

export const readFileData = (path: string, data: FileData, request: PageRequest): ReadResult =>
  readContent(path, parseContent(path, data), request, contentVersion(data));

/** Reads a page of a text, or a whole binary file. */
export function readContent(
  path: string,
  known: ContentResult,
  request: PageRequest,
  version: string,
): ReadResult {
  if (!known.ok) return { error: known.error, code: known.code };
  const { content } = known;
  if (content.kind === "binary") {
    if (content.bytes.byteLength > MAX_BINARY_SIZE) return errors.binaryTooLarge(content.bytes.byteLength);
    return { content: plainBytes(content.bytes), mimeType: content.mimeType, version };
  }
  const page = readTextPage(path, content.text, request);
  if (page.error !== undefined) return page;
  return { ...page, mimeType: content.mimeType, version, ...encodingFacts(content) };
}

/** The facts about an encoding that a result names. */
export const encodingFacts = ({
  encoding,
  doubt,
}: Omit<FileText, "text">): Pick<ReadResult, "encoding" | "doubt"> =>
  defined({ encoding: encoding === "utf-8" ? undefined : encoding, doubt });

export interface ContentEdit extends Pick<EditOptions, "expectedVersion" | "onChange"> {
  oldString: string;
  newString: string;
  replaceAll: boolean;
}

export type EditedContent =
  | { ok: true; bytes: Uint8Array; occurrences: number }
  | ({ ok: false } & BackendFailure);

/** Applies an edit to the content of a file, in one way for every backend. */
export function editContent(path: string, known: ContentResult, edit: ContentEdit): EditedContent {
  if (!known.ok) return known;
  if (known.content.kind === "binary") return { ok: false, ...errors.binaryEdit(path) };
  const { text, encoding } = known.content;
  const refused = textRefusal(path, known.content, edit.newString);
  if (refused !== undefined) return { ok: false, ...refused };
  const edited = editFileText(path, text, [edit.oldString, edit.newString], edit.replaceAll);
  if (!edited.ok) return edited;
  edit.onChange?.(text, edited.text);
  return { ok: true, bytes: encodeText(edited.text, encoding), occurrences: edited.occurrences };
}

export function editFileData(path: string, data: FileData, edit: ContentEdit): EditedContent {
  if (edit.expectedVersion !== undefined && edit.expectedVersion !== contentVersion(data))
    return { ok: false, ...errors.changedSinceRead(path) };
  return editContent(path, parseContent(path, data), edit);
}
