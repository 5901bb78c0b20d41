/**
 * Encodings of text files: UTF-8, UTF-16, and those of older files, which are detected.
 *
 * The libraries for older encodings are loaded by the first file that is not UTF-8.
 */
import { isAscii, isUtf8 } from "node:buffer";
import { createRequire } from "node:module";
import type Iconv from "iconv-lite";
import type { detectAll } from "jschardet";
import { orElse } from "../core/errors.ts";
import { decodeUtf8 } from "../core/utf8.ts";
import { hasNul } from "./mime.ts";
import older from "./older-encodings.json" with { type: "json" };

/**
 * An encoding of older files. The table has other names that files declare. Each encoding contains ASCII, and the older
 * standard on which it is based. Sources: https://encoding.spec.whatwg.org/encodings.json and, for Korean and Thai,
 * https://www.unicode.org/Public/MAPPINGS/VENDORS/MICSFT/WINDOWS/
 */
export type OlderEncoding = keyof typeof older;
export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be" | OlderEncoding;

const OLDER = Object.keys(older) as OlderEncoding[]; // the keys of the table
const BY_NAME = new Map(
  OLDER.flatMap((encoding) =>
    `${encoding} ${older[encoding]}`
      .trim()
      .split(" ")
      .map((name) => [name, encoding]),
  ),
);

export const isOlder = (encoding: string): encoding is OlderEncoding => Object.hasOwn(older, encoding);

const loadRequired = createRequire(import.meta.url);
const iconv = (): typeof Iconv => loadRequired("iconv-lite") as typeof Iconv; // its own types

export const BYTE_ORDER_MARK = "\ufeff";

/** UTF-16 by its byte order mark; else UTF-8. */
export function detectEncoding(bytes: Uint8Array): TextEncoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
}

/** UTF-16 without a mark, if half of its characters are ASCII: these have zeros on one side only. */
function unmarkedUtf16(bytes: Uint8Array): TextEncoding | undefined {
  const head = Buffer.from(bytes.subarray(0, 512)).toString("latin1");
  if (head.split("\0").length <= Math.max(4, head.length / 4)) return undefined;
  if (/^(?:[^\0][^])+$/.test(head)) return "utf-16le";
  return /^(?:[^][^\0])+$/.test(head) ? "utf-16be" : undefined;
}

/** The text of bytes, byte order mark included. Returns undefined for bytes that are not text of their encoding. */
export function decodeText(
  bytes: Uint8Array,
  encoding: TextEncoding = detectEncoding(bytes),
): string | undefined {
  if (encoding === "utf-8") return decodeUtf8(bytes);
  if (isOlder(encoding)) return decodeOlder(bytes, encoding);
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  return orElse(() => decoder.decode(bytes), undefined);
}

/** Decodes a text in pieces. An empty piece ends it. */
export function openDecoder(encoding: OlderEncoding): (bytes: Buffer) => string {
  // iconv-lite lacks this encoding.
  const decoder = encoding === "iso-2022-jp" ? new TextDecoder(encoding) : iconv().getDecoder(encoding);
  if (decoder instanceof TextDecoder) return (bytes) => decoder.decode(bytes, { stream: bytes.length > 0 });
  return (bytes) => (bytes.length > 0 ? decoder.write(bytes) : (decoder.end() ?? ""));
}

/** Bytes that the encoding does not have become U+FFFD. */
const decodeOlder = (bytes: Uint8Array, encoding: OlderEncoding): string => {
  const decode = openDecoder(encoding);
  return decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) + decode(Buffer.alloc(0));
};

/** Characters that the encoding does not have become `?`; see `findUnencodable`. */
export function encodeText(text: string, encoding: TextEncoding = "utf-8"): Buffer {
  if (encoding === "utf-8") return Buffer.from(text, "utf8");
  if (encoding === "iso-2022-jp")
    // The characters of JIS X 0208 are those of EUC-JP without their highest bits, between two escape sequences.
    return Buffer.from(
      text.replace(/[^\0-\u007f]+/g, (part) => {
        const bytes = iconv().encode(part, "euc-jp");
        return `\x1b$B${bytes.map((byte) => byte & 0x7f).toString()}\x1b(B`;
      }),
    );
  if (isOlder(encoding)) return iconv().encode(text, encoding);
  const bytes = Buffer.from(text, "utf16le");
  return encoding === "utf-16be" ? bytes.swap16() : bytes;
}

/** The first character of a text that an encoding does not have. */
export function findUnencodable(text: string, encoding: TextEncoding): string | undefined {
  const isKept = (part: string): boolean => decodeText(encodeText(part, encoding), encoding) === part;
  if (!isOlder(encoding) || isKept(text)) return undefined;
  for (const character of text) if (!isKept(character)) return character;
  return text;
}

/** The text of a file. */
export interface FileText {
  text: string;
  encoding: TextEncoding;
  /** Why the text must not be written back, as a clause. */
  doubt?: string;
}

/** Reads the text of a file. Returns undefined if it is binary or in an unknown encoding. */
export function readFileText(bytes: Uint8Array): FileText | undefined {
  const marked = detectEncoding(bytes);
  const encoding = marked === "utf-8" && hasNul(bytes) ? unmarkedUtf16(bytes) : marked;
  if (encoding === undefined) return undefined;
  const text = decodeText(bytes, encoding);
  if (encoding !== "utf-8")
    return text?.search(encoding === marked ? "\0" : CONTROL) === -1 ? { text, encoding } : undefined;
  if (text === undefined) return readOlderText(bytes);
  const escaped = mayBeIso2022(text) ? readOlderText(bytes) : undefined;
  return escaped?.encoding === "iso-2022-jp" ? escaped : { text, encoding };
}

/** True if a text has an escape sequence with which ISO-2022 changes to characters of two bytes. */
export const mayBeIso2022 = (text: string): boolean => text.includes("\x1b$");

/** The text of bytes in any of these encodings, without a byte order mark. Unreadable bytes are marked in it. */
export function anyText(bytes: Uint8Array): string {
  const text = readFileText(bytes)?.text ?? Buffer.from(bytes).toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Control characters that texts do not have. */
// oxlint-disable-next-line no-control-regex -- it matches control characters
const CONTROL = /[\0-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffe\uffff]/;

function readOlderText(bytes: Uint8Array): FileText | undefined {
  const latin1 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  // Lines in ASCII are the same in every encoding.
  const sample = latin1
    .split("\n")
    .filter((line) => BEYOND_ASCII.test(line))
    .map((line) => line.slice(Math.max(0, line.search(BEYOND_ASCII) - 200)))
    .join("\n")
    .slice(0, 16 * 1024);
  if ((sample.split(CONTROL).length - 1) * 50 > sample.length) return undefined;
  const isCut = !isUtf8(bytes) && isUtf8(Buffer.from(latin1.replace(CUT, ""), "latin1"));
  if (isBrokenUtf8(sample, isCut)) {
    const text = Buffer.from(bytes).toString();
    return { text, encoding: "utf-8", doubt: "some of its bytes are not UTF-8" };
  }
  // The form of declarations in XML, HTML, Python, Ruby, Emacs and Vim.
  const declaration = /(?:charset|coding)(?:\s{1,9}|\s{0,9}[:=]\s{0,9})["']?([\w.:-]{1,40})/i;
  const declared = BY_NAME.get(declaration.exec(latin1.slice(0, 1024))?.[1]?.toLowerCase() ?? "");
  const named = declared && inEncoding(bytes, declared);
  if (named !== undefined && named.doubt === undefined) return named;
  const guess = guessEncoding(Buffer.from(sample, "latin1"));
  if (guess === undefined) return undefined;
  const found = inEncoding(bytes, guess.encoding);
  return guess.isSure && !isCut ? found : { ...found, doubt: "its encoding is a guess" };
}

const BEYOND_ASCII = /[^\t\n\f\r -~]/;
/** Matches a UTF-8 character that is cut at the beginning or at the end. */
const CUT = /^[\x80-\xbf]{1,3}|(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})$/g;

/** True for text that is mostly UTF-8, or has a line of it among four, or is cut inside a character. */
function isBrokenUtf8(sample: string, isCut: boolean): boolean {
  const sequences = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/g;
  const valid = sample.match(sequences)?.join("").length ?? 0;
  if (valid > (sample.match(/[\x80-\xff]/g)?.length ?? 0) * 0.75) return true;
  const lines = sample.split("\n");
  const whole = lines.filter((line) => isUtf8(Buffer.from(line, "latin1"))).length;
  return valid > 0 && (whole * 4 > lines.length || isCut);
}

function inEncoding(bytes: Uint8Array, encoding: OlderEncoding): FileText {
  const text = decodeOlder(bytes, encoding);
  if (encodeText(text, encoding).equals(bytes)) return { text, encoding };
  return { text, encoding, doubt: `some of its bytes are not ${encoding.toUpperCase()}` };
}

/**
 * The most likely encoding. It is sure if the detector has confidence, at most half as much in any other reading;
 * a long text and Windows-1252, the most common encoding, need less (measured in decision 103).
 */
function guessEncoding(sample: Buffer): { encoding: OlderEncoding; isSure: boolean } | undefined {
  const detector = loadRequired("jschardet") as { detectAll: typeof detectAll }; // its own types
  const found = detector
    .detectAll(sample, { detectEncodings: OLDER })
    .flatMap(({ encoding: name, confidence }) => {
      const encoding = BY_NAME.get(name?.toLowerCase() ?? "");
      const text = encoding && decodeOlder(sample, encoding);
      // Texts have no control characters of the second half, as which standards of ISO read letters of Windows.
      if (encoding === undefined || text === undefined || /[\x80-\x9f]/.test(text)) return [];
      return [{ encoding, confidence, text }];
    });
  const [first] = found;
  if (first === undefined) return undefined;
  const { confidence, text } = first;
  const next = found.find((other) => other.text !== text)?.confidence ?? 0;
  const words = sample.toString("latin1").match(/[\x80-\xff]+/g) ?? [];
  const beyond = words.join("").length;
  // Its letters beyond ASCII seldom stand side by side.
  const isWestern = beyond < words.length * 1.5 && decodeOlder(sample, "windows-1252") === text;
  const margin = isWestern ? 1.3 : Math.min(2, 1 + 5 / Math.sqrt(beyond));
  const isLikely = confidence >= next * margin && (isWestern || beyond > 2);
  // Letters of Mac OS and DOS, which the detector does not look for, are capitals and signs inside of words then.
  const isSure = (isLikely || confidence >= 0.2) && !/\p{Ll}[ŸŠŽ§®¬¤]\p{L}/u.test(text);
  return { encoding: isWestern ? "windows-1252" : first.encoding, isSure };
}

/** The bytes of a text in UTF-8, and in each older encoding that has all of its characters. */
export function encodedForms(text: string): Buffer[] {
  const utf8 = Buffer.from(text);
  if (isAscii(utf8)) return [utf8];
  const older = OLDER.filter((encoding) => findUnencodable(text, encoding) === undefined);
  const forms = older.map((encoding) => encodeText(text, encoding).toString("latin1"));
  // Within a longer text ISO-2022 has no escape sequences here.
  // oxlint-disable-next-line no-control-regex -- it matches escape sequences
  const inner = forms.map((form) => form.replace(/^\x1b\$B|\x1b\(B$/g, ""));
  return [utf8, ...Array.from(new Set(inner), (form) => Buffer.from(form, "latin1"))];
}
