/** Texts of files: their characters, the bytes that characters make, and how a person sees them. */
import { isAscii } from "node:buffer";
import type { TextEncoding } from "../backends/encoding.ts";
import { decodeText, detectEncoding, encodeText, isOlder, readFileText } from "../backends/encoding.ts";
import { hasNul } from "../backends/mime.ts";
import type { Content } from "./content.ts";
import { UNENDED, diffCut, displayDiffLine, hunkHeader } from "../core/diff.ts";
import { type Hunk as LineChange, signedLines } from "../core/hunks.ts";
import { displayName } from "../core/text.ts";
import type { ProposedPlace } from "../runs/proposals.ts";

export interface FileText {
  /** In an older encoding, each character is one byte, so that no byte changes but those of the changed lines. */
  text: string;
  /** `ascii`: the same in UTF-8 and as bytes. */
  encoding: TextEncoding | "ascii";
}

/** Longest text, in bytes and lines, of which single hunks can be applied. */
const MOST_BYTES = 2_000_000;

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
  return bytes.length > MOST_BYTES || lines > 250_000;
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

/** The text of lines. Only the last one may have no line break. */
export function joinLines(lines: readonly string[]): string {
  const ended = lines.map((line) => (line.endsWith(UNENDED) ? line.slice(0, -UNENDED.length) : line));
  return ended.join("\n") + (lines.length === 0 || lines.at(-1)?.endsWith(UNENDED) ? "" : "\n");
}

/** Characters of one file. */
export const MOST_CHARS = 400_000;

/**
 * The diff of changes that stand close to each other, as it is displayed. `room`: its longest length; `Infinity`: all
 * of it, and whoever shows it displays it. `isNew`: there was no file before.
 */
export function hunkDiff(
  { path, from = path, encoding = "utf-8" }: { path: string; from?: string; encoding?: TextEncoding },
  base: readonly string[],
  changes: readonly LineChange[],
  { room, isNew = false }: { room: number; isNew?: boolean },
): Omit<ProposedPlace, "conflict"> {
  const { start, lines: signed, added, removed } = signedLines(base, changes, 3);
  const count = signed.length - added;
  const head = [
    `--- ${isNew ? "/dev/null" : displayName(from)}`,
    `+++ ${displayName(path)}`,
    hunkHeader(start + 1, count, start + 1, count - removed + added),
  ];
  // Carriage returns are left out if all lines have one.
  const isCrlf = signed.every((line) => line.endsWith("\r"));
  const lines = isCrlf ? signed.map((line) => line.slice(0, -1)) : signed;
  if (room === Infinity)
    return { diff: [...head, ...lines].map((line) => shown(line, encoding)).join("\n"), added, removed };
  const diff = [...head];
  let used = 0;
  for (const [index, line] of lines.entries()) {
    const text = shown(line, encoding).split("\n").map(displayDiffLine).join("\n");
    used += text.length + 1;
    if (used > room) {
      const cut = [...diff, diffCut(lines.length - index)].join("\n");
      return { diff: cut, isPart: true, added, removed };
    }
    diff.push(text);
  }
  return { diff: diff.join("\n"), added, removed };
}
