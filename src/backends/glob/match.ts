import type { GlobToken } from "./parser.ts";

/** `literal` and `suffix` (of `*suffix`) are set when they say it all, and save the general matching. */
export type Segment =
  | { globstar: true }
  | { globstar: false; literal?: string; suffix?: string; tokens: readonly GlobToken[] };

export function toSegments(tokens: readonly GlobToken[]): Segment[] {
  const segments: GlobToken[][] = [[]];
  for (const token of tokens) {
    if (token.kind === "slash") segments.push([]);
    else segments.at(-1)?.push(token);
  }
  return segments.map(toSegment);
}

function toSegment(tokens: readonly GlobToken[]): Segment {
  if (tokens.length >= 2 && tokens.every(({ kind }) => kind === "star")) return { globstar: true };
  const literal = literalOf(tokens);
  if (literal !== undefined) return { globstar: false, tokens, literal };
  const suffix = tokens[0]?.kind === "star" ? literalOf(tokens.slice(1)) : undefined;
  return suffix === undefined ? { globstar: false, tokens } : { globstar: false, tokens, suffix };
}

function literalOf(tokens: readonly GlobToken[]): string | undefined {
  return tokens.every((token) => token.kind === "char")
    ? tokens.map((token) => token.value).join("")
    : undefined;
}

/** Wildcard matching over segments: only the last `**` is ever retried, which is enough and bounds the work. */
export function matchSegments(segments: readonly Segment[], names: readonly string[]): boolean {
  let at = 0;
  let name = 0;
  let retryAt = -1;
  let retryName = 0;
  while (name < names.length) {
    const segment = segments[at];
    if (segment?.globstar === true) {
      retryAt = at;
      retryName = name;
      at += 1;
    } else if (segment !== undefined && matchName(segment, names[name] ?? "")) {
      at += 1;
      name += 1;
    } else if (retryAt !== -1) {
      retryName += 1;
      at = retryAt + 1;
      name = retryName;
    } else {
      return false;
    }
  }
  return at === segments.length;
}

/** For `**` and one more segment, which is about the file name alone: what decides it. */
export function nameMatcher(segments: readonly Segment[]): ((name: string) => boolean) | undefined {
  const [first, second] = segments;
  const isAboutName = segments.length === 2 && first?.globstar === true && second?.globstar === false;
  return isAboutName ? (name) => matchName(second, name) : undefined;
}

/**
 * What is left of a pattern below a directory: each result, matched against the rest of a path, decides
 * like the whole pattern against the whole path. None: nothing below can match.
 */
export function segmentsBelow(segments: readonly Segment[], names: readonly string[]): Segment[][] {
  let positions = new Set([0]);
  for (const name of names) {
    const next = new Set<number>();
    for (const position of positions) {
      for (let at = position; at < segments.length; at += 1) {
        const segment = segments[at];
        if (segment?.globstar === true) {
          next.add(at);
          continue; // `**` may also take nothing: the next segment gets its try.
        }
        if (segment !== undefined && matchName(segment, name)) next.add(at + 1);
        break;
      }
    }
    positions = next;
  }
  return [...positions].filter((at) => at < segments.length).map((at) => segments.slice(at));
}

function matchName(segment: Segment & { globstar: false }, name: string): boolean {
  if (segment.literal !== undefined) return segment.literal === name;
  if (segment.suffix !== undefined) return name.endsWith(segment.suffix);
  return matchTokens(segment.tokens, Array.from(name));
}

function matchTokens(tokens: readonly GlobToken[], characters: readonly string[]): boolean {
  let at = 0;
  let index = 0;
  let retryAt = -1;
  let retryIndex = 0;
  while (index < characters.length) {
    const token = tokens[at];
    if (token?.kind === "star") {
      retryAt = at;
      retryIndex = index;
      at += 1;
    } else if (token !== undefined && matchCharacter(token, characters[index] ?? "")) {
      at += 1;
      index += 1;
    } else if (retryAt !== -1) {
      retryIndex += 1;
      at = retryAt + 1;
      index = retryIndex;
    } else {
      return false;
    }
  }
  while (tokens[at]?.kind === "star") at += 1;
  return at === tokens.length;
}

function matchCharacter(token: GlobToken, character: string): boolean {
  if (token.kind === "char") return token.value === character;
  if (token.kind === "any") return true;
  if (token.kind !== "class") return false;
  const code = character.codePointAt(0) ?? -1;
  return token.ranges.some(([low, high]) => low <= code && code <= high) !== token.negated;
}

/** The segments written as a pattern again. */
export const toPattern = (segments: readonly Segment[]): string =>
  segments.map((segment) => (segment.globstar ? "**" : segment.tokens.map(tokenText).join(""))).join("/");

const SPECIAL = /[*?[\]{},!\\~]/;

function tokenText(token: GlobToken): string {
  switch (token.kind) {
    case "char":
      return SPECIAL.test(token.value) ? `\\${token.value}` : token.value;
    case "any":
      return "?";
    case "star":
      return "*";
    case "slash":
      return "/";
    case "class": {
      const member = (code: number): string => `\\${String.fromCodePoint(code)}`;
      const ranges = token.ranges.map(([low, high]) =>
        low === high ? member(low) : `${member(low)}-${member(high)}`,
      );
      return `[${token.negated ? "!" : ""}${ranges.join("")}]`;
    }
  }
}
