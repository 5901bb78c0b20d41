import { type BackendFailure, climbingGlob, invalidGlob } from "../errors.ts";
import { matchSegments, nameMatcher, type Segment, segmentsBelow, toPattern, toSegments } from "./match.ts";
import { GlobSyntaxError, parseGlob } from "./parser.ts";

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
  /**
   * The pattern that selects the same files when the search starts in `directory`; undefined when none
   * can match there. It means the same with and without `nameAtAnyDepth`.
   */
  below(directory: string): string | undefined;
  /** What it selects is what one of these does; undefined for a negated pattern. */
  readonly alternatives: readonly (readonly Segment[])[] | undefined;
}

export type GlobCompilation = { ok: true; glob: Glob } | ({ ok: false } & BackendFailure);

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
    normalize(anyDepth && segments.length === 1 ? [{ globstar: true }, ...segments] : segments),
  );
  return { ok: true, glob: negated ? complementOf(unionOf(prepared)) : unionOf(prepared) };
}

/**
 * A pattern that is written from the root, as one for a search in `directory`. What matches nothing there, and
 * what is not written from the root, stays as it is.
 */
export function patternFrom(pattern: string, directory: string): string {
  if (!/^!?\//.test(pattern)) return pattern;
  const compiled = compileGlob(pattern, { fromRoot: true });
  return (compiled.ok ? compiled.glob.below(directory.slice(1)) : undefined) ?? pattern;
}

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
  if (kept.at(-1)?.globstar === true) kept.push({ globstar: false, suffix: "", tokens: [{ kind: "star" }] });
  return kept;
}

function unionOf(alternatives: readonly Segment[][]): Glob {
  const [only] = alternatives;
  const byName = alternatives.length === 1 && only !== undefined ? nameMatcher(only) : undefined;
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
      const rests = restsBelow(directory).map((rest) => (rest.length === 1 ? "./" : "") + toPattern(rest));
      const distinct = [...new Set(rests)];
      return distinct.length > 1 ? `{${distinct.join(",")}}` : distinct[0];
    },
  };
}

function complementOf(inner: Glob): Glob {
  return {
    alternatives: undefined,
    matches: (path) => !inner.matches(path),
    reaches: () => true,
    below: (directory) => {
      const rest = inner.below(directory);
      return rest === undefined ? "**" : `!${rest}`;
    },
  };
}
