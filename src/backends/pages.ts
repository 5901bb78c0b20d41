import { read as readWithCallback, readSync } from "node:fs";
import { promisify } from "node:util";
import { defined } from "../core/unknown.ts";
import type { ReadResult } from "./backend.ts";
import type { TextEncoding } from "./encoding.ts";
import { BYTE_ORDER_MARK, decodeText, openDecoder, detectEncoding, isOlder } from "./encoding.ts";
import { errors } from "./errors.ts";
import { hasNul } from "./mime.ts";

const DEFAULT_READ_LIMIT = 2000;
/** Largest page, in bytes of a stream or UTF-16 units of a string. */
const MAX_PAGE_SIZE = 10 * 1024 * 1024;
/** Largest binary file that `read` returns. */
export const MAX_BINARY_SIZE = 10 * 1024 * 1024;

export interface PageRequest {
  /** First line, from 0. */
  offset: number;
  /** Number of lines, at least 0. */
  limit: number;
}

/** A negative or missing offset is 0; fractions are dropped. */
export function pageRequest(offset = 0, limit = DEFAULT_READ_LIMIT): PageRequest {
  const whole = (value: number, otherwise: number): number =>
    Number.isNaN(value) ? otherwise : Math.max(0, Math.floor(value));
  return { offset: whole(offset, 0), limit: whole(limit, DEFAULT_READ_LIMIT) };
}

/** `totalLines`: of the whole file, when known. `more`: the page is not the end of the file. */
function pageResult(
  request: PageRequest,
  page: { content: string; lines: number; totalLines?: number; more: boolean },
): ReadResult {
  const { offset } = request;
  if (page.totalLines !== undefined && offset > 0 && offset >= page.totalLines)
    return errors.offsetPastEnd(offset, page.totalLines);
  const endLine = offset + page.lines;
  return {
    content: page.content,
    startLine: offset,
    endLine,
    ...defined({ totalLines: page.totalLines, nextOffset: page.more ? endLine : undefined }),
  };
}

export function readTextPage(path: string, text: string, request: PageRequest): ReadResult {
  const body = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  let line = 0;
  let start = body.length;
  let end = body.length;
  let lines = 0;
  for (let at = 0; at < body.length; line += 1) {
    const feed = body.indexOf("\n", at);
    const next = feed === -1 ? body.length : feed + 1;
    if (line === request.offset) start = end = at;
    const wanted = line >= request.offset && line === request.offset + lines && lines < request.limit;
    if (wanted && next - start <= MAX_PAGE_SIZE) {
      end = next;
      lines += 1;
    } else if (wanted && lines === 0) {
      return errors.lineTooLong(path, line + 1, MAX_PAGE_SIZE);
    }
    at = next;
  }
  const content = lines === 0 ? "" : body.slice(start, end);
  return pageResult(request, { content, lines, totalLines: line, more: request.offset + lines < line });
}

const readAt = promisify(readWithCallback);

const CHUNK_SIZE = 256 * 1024;
const HEAD_SIZE = 8 * 1024;
const MARK_OF_UTF8 = Buffer.from(BYTE_ORDER_MARK, "utf8");

/**
 * Reads an open file, at most `limit` + 1 bytes. A result longer than `limit` means that the file is larger. A file that
 * fits into `scratch` is read into it, and the result is valid until the caller reads the next one.
 */
export async function readBytes(
  descriptor: number,
  size: number,
  limit: number,
  scratch?: Buffer,
): Promise<Buffer> {
  if (scratch !== undefined && size > 0 && size < Math.min(scratch.length, limit + 1)) {
    const bytesRead = readSync(descriptor, scratch, 0, scratch.length, 0);
    // A file that has another size, as on some network file systems, is read until its end.
    if (bytesRead === size) return scratch.subarray(0, size);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  let room = Math.min(size, limit) + 1;
  for (;;) {
    const buffer = Buffer.allocUnsafe(Math.max(room, 1));
    // Reading a small piece is faster than handing it to another thread.
    const bytesRead =
      buffer.length <= CHUNK_SIZE
        ? readSync(descriptor, buffer, 0, buffer.length, length)
        : (await readAt(descriptor, buffer, 0, buffer.length, length)).bytesRead;
    if (bytesRead > 0) chunks.push(buffer.subarray(0, bytesRead));
    length += bytesRead;
    if (bytesRead === 0 || length > limit) break;
    // Behind the expected end of a file, a small piece is enough.
    room = Math.min(bytesRead < buffer.length ? 1024 : CHUNK_SIZE, limit + 1 - length);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length);
}

/** Recognizes marked UTF-16 by the beginning of an open file. Returns undefined if that is binary. */
export async function encodingOfFile(descriptor: number): Promise<TextEncoding | undefined> {
  const { bytesRead, buffer } = await readAt(descriptor, Buffer.allocUnsafe(HEAD_SIZE), 0, HEAD_SIZE, 0);
  const head = buffer.subarray(0, bytesRead);
  const encoding = detectEncoding(head);
  return encoding === "utf-8" && hasNul(head) ? undefined : encoding;
}

/**
 * Reads one page of an open text file of any size. Lines before the page are only counted, those after it only as far
 * as that is cheap. `signal` ends a long way through a huge file. `encoding`: default UTF-8 or UTF-16 by its beginning.
 */
export async function readFilePage(
  path: string,
  descriptor: number,
  request: PageRequest,
  signal: AbortSignal | undefined,
  encoding?: TextEncoding,
): Promise<ReadResult> {
  const scanner = new PageScanner(request);
  const buffer = Buffer.allocUnsafe(CHUNK_SIZE);
  let position = 0;
  let inUtf8 = (bytes: Buffer): Buffer => bytes;
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead } = await readAt(descriptor, buffer, 0, buffer.length, position);
    const bytes = buffer.subarray(0, bytesRead);
    if (position === 0) inUtf8 = utf8Converter(bytes, encoding);
    position += bytesRead;
    try {
      const read = inUtf8(bytes);
      if (read.length > 0) scanner.add(read);
    } catch {
      return errors.unknownEncoding(path);
    }
    if (bytesRead === 0) scanner.end();
    if (scanner.isDone) break;
  }
  if (scanner.tooLongLine !== undefined) return errors.lineTooLong(path, scanner.tooLongLine, MAX_PAGE_SIZE);
  const content = decodeText(scanner.page(), "utf-8");
  if (content === undefined) return errors.unknownEncoding(path);
  const { lines, totalLines, more } = scanner;
  return pageResult(request, { content, lines, more, ...defined({ totalLines }) });
}

/** Changes the pieces of a file to UTF-8 without its byte order mark. Throws for bytes that are not in its encoding. */
function utf8Converter(
  beginning: Buffer,
  encoding: TextEncoding = detectEncoding(beginning),
): (bytes: Buffer) => Buffer {
  if (isOlder(encoding)) {
    const decode = openDecoder(encoding);
    return (bytes) => Buffer.from(decode(bytes), "utf8");
  }
  if (encoding === "utf-8") {
    const hasMark = beginning.subarray(0, MARK_OF_UTF8.length).equals(MARK_OF_UTF8);
    return (bytes) => (hasMark && bytes === beginning ? bytes.subarray(MARK_OF_UTF8.length) : bytes);
  }
  const decoder = new TextDecoder(encoding, { fatal: true });
  return (bytes) => Buffer.from(decoder.decode(bytes, { stream: bytes.length > 0 }), "utf8");
}

/** Finds the lines of a page in a stream of bytes and keeps nothing else. */
class PageScanner {
  readonly #request: PageRequest;
  readonly #kept: Buffer[] = [];
  /** Bytes of whole lines in the page, and of the line that is being read. */
  #complete = 0;
  #partial = 0;
  #line = 0;
  #ahead = 0;
  #isFull = false;
  lines = 0;
  totalLines: number | undefined;
  more = false;
  isDone = false;
  /** Number, from 1, of a first line that exceeds the size of a page. */
  tooLongLine: number | undefined;

  constructor(request: PageRequest) {
    this.#request = request;
    this.#isFull = request.limit === 0;
  }

  add(chunk: Buffer): void {
    let at = 0;
    let page = { start: 0, end: 0 };
    while (at < chunk.length && !this.isDone) {
      const feed = chunk.indexOf("\n", at);
      const next = feed === -1 ? chunk.length : feed + 1;
      if (this.#takes(next - at)) page = { start: page.end === 0 ? at : page.start, end: next };
      if (feed !== -1) this.#endLine();
      at = next;
    }
    // A copy, because the next chunk overwrites this one. A chunk can have 262,144 lines, so they are copied at once.
    if (page.end > 0) this.#kept.push(Buffer.from(chunk.subarray(page.start, page.end)));
    if (this.#isFull) {
      const isBehindPage = this.#partial > 0 || this.#line > this.#request.offset + this.lines;
      if (isBehindPage) this.more = true;
      this.#ahead += chunk.length;
      // Counts the lines of one more MiB.
      if (this.more && this.#ahead > 1024 * 1024) this.isDone = true;
    }
  }

  end(): void {
    if (this.isDone) return;
    if (this.#partial > 0) this.#endLine();
    this.totalLines = this.#line;
    this.more = this.#request.offset + this.lines < this.#line;
    this.isDone = true;
  }

  page(): Buffer {
    return Buffer.concat(
      this.#kept,
      this.#kept.reduce((sum, part) => sum + part.length, 0),
    ).subarray(0, this.#complete);
  }

  /** True if the next `bytes` of a line belong to the page. */
  #takes(bytes: number): boolean {
    this.#partial += bytes;
    if (this.#line < this.#request.offset || this.#isFull) return false;
    if (this.#complete + this.#partial > MAX_PAGE_SIZE) {
      if (this.lines === 0) {
        this.tooLongLine = this.#line + 1;
        this.isDone = true;
      }
      this.#isFull = true;
      return false;
    }
    return true;
  }

  #endLine(): void {
    if (this.#line >= this.#request.offset && !this.#isFull) {
      this.#complete += this.#partial;
      this.lines += 1;
      this.#isFull = this.lines >= this.#request.limit;
    }
    this.#partial = 0;
    this.#line += 1;
  }
}
