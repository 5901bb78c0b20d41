/** Encodings of text files. A byte order mark declares UTF-16, as tools on Windows write it; all other text is UTF-8. */
import { orElse } from "../core/errors.ts";
import { decodeUtf8 } from "../core/utf8.ts";
import { hasNul } from "./mime.ts";

export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be";

export const BYTE_ORDER_MARK = "\ufeff";

export function encodingOf(bytes: Uint8Array): TextEncoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
}

/** The text of bytes, byte order mark included. Gives undefined for bytes that are not text of their encoding. */
export function decodeText(bytes: Uint8Array, encoding = encodingOf(bytes)): string | undefined {
  if (encoding === "utf-8") return decodeUtf8(bytes);
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  return orElse(() => decoder.decode(bytes), undefined);
}

export function encodeText(text: string, encoding: TextEncoding = "utf-8"): Buffer {
  if (encoding === "utf-8") return Buffer.from(text, "utf8");
  const bytes = Buffer.from(text, "utf16le");
  return encoding === "utf-16be" ? bytes.swap16() : bytes;
}

/** The text of a file; undefined if it is binary or in an unknown encoding. */
export function textOf(bytes: Uint8Array): { text: string; encoding: TextEncoding } | undefined {
  const encoding = encodingOf(bytes);
  const isBinary = encoding === "utf-8" && hasNul(bytes);
  const text = isBinary ? undefined : decodeText(bytes, encoding);
  return text === undefined || text.includes("\0") ? undefined : { text, encoding };
}
