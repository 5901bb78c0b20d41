import { type BackendFailure, climbingGlob, invalidGlob } from "./errors.ts";
import { GlobSyntaxError, type GlobToken, parseGlob } from "./glob-parser.ts";

/**
 * The one glob dialect of all backends and tools.
 *
 * `*` any run and `?` any one character of a name, `**` as a whole segment any number of directories,
 * `[a-z]` and `[!a-z]` sets, `{a,b}` alternatives (nested, at most 256), `\` takes the next character
 * literally, a leading `!` selects what the rest does not match. Dot files match like any other. Matching
 * takes time proportional to path and pattern; nothing is compiled to a backtracking expression.
 */

export interface GlobOptions {
  /** A pattern without `/` matches the file name at any depth, as grep filters do. Default false. */
  nameAtAnyDepth?: boolean;
  /** The pattern is written from the root (a leading `/` is allowed). Default false: such a pattern is refused. */
  fromRoot?: boolean;
}

export interface Glob {
  /** `path` is relative to the directory searched: no leading slash, no trailing one. */
  matches(path: string): boolean;
  /** False when nothing below `directory` (relative, no trailing slash) can match, so it need not be read. */
  reaches(directory: string): boolean;
}

export type GlobCompilation = { ok: true; glob: Glob } | ({ ok: false } & BackendFailure);

/** `literal` and `suffix` (of `*suffix`) are set when they say it all, and save the general matching. */
type Segment =
  | { globstar: true }
  | { globstar: false; literal?: string; suffix?: string; tokens: readonly GlobToken[] };

/** Reads a pattern once; an invalid or climbing one is an error value. */
export function compileGlob(pattern: string, options: GlobOptions = {}): GlobCompilation {
  const negated = pattern.startsWith("!");
  const body = negated ? pattern.slice(1) : pattern;
  const written = options.fromRoot === true && body.startsWith("/") ? body.slice(1) : body;
  if (written.startsWith("~")) return { ok: false, ...climbingGlob(pattern) };
  let alternatives: Segment[][];
  try {
    alternatives = parseGlob(written).map(toSegments);
  } catch (thrown) {
    if (thrown instanceof GlobSyntaxError) return { ok: false, ...invalidGlob(thrown.message) };
    throw thrown;
  }
  for (const segments of alternatives) {
    const literals = segments.map((segment) => (segment.globstar ? undefined : segment.literal));
    if (literals.includes("..")) return { ok: false, ...climbingGlob(pattern) };
    if (options.fromRoot !== true && segments.length > 1 && literals[0] === "") {
      return { ok: false, ...invalidGlob(`'${pattern}' is absolute; give the directory as path`) };
    }
  }
  const anyDepth = options.nameAtAnyDepth === true;
  const prepared = alternatives.map((segments): Segment[] =>
    anyDepth && segments.length === 1 ? [{ globstar: true }, ...segments] : withoutDots(segments),
  );
  return { ok: true, glob: negated ? complementOf(prepared) : unionOf(prepared) };
}

function unionOf(alternatives: readonly Segment[][]): Glob {
  return {
    matches: (path) => {
      const names = path.split("/");
      return alternatives.some((segments) => matchSegments(segments, names));
    },
    reaches: (directory) => {
      const names = directory === "" ? [] : directory.split("/");
      return alternatives.some((segments) => canMatchBelow(segments, names));
    },
  };
}

function complementOf(alternatives: readonly Segment[][]): Glob {
  const inner = unionOf(alternatives);
  return { matches: (path) => !inner.matches(path), reaches: () => true };
}

function toSegments(tokens: readonly GlobToken[]): Segment[] {
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

/** Drops `.` and doubled slashes; a trailing slash stays, and matches no file. */
function withoutDots(segments: readonly Segment[]): Segment[] {
  return segments.filter(
    (segment, index) =>
      segment.globstar ||
      (segment.literal !== "." && (segment.literal !== "" || index === segments.length - 1)),
  );
}

/** Wildcard matching over segments: only the last `**` is ever retried, which is enough and bounds the work. */
function matchSegments(segments: readonly Segment[], names: readonly string[]): boolean {
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
  // A final `**` stands for what is below a directory, and the names are used up: it must have taken one.
  while (segments[at]?.globstar === true && at < segments.length - 1) at += 1;
  return at === segments.length;
}

function canMatchBelow(segments: readonly Segment[], names: readonly string[]): boolean {
  for (const [index, name] of names.entries()) {
    const segment = segments[index];
    if (segment === undefined) return false;
    if (segment.globstar) return true;
    if (!matchName(segment, name)) return false;
  }
  return names.length < segments.length;
}

function matchName(segment: Segment & { globstar: false }, name: string): boolean {
  if (segment.literal !== undefined) return segment.literal === name;
  if (segment.suffix !== undefined) return name.endsWith(segment.suffix);
  return matchTokens(segment.tokens, [...name]);
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
