/** Texts of files: their characters, the bytes that characters make, and how a person sees them. */
import { isAscii } from "node:buffer";
import { type TextEncoding, detectEncoding, inWindows1252, readFileText } from "../backends/encoding.ts";
import { hasNul } from "../backends/mime.ts";
import type { Content } from "./content.ts";

/**
 * `bytes` is any encoding that includes ASCII, such as Windows-1252 or GBK: each character of the text is one byte, so
 * that no byte changes but those of the lines that are changed.
 */
export type Encoding = TextEncoding | "bytes";

export interface FileText {
  text: string;
  /** `ascii`: the same in UTF-8 and as bytes. */
  encoding: Encoding | "ascii";
}

/** Longest text, in bytes and lines, of which single hunks can be applied. */
const MOST_BYTES = 2_000_000;
const MOST_LINES = 250_000;

/** The text of a file; `undefined` if it is binary, or too long to compare. */
export function readText(content: Content | undefined): FileText | undefined {
  if (content?.kind !== "file" || isLong(content.bytes)) return undefined;
  const { bytes } = content;
  if (isAscii(bytes) && !hasNul(bytes)) return { text: bytes.toString("latin1"), encoding: "ascii" };
  const found = readFileText(bytes);
  if (found !== undefined || hasNul(bytes) || detectEncoding(bytes) !== "utf-8") return found;
  return { text: bytes.toString("latin1"), encoding: "bytes" };
}

export const isLongText = (bytes: Buffer): boolean => isLong(bytes) && !hasNul(bytes);

function isLong(bytes: Buffer): boolean {
  let lines = 0;
  if (bytes.length <= MOST_BYTES) for (const byte of bytes) if (byte === 0x0a) lines += 1;
  return bytes.length > MOST_BYTES || lines > MOST_LINES;
}

/** The encoding that texts can be merged in; `undefined`: they have different ones. */
export function commonEncoding(texts: readonly FileText[]): Encoding | undefined {
  const [first = "utf-8", second] = new Set(
    texts.map(({ encoding }) => encoding).filter((one) => one !== "ascii"),
  );
  return second === undefined ? first : undefined;
}

/** Characters as a person sees them. Bytes are shown as Windows-1252, which most older files are in. */
export const shown = (text: string, encoding: FileText["encoding"]): string =>
  encoding === "bytes" ? inWindows1252(text) : text;
