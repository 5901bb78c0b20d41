/** The smallest files of each media type that its readers look at, put together here byte by byte. */
import { Buffer } from "node:buffer";

type Part = string | readonly number[];
const latin = (text: string): Buffer => Buffer.from(text, "latin1");
const of = (...parts: Part[]): Uint8Array =>
  new Uint8Array(
    Buffer.concat(parts.map((part) => (typeof part === "string" ? latin(part) : Buffer.from(part)))),
  );
const big = (value: number, size = 4): number[] =>
  [...Buffer.alloc(size).fill(0)].map((_, at) => (value >>> (8 * (size - 1 - at))) & 0xff);
const little = (value: number, size = 4): number[] => big(value, size).reverse();

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

/** A PNG whose header says this size. */
export const png = (width: number, height: number): Uint8Array =>
  of(
    "\x89PNG\r\n\x1a\n",
    big(13),
    "IHDR",
    big(width),
    big(height),
    [8, 6, 0, 0, 0],
    big(0),
    big(0),
    "IDAT",
    big(0),
    big(0),
    "IEND",
    big(0),
  );

/** A JPEG with a thumbnail that has an end of its own, before the frame. */
export const jpeg = (width: number, height: number, end = "\xff\xd9"): Uint8Array =>
  of(
    "\xff\xd8\xff\xe1",
    big(8, 2),
    "\xff\xd8\xff\xd9\0\0",
    "\xff\xc0",
    big(8, 2),
    [8],
    big(height, 2),
    big(width, 2),
    [1],
    "\xff\xda",
    big(2, 2),
    "\x12\x34",
    end,
  );

const frame = (width: number, height: number): number[] => [
  0x2c,
  ...little(0),
  ...little(width, 2),
  ...little(height, 2),
  0,
  2,
  1,
  0x4c,
  0,
];

export const gif = (width: number, height: number, frames = 1, end = ";"): Uint8Array =>
  of(
    "GIF89a",
    little(width, 2),
    little(height, 2),
    [0x80, 0, 0],
    [0, 0, 0, 255, 255, 255],
    "\x21\xf9\x04\0\0\0\0\0",
    ...Array.from({ length: frames }, () => frame(width, height)),
    end,
  );

const riff = (kind: string, ...parts: Part[]): Uint8Array => {
  const body = of(kind, ...parts);
  return of("RIFF", little(body.length), [...body]);
};
const ftyp = (major: string, ...brands: string[]): Uint8Array =>
  of(big(16 + 4 * brands.length), "ftyp", major, big(0), ...brands);
const heif = (major: string, ...brands: string[]): Uint8Array =>
  of([...ftyp(major, ...brands)], big(20), "ispe", big(0), big(3), big(2));

/** One whole file of each type; images are 3 × 2 pixels. */
export const FILES = {
  "image/png": png(3, 2),
  "image/jpeg": jpeg(3, 2),
  "image/gif": gif(3, 2),
  "image/webp": riff("WEBP", "VP8X", little(10), little(0), little(2, 3), little(1, 3)),
  "image/bmp": of("BM", little(58), little(0), little(54), little(40), little(3), little(2), little(0)),
  "image/tiff": of("II*\0", little(8)),
  "image/x-icon": of("\0\0\x01\0\x01\0", [3, 2, 0, 0]),
  "image/avif": heif("mif1", "avif"),
  "image/heic": heif("heic", "mif1"),
  "image/heif": heif("mif1"),
  "application/pdf": of("%PDF-1.4\n1 0 obj<</Type/Page>>endobj\n/Type/Pages\n%%EOF\n"),
  "audio/mpeg": of("ID3\x04\0\0", big(0)),
  "audio/wav": riff("WAVE", "fmt ", little(0)),
  "audio/ogg": of("OggS", big(0)),
  "audio/flac": of("fLaC", big(0)),
  "audio/mp4": ftyp("M4A ", "isom"),
  "audio/aac": of([0xff, 0xf1, 0x50, 0]),
  "audio/aiff": of("FORM", big(4), "AIFF"),
  "video/mp4": ftyp("isom", "mp42"),
  "video/quicktime": ftyp("qt  "),
  "video/webm": of("\x1aE\xdf\xa3\x9f\x42\x82\x84webm"),
  "video/x-matroska": of("\x1aE\xdf\xa3\x9f\x42\x82\x88matroska"),
  "video/x-msvideo": riff("AVI ", "LIST"),
  "video/mpeg": of("\0\0\x01\xba", big(0)),
  "image/svg+xml": of('<?xml version="1.0"?>\n<!-- a > b -->\n<svg xmlns="http://www.w3.org/2000/svg"/>'),
} as const satisfies Readonly<Record<string, Uint8Array>>;

/** The other ways in which a WebP says its size. */
export const WEBP = {
  lossy: riff("WEBP", "VP8 ", little(10), [0, 0, 0, 0x9d, 0x01, 0x2a], little(3, 2), little(2, 2)),
  lossless: riff("WEBP", "VP8L", little(5), [0x2f], little(2 | (1 << 14))),
};
