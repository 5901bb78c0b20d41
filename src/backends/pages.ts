import type { ReadResult } from "./backend.ts";
import { lineTooLong, offsetPastEnd } from "./errors.ts";
import { BYTE_ORDER_MARK } from "./text-edit.ts";

/** Lines of a page when the caller names no number. */
export const DEFAULT_READ_LIMIT = 2000;
/** Largest page, in bytes of a stream or UTF-16 units of a string. */
export const MAX_PAGE_SIZE = 10 * 1024 * 1024;
/** Largest binary file that is read whole for display. */
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

/** What a page of text is besides its content; the one place that decides about ends and offsets. */
export interface PageFacts {
  content: string;
  /** Lines in `content`. */
  lines: number;
  /** Lines of the whole file, when known. */
  totalLines?: number;
  more: boolean;
}

export function pageResult(request: PageRequest, page: PageFacts): ReadResult {
  const { offset } = request;
  if (page.totalLines !== undefined && offset > 0 && offset >= page.totalLines) {
    return offsetPastEnd(offset, page.totalLines);
  }
  const endLine = offset + page.lines;
  return {
    content: page.content,
    startLine: offset,
    endLine,
    ...(page.totalLines === undefined ? {} : { totalLines: page.totalLines }),
    ...(page.more ? { nextOffset: endLine } : {}),
  };
}

/** One page of text held in memory. */
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
      return lineTooLong(path, line + 1, MAX_PAGE_SIZE);
    }
    at = next;
  }
  const content = lines === 0 ? "" : body.slice(start, end);
  return pageResult(request, { content, lines, totalLines: line, more: request.offset + lines < line });
}
