import type { Glob } from "../glob/glob.ts";
import type { Segment } from "../glob/match.ts";
import type { GlobToken } from "../glob/parser.ts";

/** Each is matched against every file. */
const MAX_GLOBS = 32;

/**
 * Globs of ripgrep that together pass at least what this one matches; what else they pass is left to it.
 * Undefined where they would pass everything.
 */
export function toRipgrepGlobs({ alternatives }: Glob): string[] | undefined {
  if (alternatives === undefined || alternatives.length > MAX_GLOBS) return undefined;
  const globs = alternatives.map((segments) => `/${segments.map(segmentText).join("/")}`);
  return globs.includes("/**/*") ? undefined : globs;
}

const segmentText = (segment: Segment): string =>
  segment.globstar ? "**" : segment.tokens.map(tokenText).join("").replace(/\*+/g, "*");

const PLAIN = /^[\w.-]$/;
const isPlain = (code: number): boolean => PLAIN.test(String.fromCodePoint(code));

/** ripgrep's `?` and `[…]` are one byte, ours one character; `*` is both. */
function tokenText(token: GlobToken): string {
  if (token.kind === "char" && PLAIN.test(token.value)) return token.value;
  if (token.kind !== "class" || token.negated) return "*";
  const ranges = token.ranges.map(([low, high]) => {
    const isWordLike = isPlain(low) && isPlain(high) && low !== DASH && high !== DASH;
    return isWordLike ? `${String.fromCodePoint(low)}-${String.fromCodePoint(high)}` : undefined;
  });
  return ranges.includes(undefined) ? "*" : `[${ranges.join("")}]`;
}

const DASH = 0x2d;
