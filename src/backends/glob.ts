import { type BackendFailure, errors } from "./errors.ts";

/** One element of a pattern segment. */
export type GlobToken =
  | { kind: "char"; value: string }
  | { kind: "any" }
  | { kind: "star" }
  | { kind: "class"; negated: boolean; ranges: readonly (readonly [number, number])[] }
  | { kind: "slash" };

type Part = GlobToken | { kind: "group"; options: Part[][] };

class GlobSyntaxError extends Error {}

const MAX_PATTERN_LENGTH = 1000;
const MAX_DEPTH = 16;
const MAX_ALTERNATIVES = 256;

/** The alternatives a pattern stands for, braces expanded. Throws `GlobSyntaxError`, whose message is the reason. */
function parseGlob(pattern: string): GlobToken[][] {
  if (pattern === "") throw new GlobSyntaxError("the pattern is empty");
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new GlobSyntaxError(`the pattern is longer than ${MAX_PATTERN_LENGTH} characters`);
  if (pattern.includes("\0")) throw new GlobSyntaxError("the pattern contains a NUL character");
  const signs = pattern.match(SIGN) ?? [];
  return expand(parseSequence(signs[Symbol.iterator](), 0).parts);
}

/**
 * A set in brackets, an escaped character, or any other character. The first member of a set may be `]`, and only the
 * end of a range may be `/`. There is one way to read a text, so nothing is tried again.
 */
const SIGN = /\[(?:[!^]|(?=[^!^]))(?:\\[^]|[^\\/])(?:\\[^]|-\/|[^\]\\/])*\]|\\[^]|[^]/gu;

/** Reads up to the end, or inside braces up to the `,` or `}` that ends the alternative. */
function parseSequence(signs: Iterator<string, undefined>, depth: number): { parts: Part[]; end?: string } {
  const parts: Part[] = [];
  for (let sign = signs.next().value; sign !== undefined; sign = signs.next().value) {
    if (depth > 0 && (sign === "," || sign === "}")) return { parts, end: sign };
    parts.push(sign === "{" ? parseGroup(signs, depth + 1) : toToken(sign));
  }
  return { parts };
}

function parseGroup(signs: Iterator<string, undefined>, depth: number): Part {
  if (depth > MAX_DEPTH) throw new GlobSyntaxError(`braces are nested more than ${MAX_DEPTH} deep`);
  const options: Part[][] = [];
  for (;;) {
    const { parts, end } = parseSequence(signs, depth);
    options.push(parts);
    if (end === undefined) throw new GlobSyntaxError("a '{' is not closed");
    if (end === "}") return { kind: "group", options };
  }
}

function toToken(sign: string): GlobToken {
  if (sign === "*") return { kind: "star" };
  if (sign === "?") return { kind: "any" };
  if (sign === "/" || sign === "\\/") return { kind: "slash" };
  if (sign === "[") throw new GlobSyntaxError("a '[' is not closed");
  if (sign === "\\") throw new GlobSyntaxError("the pattern ends in a backslash");
  return sign.startsWith("[") ? parseSet(sign) : { kind: "char", value: sign.replace(/^\\/, "") };
}

function parseSet(sign: string): GlobToken {
  const [, mark, members = ""] = /^\[([!^]?)([^]*)\]$/.exec(sign) ?? [];
  const code = (member = ""): number => member.replace(/^\\/, "").codePointAt(0) ?? 0;
  const ranges = Array.from(members.matchAll(MEMBER), ([, from, to = from]): [number, number] => {
    if (from === "/") throw new GlobSyntaxError("a '[' is not closed");
    return [code(from), code(to)];
  });
  if (ranges.some(([low, high]) => high < low)) throw new GlobSyntaxError("a range in brackets is reversed");
  return { kind: "class", negated: mark !== "", ranges };
}

/** A character of a set, or a range. */
const MEMBER = /(\\[^]|[^])(?:-(\\[^]|[^]))?/gu;

function expand(parts: readonly Part[]): GlobToken[][] {
  let results: GlobToken[][] = [[]];
  for (const part of parts) {
    const tails = part.kind === "group" ? part.options.flatMap(expand) : [[part]];
    if (results.length * tails.length > MAX_ALTERNATIVES)
      throw new GlobSyntaxError(`the braces expand to more than ${MAX_ALTERNATIVES} patterns`);
    results = results.flatMap((head) => tails.map((tail) => [...head, ...tail]));
  }
  return results;
}

/** `literal` is set if the segment is one name. */
type Segment =
  | { globstar: true }
  | { globstar: false; literal?: string; tokens: readonly GlobToken[]; matches: (name: string) => boolean };

function toSegment(tokens: readonly GlobToken[]): Segment {
  if (tokens.length >= 2 && tokens.every(({ kind }) => kind === "star")) return { globstar: true };
  const literal = toLiteral(tokens);
  if (literal !== undefined) return { globstar: false, tokens, literal, matches: (name) => name === literal };
  const suffix = tokens[0]?.kind === "star" ? toLiteral(tokens.slice(1)) : undefined;
  if (suffix !== undefined) return { globstar: false, tokens, matches: (name) => name.endsWith(suffix) };
  let matches: ((name: string) => boolean) | undefined;
  return { globstar: false, tokens, matches: (name) => (matches ??= compileMatcher(tokens))(name) };
}

const toLiteral = (tokens: readonly GlobToken[]): string | undefined =>
  tokens.every((token) => token.kind === "char") ? tokens.map((token) => token.value).join("") : undefined;

/** Matches wildcards over segments. Retries only the last `**`, which is enough and bounds the work. */
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
    } else if (segment !== undefined && segment.matches(names[name] ?? "")) {
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

/**
 * The rest of a pattern below a directory. The results decide about the rest of a path as the whole pattern decides
 * about the whole path. There are none if nothing below can match.
 */
function segmentsBelow(segments: readonly Segment[], names: readonly string[]): Segment[][] {
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
        if (segment !== undefined && segment.matches(name)) next.add(at + 1);
        break;
      }
    }
    positions = next;
  }
  return [...positions].filter((at) => at < segments.length).map((at) => segments.slice(at));
}

/**
 * Makes a test of names. It follows all ways through the tokens at once, a bit for each, so that a name takes time in
 * proportion to its length, whatever the tokens are.
 */
function compileMatcher(tokens: readonly GlobToken[]): (name: string) => boolean {
  const steps: GlobToken[] = [];
  const stars = new Set<number>();
  for (const token of tokens) {
    if (token.kind === "star") stars.add(steps.length);
    else steps.push(token);
  }
  const words = (steps.length >> 5) + 1;
  const bits = (isSet: (at: number) => boolean): Uint32Array => {
    const set = new Uint32Array(words);
    for (let at = 0; at <= steps.length; at += 1)
      if (isSet(at)) set[at >> 5] = (set[at >> 5] ?? 0) | (1 << at);
    return set;
  };
  const loops = bits((at) => stars.has(at));
  const masks = new Map<string, Uint32Array>();
  const maskOf = (character: string): Uint32Array => {
    const known = masks.get(character);
    if (known !== undefined) return known;
    if (masks.size >= 256) masks.clear();
    const code = character.codePointAt(0) ?? -1;
    const mask = bits((at) => {
      const token = steps[at];
      if (token?.kind !== "class")
        return token?.kind === "char" ? token.value === character : token?.kind === "any";
      return token.ranges.some(([low, high]) => low <= code && code <= high) !== token.negated;
    });
    masks.set(character, mask);
    return mask;
  };
  return (name) => {
    const state = new Uint32Array(words);
    state[0] = 1;
    for (const character of name) {
      const mask = maskOf(character);
      let [carry, any] = [0, 0];
      for (let at = 0; at < words; at += 1) {
        const before = state[at] ?? 0;
        const moved = before & (mask[at] ?? 0);
        const after = (moved << 1) | carry | (before & (loops[at] ?? 0));
        state[at] = after;
        carry = moved >>> 31;
        any |= after;
      }
      if (any === 0) return false;
    }
    return (((state[steps.length >> 5] ?? 0) >>> (steps.length & 31)) & 1) === 1;
  };
}

function tokenText(token: GlobToken): string {
  switch (token.kind) {
    case "char":
      return /[*?[\]{},!\\~]/.test(token.value) ? `\\${token.value}` : token.value;
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

/**
 * The one glob dialect of all backends and tools.
 *
 * `*` any run and `?` any one character of a name, `**` as a whole segment any number of directories,
 * `[a-z]` and `[!a-z]` sets, `{a,b}` alternatives (nested, at most 256), `\` takes the next character
 * literally, a leading `!` selects the paths that the rest does not match. Dot files match like any other. Matching
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
  /** True if something below `directory` (relative, no trailing slash) can match. If not, it need not be read. */
  reaches(directory: string): boolean;
  /**
   * The pattern that selects the same files when the search starts in `directory`; undefined when none
   * can match there. It means the same with and without `nameAtAnyDepth`.
   */
  below(directory: string): string | undefined;
  /** The patterns one of which must match; undefined for a negated pattern. */
  readonly alternatives: readonly (readonly Segment[])[] | undefined;
}

/** Compiles a pattern. An invalid or climbing one is a failure. */
export function compileGlob(
  pattern: string,
  options: GlobOptions = {},
): { ok: true; glob: Glob } | ({ ok: false } & BackendFailure) {
  const negated = pattern.startsWith("!");
  const body = negated ? pattern.slice(1) : pattern;
  const written = options.fromRoot === true && body.startsWith("/") ? body.slice(1) : body;
  if (written.startsWith("~")) return { ok: false, ...errors.climbingGlob(pattern) };
  let alternatives: Segment[][];
  try {
    alternatives = parseGlob(written).map((tokens) => {
      const segments: GlobToken[][] = [[]];
      for (const token of tokens) {
        if (token.kind === "slash") segments.push([]);
        else segments.at(-1)?.push(token);
      }
      return segments.map(toSegment);
    });
  } catch (thrown) {
    if (thrown instanceof GlobSyntaxError) return { ok: false, ...errors.invalidGlob(thrown.message) };
    throw thrown;
  }
  for (const segments of alternatives) {
    const literals = segments.map((segment) => (segment.globstar ? undefined : segment.literal));
    if (literals.includes("..")) return { ok: false, ...errors.climbingGlob(pattern) };
    if (options.fromRoot !== true && segments.length > 1 && literals[0] === "")
      return { ok: false, ...errors.invalidGlob(`'${pattern}' is absolute; give the directory as path`) };
  }
  const anyDepth = options.nameAtAnyDepth === true;
  const prepared = alternatives.map((segments): Segment[] =>
    normalize(anyDepth && segments.length === 1 ? [{ globstar: true }, ...segments] : segments),
  );
  const glob = union(prepared);
  if (!negated) return { ok: true, glob };
  const below = (directory: string): string => {
    const rest = glob.below(directory);
    return rest === undefined ? "**" : `!${rest}`;
  };
  const matches = (path: string): boolean => !glob.matches(path);
  return { ok: true, glob: { alternatives: undefined, matches, reaches: () => true, below } };
}

/**
 * Translates a pattern that is written from the root into one for a search in `directory`. Leaves any other pattern
 * unchanged, and one that can match nothing there.
 */
export function patternFrom(pattern: string, directory: string): string {
  if (!/^!?\//.test(pattern)) return pattern;
  const compiled = compileGlob(pattern, { fromRoot: true });
  return (compiled.ok ? compiled.glob.below(directory.slice(1)) : undefined) ?? pattern;
}

/** The paths that the alternatives of a pattern begin with, up to the first wildcard of each. */
export const literalStarts = ({ alternatives = [] }: Glob): string[] =>
  alternatives.flatMap((segments) => {
    const names: string[] = [];
    for (const segment of segments) {
      if (segment.globstar || segment.literal === undefined) break;
      if (segment.literal !== "") names.push(segment.literal);
    }
    return names.length === 0 ? [] : [`/${names.join("/")}`];
  });

/**
 * Drops `.` and doubled slashes and all but one of adjacent `**`. A final `**` means at least one more
 * name, written `**` and `*`. A trailing slash stays, and matches no file.
 */
function normalize(segments: readonly Segment[]): Segment[] {
  const last = segments.length - 1;
  const kept = segments.filter((segment, index) => {
    if (segment.globstar) return segments[index + 1]?.globstar !== true;
    return segment.literal !== "." && (segment.literal !== "" || index === last);
  });
  if (kept.at(-1)?.globstar === true) kept.push(toSegment([{ kind: "star" }]));
  return kept;
}

function union(alternatives: readonly Segment[][]): Glob {
  // A pattern of `**` and one more segment concerns the file name alone.
  const [only = []] = alternatives;
  const [first, second] = only;
  const isAboutName = alternatives.length === 1 && only.length === 2 && first?.globstar === true;
  const byName = isAboutName && second?.globstar === false ? second.matches : undefined;
  const restsBelow = (directory: string): Segment[][] => {
    const names = directory === "" ? [] : directory.split("/");
    return alternatives.flatMap((segments) => segmentsBelow(segments, names));
  };
  return {
    alternatives,
    matches: (path) => {
      if (byName !== undefined) return byName(path.slice(path.lastIndexOf("/") + 1));
      const names = path.split("/");
      return alternatives.some((segments) => matchSegments(segments, names));
    },
    reaches: (directory) => byName !== undefined || restsBelow(directory).length > 0,
    below: (directory) => {
      // With `./` in front a single name keeps meaning "directly here" when names match at any depth.
      const rests = restsBelow(directory).map((rest) => {
        const names = rest.map((segment) =>
          segment.globstar ? "**" : segment.tokens.map(tokenText).join(""),
        );
        return (rest.length === 1 ? "./" : "") + names.join("/");
      });
      const distinct = [...new Set(rests)];
      return distinct.length > 1 ? `{${distinct.join(",")}}` : distinct[0];
    },
  };
}
