/** Encodings of text files. A byte order mark declares UTF-16, as tools on Windows write it; all other text is UTF-8. */
import { orElse } from "../core/errors.ts";
import { decodeUtf8 } from "../core/utf8.ts";
import { hasNul } from "./mime.ts";

export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be";

export const BYTE_ORDER_MARK = "\ufeff";

export function detectEncoding(bytes: Uint8Array): TextEncoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
}

/** The text of bytes, byte order mark included. Returns undefined for bytes that are not text of their encoding. */
export function decodeText(bytes: Uint8Array, encoding = detectEncoding(bytes)): string | undefined {
  if (encoding === "utf-8") return decodeUtf8(bytes);
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  return orElse(() => decoder.decode(bytes), undefined);
}

/** The characters from 0x80 to 0x9f in Windows-1252; `TextDecoder` of Node 20 reads them as Latin-1. */
const SIGNS = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

/**
 * The text of bytes that are not UTF-8 in Windows-1252, which includes Latin-1. Returns undefined if they look like
 * another encoding, because bytes beyond ASCII stand beside each other or mean control characters.
 */
export function westernText(bytes: Uint8Array): string | undefined {
  let beyond = 0;
  let letters = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x80) continue;
    beyond += 1;
    const isAlone = (bytes[at - 1] ?? 0) < 0x80 && (bytes[at + 1] ?? 0) < 0x80;
    if (isAlone && (byte >= 0xa0 || "€…‘’“”•–—™".includes(westernSign(byte)))) letters += 1;
  }
  // Some words have two accents in a row, so not every letter is alone.
  const isWestern = letters > beyond * 0.5 && !hasNul(bytes);
  return isWestern ? inWindows1252(Buffer.from(bytes).toString("latin1")) : undefined;
}

/** The text of bytes in any of these encodings, without a byte order mark. Unreadable bytes are marked in it. */
export function anyText(bytes: Uint8Array): string {
  const text = decodeText(bytes) ?? westernText(bytes) ?? Buffer.from(bytes).toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Windows-1252 text whose bytes were read as Latin-1. */
export const inWindows1252 = (latin1: string): string =>
  latin1.replaceAll(/[\x80-\x9f]/g, (sign) => westernSign(sign.charCodeAt(0)));

const westernSign = (byte: number): string => SIGNS.charAt(byte - 0x80);

export function encodeText(text: string, encoding: TextEncoding = "utf-8"): Buffer {
  if (encoding === "utf-8") return Buffer.from(text, "utf8");
  const bytes = Buffer.from(text, "utf16le");
  return encoding === "utf-16be" ? bytes.swap16() : bytes;
}

/** The text of a file; undefined if it is binary or in an unknown encoding. */
export function readFileText(bytes: Uint8Array): { text: string; encoding: TextEncoding } | undefined {
  const encoding = detectEncoding(bytes);
  const isBinary = encoding === "utf-8" && hasNul(bytes);
  const text = isBinary ? undefined : decodeText(bytes, encoding);
  return text === undefined || text.includes("\0") ? undefined : { text, encoding };
}
