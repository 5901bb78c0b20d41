/** Reads the facts of media from their bytes, because names and content types are often wrong. */
import { Buffer } from "node:buffer";
import { trimEndOf } from "./text.ts";
import signatures from "./media-signatures.json" with { type: "json" };

type Sides = readonly [width: number, height: number];

export interface MediaFacts {
  /** Undefined if the bytes begin like no known media. */
  mimeType: string | undefined;
  size: number;
  /** Width and height in pixels. */
  sides?: Sides | undefined;
  /** Frames of a GIF. */
  frames?: number | undefined;
  /** Pages of a PDF, as far as they can be counted without unpacking it. */
  pages?: number | undefined;
  /** The defect that makes the file unreadable, as a clause. */
  damage?: string | undefined;
}

interface Format extends Pick<MediaFacts, "frames" | "pages"> {
  sides?: Sides | undefined;
  /** False if the end of the file is missing. */
  isWhole?: boolean;
}

/** Reads numbers and texts of a file. Those behind its end are 0 and empty. */
class Bytes {
  readonly all: Buffer;
  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.all = Buffer.from(buffer, byteOffset, byteLength);
  }
  text = (at: number, length: number): string => this.all.toString("latin1", at, at + length);
  big = (at: number, size: number): number => (this.#holds(at + size) ? this.all.readUIntBE(at, size) : 0);
  little = (at: number, size: number): number => (this.#holds(at + size) ? this.all.readUIntLE(at, size) : 0);
  #holds = (end: number): boolean => end <= this.all.length;
}

/**
 * Beginnings of media by type; the first that fits counts. A dot is any byte; the text behind a star may be anywhere
 * in the first 64 bytes, such as the brands of ISO base media behind `ftyp`.
 */
const MAGIC: Readonly<Record<string, readonly string[]>> = signatures;
const SVG = /^(?:\xef\xbb\xbf)?\s*(?:<!--(?:(?!-->)[^])*-->\s*|<(?:\?|!(?!--))[^>]*>\s*)*<svg[\s>]/i;

function detectType({ text }: Bytes): string | undefined {
  const head = text(0, 64);
  const fits = (pattern: string): boolean => {
    const [start = "", inside = ""] = pattern.split("*");
    return start.split("").every((byte, at) => byte === "." || byte === head[at]) && head.includes(inside);
  };
  const found = Object.keys(MAGIC).find((type) => MAGIC[type]?.some(fits));
  if (found !== undefined) return found;
  // A PDF may have other bytes before it, and an SVG other marks.
  if (text(0, 1024).includes("%PDF-")) return "application/pdf";
  return SVG.test(text(0, 1024)) ? "image/svg+xml" : undefined;
}

/** Readers of the facts in the header and the end of a file, by type. */
const READERS: Readonly<Record<string, (bytes: Bytes) => Format>> = {
  "image/png": ({ all, big }) => ({ sides: [big(16, 4), big(20, 4)], isWhole: all.includes("IEND") }),
  "image/jpeg": ({ all, big }) => {
    let sides: Sides = [0, 0];
    let at = 2;
    for (; all[at] === 0xff && all[at + 1] !== 0xda; at += 2 + big(at + 2, 2)) {
      const mark = big(at + 1, 1);
      const isFrame = mark >= 0xc0 && mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark);
      if (isFrame) sides = [big(at + 7, 2), big(at + 5, 2)];
      while (all[at + 1] === 0xff) at += 1;
    }
    return { sides, isWhole: all.lastIndexOf("\xff\xd9", undefined, "latin1") >= at };
  },
  "image/gif": ({ all, little }) => {
    const table = (flags = 0): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
    let frames = 0;
    let at = 13 + table(all[10]);
    for (; all[at] === 0x21 || all[at] === 0x2c; at += 1) {
      if (all[at] === 0x2c) frames += 1;
      at += all[at] === 0x21 ? 2 : 11 + table(all[at + 9]);
      for (let size = all[at] ?? 0; size > 0; size = all[at] ?? 0) at += size + 1;
    }
    return { sides: [little(6, 2), little(8, 2)], isWhole: all[at] === 0x3b && frames > 0, frames };
  },
  "image/webp": (bytes) => ({ sides: webpSides(bytes), isWhole: bytes.all.length >= bytes.little(4, 4) + 8 }),
  "image/bmp": ({ all, little }) => ({
    sides: all[14] === 12 ? [little(18, 2), little(20, 2)] : [little(18, 4), Math.abs(little(22, 4) | 0)],
  }),
  "image/x-icon": ({ all }) => ({ sides: [all[6] || 256, all[7] || 256] }),
  "image/avif": heif,
  "image/heic": heif,
  "image/heif": heif,
  "application/pdf": ({ all }) => ({
    isWhole: all.includes("%%EOF"),
    pages: all.toString("latin1").match(/\/Type\s*\/Page(?![a-z])/gi)?.length ?? 0,
  }),
};

function webpSides({ text, little }: Bytes): Sides {
  if (text(12, 4) === "VP8X") return [little(24, 3) + 1, little(27, 3) + 1];
  if (text(12, 4) !== "VP8L") return [little(26, 2) & 0x3fff, little(28, 2) & 0x3fff];
  const bits = little(21, 4);
  return [(bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1];
}

function heif({ all, big }: Bytes): Format {
  const at = all.subarray(0, 65_536).indexOf("ispe");
  return at < 0 ? {} : { sides: [big(at + 8, 4), big(at + 12, 4)] };
}

/** Reads the facts of a file. `claimed`, a type by name, decides only between sound and film in one container. */
export function mediaFacts(given: Uint8Array, claimed = ""): MediaFacts {
  const bytes = new Bytes(given);
  const size = bytes.all.length;
  if (size === 0) return { mimeType: undefined, size, damage: "it is empty (0 bytes)" };
  const found = detectType(bytes);
  if (found === undefined) return { mimeType: undefined, size };
  const isTwin = /^(?:audio|video)\//.test(claimed) && claimed.split("/")[1] === found.split("/")[1];
  const { isWhole = true, ...facts } = READERS[found]?.(bytes) ?? {};
  const [width, height] = facts.sides ?? [1, 1];
  // Longer sides, and more pixels, are mistakes or attacks.
  const isPossible =
    Math.min(width, height) > 0 && Math.max(width, height) <= 100_000 && width * height <= 1e9;
  const wrongSize = isPossible ? undefined : `its header says ${width} × ${height} pixels`;
  const damage = isWhole ? wrongSize : "it is cut off, its end is missing";
  return { mimeType: isTwin ? claimed : found, size, ...facts, damage };
}

/** Decodes base64 in any of its spellings; `undefined` for anything else. */
export function fileBytes(data: string | Uint8Array): Uint8Array | undefined {
  if (typeof data !== "string") return data;
  const compact = trimEndOf(data.replace(/^data:[^,]*,|\s+/g, ""), "=");
  const bytes = Buffer.from(compact, "base64");
  return bytes.length === Math.floor((compact.length * 3) / 4) ? bytes : undefined;
}

/** The content block that carries media of a type; `undefined` for types that no model takes. */
export const mediaKind = (mimeType: string): "image" | "audio" | "video" | "file" | undefined => {
  const kind = mimeType.split("/")[0];
  if (kind === "image" || kind === "audio" || kind === "video") return kind;
  return mimeType === "application/pdf" ? "file" : undefined;
};

const inMegabytes = (size: number): string => `${(size / 1024 ** 2).toFixed(1)} MB`;

/** Media in a few words, such as `image/png, 640 × 480 px, 12 kB`. */
export function describeMedia({ mimeType, size, sides }: MediaFacts, claimed: string): string {
  const small = size < 1024 ? `${size} bytes` : `${Math.ceil(size / 1024)} kB`;
  const pixels = sides ? [`${sides.join(" × ")} px`] : [];
  return [mimeType ?? claimed, ...pixels, size < 1024 ** 2 ? small : inMegabytes(size)].join(", ");
}

/** The media that a model takes. Absent limits are unknown or none. */
export interface MediaLimits {
  accepts(mimeType: string): boolean;
  /** Characters of base64 of one image, and of one PDF. */
  image?: number;
  pdf?: number;
  /** Longest side of an image in pixels. */
  side?: number;
  pages?: number;
  /** Frames of a GIF. */
  frames?: number;
}

/** Explains why a model cannot be shown media, and the next step. Returns undefined if it can. */
export function mediaProblem(facts: MediaFacts, limits: MediaLimits): string | undefined {
  const { mimeType, damage, size, sides = [0, 0], pages = 0, frames = 0 } = facts;
  const { image = Infinity, pdf = Infinity, side = Infinity } = limits;
  if (damage !== undefined) return `It cannot be read: ${damage}. Create it or fetch it again.`;
  if (mimeType === undefined)
    return "Its bytes are not an image, audio, video or PDF. Fetch it again, or read it as its real type.";
  const isPdf = mimeType === "application/pdf";
  const isImage = mediaKind(mimeType) === "image";
  if (!limits.accepts(mimeType))
    return isImage && limits.accepts("image/png")
      ? `The model does not accept this format. Convert it to PNG${BY_COMMAND}`
      : `The model does not accept ${isPdf ? "PDF files" : isImage ? "images" : mediaKind(mimeType)}. Extract what you need as text${BY_COMMAND}`;
  if (frames > (limits.frames ?? Infinity))
    return `The model does not accept animated GIFs. Save a frame as PNG${BY_COMMAND}`;
  const most = isPdf ? pdf : isImage ? image : Infinity;
  const smaller = `${isPdf ? "Split it or extract its text" : "Make it smaller"}${BY_COMMAND}`;
  if (Math.ceil(size / 3) * 4 > most)
    return `The model accepts up to ${inMegabytes((most * 3) / 4)}. ${smaller}`;
  if (Math.max(...sides) > side) return `The model accepts at most ${side} pixels per side here. ${smaller}`;
  return pages > (limits.pages ?? Infinity)
    ? `The model takes ${limits.pages} pages, not ${pages}. ${smaller}`
    : undefined;
}

const BY_COMMAND = ", with a command if you can run one, and read that.";
