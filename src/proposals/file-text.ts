/** Texts of files: their characters, the bytes that characters make, and how a person sees them. */
import { isAscii } from "node:buffer";
import {
  type TextEncoding,
  decodeText,
  detectEncoding,
  encodeText,
  isOlder,
  readFileText,
} from "../backends/encoding.ts";
import { hasNul } from "../backends/mime.ts";
import type { Content } from "./content.ts";

export interface FileText {
  /** In an older encoding, each character is one byte, so that no byte changes but those of the changed lines. */
  text: string;
  /** `ascii`: the same in UTF-8 and as bytes. */
  encoding: TextEncoding | "ascii";
}

/** Longest text, in bytes and lines, of which single hunks can be applied. */
const MOST_BYTES = 2_000_000;
const MOST_LINES = 250_000;

/** The text of a file; `undefined` if it is binary, or too long to compare. */
export function readText(content: Content | undefined): FileText | undefined {
  if (content?.kind !== "file" || isLong(content.bytes)) return undefined;
  const { bytes } = content;
  if (isAscii(bytes) && !hasNul(bytes)) return { text: bytes.toString("latin1"), encoding: "ascii" };
  const { text, encoding = "windows-1252", doubt } = readFileText(bytes) ?? {};
  if (text !== undefined && !isOlder(encoding) && doubt === undefined) return { text, encoding };
  if (hasNul(bytes) || detectEncoding(bytes) !== "utf-8") return undefined;
  return { text: bytes.toString("latin1"), encoding: isOlder(encoding) ? encoding : "windows-1252" };
}

export const isLongText = (bytes: Buffer): boolean => isLong(bytes) && !hasNul(bytes);

function isLong(bytes: Buffer): boolean {
  let lines = 0;
  if (bytes.length <= MOST_BYTES) for (const byte of bytes) if (byte === 0x0a) lines += 1;
  return bytes.length > MOST_BYTES || lines > MOST_LINES;
}

/**
 * The encoding that texts can be merged in; `undefined`: they have different ones. Older encodings are guesses and
 * merged as bytes.
 */
export function commonEncoding(texts: readonly FileText[]): TextEncoding | undefined {
  const encodings = texts.map(({ encoding }) => encoding).filter((one) => one !== "ascii");
  const [first = "utf-8"] = encodings;
  return encodings.every((one) => one === first || (isOlder(one) && isOlder(first))) ? first : undefined;
}

/** Characters as a person sees them. */
export const shown = (text: string, encoding: FileText["encoding"]): string =>
  isOlder(encoding) ? (decodeText(Buffer.from(text, "latin1"), encoding) ?? text) : text;

/** The bytes that a text of these characters stands for. */
export const bytesOfText = (text: string, encoding: TextEncoding): Buffer =>
  isOlder(encoding) ? Buffer.from(text, "latin1") : encodeText(text, encoding);
