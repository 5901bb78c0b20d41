import { isAscii } from "node:buffer";
import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { startChild } from "../../core/child-process.ts";
import { encodedForms } from "../encoding.ts";
import type { Glob, GlobToken } from "../glob.ts";
import { isTextType, mimeTypeOf } from "../mime.ts";

export interface RipgrepRequest {
  binary: string;
  /** Host path of the directory to search. */
  directory: string;
  pattern: string;
  isRegex: boolean;
  caseSensitive: boolean;
  /** Larger files are skipped. Default: none. */
  maxFileSize: number | undefined;
  /** Globs of ripgrep, at least one of which accepts each wanted file. Default: all files. */
  globs: readonly string[] | undefined;
  /** Globs of ripgrep for excluded files. */
  excluded: readonly string[];
  maxFiles: number;
  /** Milliseconds of `performance.now()`. */
  deadline: number;
  signal?: AbortSignal | undefined;
}

/** Paths are relative to the directory searched. */
export interface RipgrepAnswer {
  /** Files with at least one match, in no order. */
  files: string[];
  /** Files or directories that could not be read. */
  unreadable: string[];
  /** Files over the size limit that were skipped. With globs rg does not name them. */
  tooLarge: string[];
  end: "complete" | "overflow" | "timeout" | "aborted";
}

/** The path of the binary that comes with `@vscode/ripgrep`; undefined where there is none. */
export const findRipgrep = (): Promise<string | undefined> =>
  import("@vscode/ripgrep").then(
    ({ rgPath }) => rgPath,
    () => undefined,
  );

/**
 * Finds the files that contain a match with `rg`, which follows no links, includes dot files and reads no
 * configuration. Returns undefined if it cannot be started or refuses the pattern. Its process is killed after
 * `maxFiles`, at the deadline and on abort, and has ended when the promise settles.
 */
export const ripgrepFiles = (request: RipgrepRequest): Promise<RipgrepAnswer | undefined> =>
  new Promise((resolve) => {
    const answer: RipgrepAnswer = { files: [], unreadable: [], tooLarge: [], end: "complete" };
    const child = startRipgrep(request);
    const stop = (end: RipgrepAnswer["end"]): void => {
      if (answer.end === "complete") answer.end = end;
      child.kill("SIGKILL");
    };
    const onAbort = (): void => stop("aborted");
    const timer = setTimeout(() => stop("timeout"), Math.max(0, request.deadline - performance.now()));
    request.signal?.addEventListener("abort", onAbort, { once: true });
    if (request.signal?.aborted === true) onAbort();
    const settle = (result: RipgrepAnswer | undefined): void => {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", onAbort);
      resolve(result);
    };
    splitStream(child.stdout, "\0", (path) => {
      if (!isTextType(mimeTypeOf(path))) return;
      if (answer.files.length < request.maxFiles) answer.files.push(withoutDot(path));
      else stop("overflow");
    });
    /** True if a line concerns a single file or directory. */
    let hasProblem = false;
    splitStream(child.stderr, "\n", (line) => {
      const large = /^rg: DEBUG\|ignore::walk\|[^ ]*: ignoring (.*): \d+ bytes$/s.exec(line)?.[1];
      if (large !== undefined) answer.tooLarge.push(withoutDot(large));
      const [, entry, code] = /^rg: (\.|\.\/.*): [^:]*\(os error (\d+)\)$/s.exec(line) ?? [];
      if (entry === undefined) return;
      hasProblem = true;
      // Not permitted (1, 13), input/output error or on Windows access denied (5).
      if (["1", "5", "13"].includes(code ?? "")) answer.unreadable.push(withoutDot(entry));
    });
    child.once("error", () => settle(undefined));
    child.once("close", (code) => {
      const hasFailed = code === null || (code > 1 && !hasProblem);
      settle(answer.end === "complete" && hasFailed ? undefined : answer);
    });
  });

function startRipgrep(request: RipgrepRequest): ChildProcess {
  const { maxFileSize, globs = [] } = request;
  const flags = [
    // With ignore files it would wait for ever at a named pipe that is called .gitignore.
    ..."--no-config --hidden --no-ignore --no-follow --color=never --files-with-matches --null".split(" "),
    request.caseSensitive ? "--case-sensitive" : "--ignore-case",
    request.isRegex ? "--engine=default" : "--fixed-strings",
    ...(maxFileSize === undefined ? [] : [`--max-filesize=${maxFileSize}`]),
    // Makes rg name the files that are too large. With globs it would report on every file, which takes longer.
    ...(maxFileSize === undefined || request.globs !== undefined ? [] : ["--debug"]),
    ...globs.map((glob) => `--glob=${glob}`),
    ...request.excluded.map((glob) => `--glob=!${glob}`),
    `--regexp=${request.pattern}`,
  ];
  const limit = ["/bin/sh", "-c", '{ ulimit -c 0; ulimit -v 2097152; } 2>/dev/null; exec "$0" "$@"'];
  const [command, ...args] = [...(LIMITS_MEMORY ? limit : []), request.binary, ...flags, "--", "."];
  return startChild(command, args, {
    cwd: request.directory,
    stdio: ["ignore", "pipe", "pipe"],
    // An empty environment changes no search, and passes on no secret of ours.
    env: {},
    windowsHide: true,
  });
}

/**
 * Limits the memory of rg, which holds the longest line of a file. A line of gigabytes ends rg, and the search
 * continues without it. The limit is in KB of address space; rg needs 200,000 for its 12 threads.
 */
export const LIMITS_MEMORY = process.platform === "linux";

/** Splits a stream into whole pieces. A name that is not UTF-8 loses its bytes and matches no file. */
function splitStream(stream: Readable | null, separator: string, onPiece: (piece: string) => void): void {
  let rest = "";
  stream?.setEncoding("utf8");
  stream?.on("data", (chunk: string) => {
    const pieces = (rest + chunk).split(separator);
    // No path is as long as that.
    rest = (pieces.pop() ?? "").slice(0, 64 * 1024);
    for (const piece of pieces) onPiece(piece);
  });
  stream?.on("end", () => {
    if (rest !== "") onPiece(rest);
  });
}

const withoutDot = (path: string): string => (path.startsWith("./") ? path.slice(2) : path);

/**
 * Translates a glob into globs of ripgrep that accept at least the same files. Returns undefined if they would accept
 * everything.
 */
export function toRipgrepGlobs({ alternatives }: Glob): string[] | undefined {
  // Each glob is matched against every file.
  if (alternatives === undefined || alternatives.length > 32) return undefined;
  const globs = alternatives.map((segments) => {
    const names = segments.map((segment) =>
      segment.globstar ? "**" : segment.tokens.map(tokenText).join("").replace(/\*+/g, "*"),
    );
    return `/${names.join("/")}`;
  });
  return globs.includes("/**/*") ? undefined : globs;
}

const PLAIN_CHARACTER = /^[\w.-]$/;
const isPlain = (code: number): boolean => PLAIN_CHARACTER.test(String.fromCodePoint(code));

/** ripgrep's `?` and `[…]` are one byte, ours one character; `*` is both. */
function tokenText(token: GlobToken): string {
  if (token.kind === "char" && PLAIN_CHARACTER.test(token.value)) return token.value;
  if (token.kind !== "class" || token.negated) return "*";
  const ranges = token.ranges.map(([low, high]) => {
    const isWordLike = isPlain(low) && isPlain(high) && ![low, high].includes("-".charCodeAt(0));
    return isWordLike ? `${String.fromCodePoint(low)}-${String.fromCodePoint(high)}` : undefined;
  });
  return ranges.includes(undefined) ? "*" : `[${ranges.join("")}]`;
}

/** Matches bytes that are not UTF-8, and an escape sequence of ISO-2022: files in older encodings, which rg cannot decode. */
const NOT_UTF8 = String.raw`(?-u:[\xC0\xC1\xF5-\xFF]|(?:^|[\x00-\x7F])[\x80-\xBF]|[\xC2-\xDF](?:[^\x80-\xBF]|$|[\x80-\xBF]{2})|[\xE0-\xEF](?:[\x80-\xBF]?(?:[^\x80-\xBF]|$)|[\x80-\xBF]{3})|[\xF0-\xF4](?:[\x80-\xBF]{0,2}(?:[^\x80-\xBF]|$)|[\x80-\xBF]{4})|\xE0[\x80-\x9F]|\xED[\xA0-\xBF]|\xF0[\x80-\x8F]|\xF4[\x90-\xBF]|\x1B\$)`;

/**
 * Translates a search for ripgrep, so that it proposes at least the files with a match, in whatever encoding they are.
 * Returns undefined for a pattern with an unknown construct.
 */
export function ripgrepPattern(
  pattern: string,
  { isRegex, caseSensitive }: Pick<RipgrepRequest, "isRegex" | "caseSensitive">,
): Pick<RipgrepRequest, "pattern" | "isRegex"> | undefined {
  if (pattern.includes("\0")) return undefined;
  if (!isRegex && caseSensitive && isAscii(Buffer.from(pattern))) return { pattern, isRegex };
  if (!isRegex && caseSensitive) {
    const forms = encodedForms(pattern).map(
      (form) => `(?-u:${form.toString("hex").replace(/../g, String.raw`\x$&`)})`,
    );
    return { pattern: forms.join("|"), isRegex: true };
  }
  const translated = isRegex ? toRustRegex(pattern) : Array.from(pattern, literal).join("");
  return translated === undefined ? undefined : { pattern: `(?:${translated})|${NOT_UTF8}`, isRegex: true };
}

/**
 * Translates an expression that RE2 accepts into one for ripgrep that matches at least the same lines.
 *
 * ripgrep only proposes files, and RE2 decides about their lines. So the translation may match more, but never less.
 * The differences: `\d`, `\w`, `\s` and `\b` are ASCII in RE2 and Unicode in Rust; `[`, `&`, `~`
 * and `-` nest or combine sets in Rust; `\Q…\E`, `\pN` of one letter and octal numbers are RE2's; anchors
 * concern one line without its CRLF end. Returns undefined for an unknown construct.
 */
export const toRustRegex = (expression: string): string | undefined =>
  translated(expression, CONSTRUCT, ({ found, groups, next }) => {
    const { quoted, set, negation = "", flags, end, off, other } = groups;
    const isRepeated = /[*+?{]/.test(next);
    // The two dialects treat a repetition of nothing differently.
    if (quoted === "" && isRepeated) return undefined;
    if (quoted !== undefined) return Array.from(quoted, literal).join("");
    if (set !== undefined) {
      const members = translated(set, MEMBER, ({ found, groups, next, isFirst }) => {
        if (found.startsWith("[:")) return found;
        // A range between two members, and a plain character at either end. RE2 has refused everything else.
        if (found === "-") return isFirst || next === "" ? "\\-" : "-";
        return found.startsWith("\\") ? escapeText(groups, (ascii) => ascii) : `\\${found}`;
      });
      return members && `[${negation}${members}]`;
    }
    if (end !== undefined) {
      const [kept, dropped] = [flags ?? "", off ?? ""].map((letters) => letters.replaceAll("m", ""));
      const setting = `${kept}${dropped === "" ? "" : `-${dropped}`}`;
      if (end === ":") return `(?${setting}:`;
      return isRepeated ? undefined : setting && `(?${setting})`;
    }
    if (other === "b" || other === "B") return `(?-u:\\${other})`;
    // ripgrep may see the carriage return of a CRLF before the end of a line.
    if (found === "$" || other === "z") return "(?:\\r?$)";
    if (other === "A") return "^";
    if (found.startsWith("(?")) return found.endsWith(">") ? "(?:" : undefined;
    return found === "[" ? undefined : escapeText(groups, (ascii) => `[${ascii}]`);
  });

/** Escapes that mean the same inside and outside of sets, and all others. */
const ESCAPE = String.raw`\\(?:x(?<hex>[\dA-Fa-f]{2}|\{[\dA-Fa-f]{1,8}\})|(?<unicode>[pP])(?:(?<letter>[A-Z])|\{(?<not>\^?)(?<name>[A-Za-z_ ]+)\})|(?<octal>[0-7]{1,3})|(?<other>[^]?))`;

/** The constructs of RE2 that ripgrep may read in another way. */
const CONSTRUCT = new RegExp(
  [
    String.raw`\\Q(?<quoted>[^]*?)(?:\\E|$)`,
    ESCAPE,
    String.raw`\[(?<negation>\^?)(?<set>\]?(?:\[:\^?[a-z]+:\]|\\[^]|[^\]\\])*)\]`,
    String.raw`\(\?(?:P?<\w+>|(?<flags>[imsU]*)(?:-(?<off>[imsU]+))?(?<end>[:)]))`,
    String.raw`\(\?|\[|\$`,
  ].join("|"),
  "gu",
);

/** The members of a set that ripgrep may read in another way. */
const MEMBER = new RegExp(String.raw`\[:\^?[a-z]+:\]|[[&~^-]|${ESCAPE}`, "gu");

interface Construct {
  found: string;
  groups: Readonly<Record<string, string | undefined>>;
  /** The character behind it; empty at the end. */
  next: string;
  isFirst: boolean;
}

/** Translates each construct of a text, and keeps the rest. Returns undefined if one is unknown. */
function translated(
  text: string,
  constructs: RegExp,
  translate: (construct: Construct) => string | undefined,
): string | undefined {
  let result = "";
  let from = 0;
  for (const { 0: found, index, groups = {} } of text.matchAll(constructs)) {
    const end = index + found.length;
    const part = translate({ found, groups, next: text.charAt(end), isFirst: index === 0 });
    if (part === undefined) return undefined;
    result += text.slice(from, index) + part;
    from = end;
  }
  return result + text.slice(from);
}

const ASCII_SETS: Readonly<Record<string, string>> = {
  d: "0-9",
  w: "0-9A-Za-z_",
  s: "\\t\\n\\x0C\\r ",
};

/** Translates an escape. `inSet` writes the characters of one such as `\d`. Returns undefined for an unknown one. */
function escapeText(
  { hex, unicode, letter, not, name, octal, other = "" }: Construct["groups"],
  inSet: (ascii: string) => string,
): string | undefined {
  if (hex !== undefined) return `\\x{${hex.replace(/[{}]/g, "")}}`;
  if (octal !== undefined) return `\\x{${Number.parseInt(octal, 8).toString(16)}}`;
  if (unicode !== undefined) {
    const isNegated = (unicode === "P") !== (not === "^");
    return `\\${isNegated ? "P" : "p"}{${letter ?? name ?? ""}}`;
  }
  const ascii = ASCII_SETS[other.toLowerCase()];
  if (ascii !== undefined) return other === other.toLowerCase() ? inSet(ascii) : `[^${ascii}]`;
  if (/^[aftnrv]$/.test(other)) return `\\${other}`;
  return other === "" || /[A-Za-z\d]/.test(other) ? undefined : literal(other);
}

/** Escapes only characters with a meaning: `\<` and `\>` are word boundaries in Rust. */
const literal = (character: string): string =>
  /[\\.+*?()|[\]{}^$#&~-]/.test(character) ? `\\${character}` : character;
