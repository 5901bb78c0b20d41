import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { startChild } from "../../core/child-process.ts";
import type { Glob, GlobToken, Segment } from "../glob.ts";

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
  /** The search stops after this number of files. */
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
export async function findRipgrep(): Promise<string | undefined> {
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    return undefined;
  }
}

/**
 * Finds the files that contain a match with `rg`, which follows no links, includes dot files and reads no
 * configuration. Gives undefined if it cannot be started or refuses the pattern. Its process is killed after
 * `maxFiles`, at the deadline and on abort, and has ended when the promise settles.
 */
export function ripgrepFiles(request: RipgrepRequest): Promise<RipgrepAnswer | undefined> {
  return new Promise((resolve) => {
    const answer: RipgrepAnswer = { files: [], unreadable: [], tooLarge: [], end: "complete" };
    const child = start(request);
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
      if (answer.files.length < request.maxFiles) answer.files.push(withoutDot(path));
      else stop("overflow");
    });
    let hasProblem = false;
    splitStream(child.stderr, "\n", (line) => {
      hasProblem = readDiagnostic(line, answer) || hasProblem;
    });
    child.once("error", () => settle(undefined));
    child.once("close", (code) => {
      const hasFailed = code === null || (code > 1 && !hasProblem);
      settle(answer.end === "complete" && hasFailed ? undefined : answer);
    });
  });
}

/**
 * Makes rg name the large files that it skips. With globs it would report on every file, which takes longer than
 * the search.
 */
function sizeFlags({ globs, maxFileSize }: RipgrepRequest): string[] {
  if (maxFileSize === undefined) return [];
  return [`--max-filesize=${maxFileSize}`, ...(globs === undefined ? ["--debug"] : [])];
}

function start(request: RipgrepRequest): ChildProcess {
  const flags = [
    "--no-config",
    "--hidden",
    // Otherwise it waits for ever at a named pipe that is called .gitignore.
    "--no-ignore",
    "--no-follow",
    "--color=never",
    "--files-with-matches",
    "--null",
    request.caseSensitive ? "--case-sensitive" : "--ignore-case",
    request.isRegex ? "--engine=default" : "--fixed-strings",
    ...sizeFlags(request),
    ...(request.globs ?? []).map((glob) => `--glob=${glob}`),
    ...request.excluded.map((glob) => `--glob=!${glob}`),
    `--regexp=${request.pattern}`,
  ];
  const [command, ...args] = [...LIMIT_MEMORY, request.binary, ...flags, "--", "."];
  return startChild(command, args, {
    cwd: request.directory,
    stdio: ["ignore", "pipe", "pipe"],
    // An empty environment changes no search, and passes on no secret of ours.
    env: {},
    windowsHide: true,
  });
}

/**
 * Limits the memory of rg, which holds the longest line of a file. A line of gigabytes ends rg, and the search goes
 * on without it. The limit is in KB of address space; rg needs 200,000 for its 12 threads.
 */
export const LIMITS_MEMORY = process.platform === "linux";
const LIMIT_MEMORY = LIMITS_MEMORY
  ? ["/bin/sh", "-c", '{ ulimit -c 0; ulimit -v 2097152; } 2>/dev/null; exec "$0" "$@"']
  : [];

/** Splits a stream into whole pieces. A name that is not UTF-8 loses its bytes and matches no file. */
function splitStream(stream: Readable | null, separator: string, onPiece: (piece: string) => void): void {
  let rest = "";
  stream?.setEncoding("utf8");
  stream?.on("data", (chunk: string) => {
    const pieces = (rest + chunk).split(separator);
    rest = (pieces.pop() ?? "").slice(0, MAX_PIECE);
    for (const piece of pieces) onPiece(piece);
  });
  stream?.on("end", () => {
    if (rest !== "") onPiece(rest);
  });
}

/** Longer than any path. */
const MAX_PIECE = 64 * 1024;

const TOO_LARGE = /^rg: DEBUG\|ignore::walk\|[^ ]*: ignoring (.*): \d+ bytes$/s;
const ABOUT_ONE_ENTRY = /^rg: (\.|\.\/.*): [^:]*\(os error (\d+)\)$/s;
/** Not permitted (1, 13), input/output error or on Windows access denied (5). */
const UNREADABLE: ReadonlySet<string | undefined> = new Set(["1", "5", "13"]);

/** Reads a line of standard error. Gives whether it concerns a single file or directory. */
function readDiagnostic(line: string, answer: RipgrepAnswer): boolean {
  const large = TOO_LARGE.exec(line)?.[1];
  if (large !== undefined) answer.tooLarge.push(withoutDot(large));
  const [, entry, code] = ABOUT_ONE_ENTRY.exec(line) ?? [];
  if (entry !== undefined && UNREADABLE.has(code)) answer.unreadable.push(withoutDot(entry));
  return entry !== undefined;
}

const withoutDot = (path: string): string => (path.startsWith("./") ? path.slice(2) : path);

/** Each is matched against every file. */
const MAX_GLOBS = 32;

/**
 * Translates a glob into globs of ripgrep that accept at least the same files. Gives undefined if they would accept
 * everything.
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

/**
 * Translates an expression that RE2 accepts into one for ripgrep that matches at least the same lines.
 *
 * ripgrep only proposes files, and RE2 decides about their lines. So the translation may match more, but never less.
 * The differences: `\d`, `\w`, `\s` and `\b` are ASCII in RE2 and Unicode in Rust; `[`, `&`, `~`
 * and `-` nest or combine sets in Rust; `\Q…\E`, `\pN` of one letter and octal numbers are RE2's; anchors
 * concern one line without its CRLF end. Gives undefined for an unknown construct.
 */
export function toRustRegex(expression: string): string | undefined {
  const reader: Reader = { characters: Array.from(expression), at: 0 };
  const output: string[] = [];
  while (reader.at < reader.characters.length) {
    const part = nextPart(reader);
    if (part === undefined) return undefined;
    output.push(part);
  }
  return output.join("");
}

interface Reader {
  characters: string[];
  at: number;
}

const take = (reader: Reader): string | undefined => reader.characters[reader.at++];

/** Translates the next construct. Empty for one without a meaning, such as flags that make no difference. */
function nextPart(reader: Reader): string | undefined {
  const character = take(reader);
  switch (character) {
    case undefined:
      return undefined;
    case "\\":
      return escapeOutside(reader);
    case "[":
      return set(reader);
    case "(":
      return group(reader);
    case "$":
      return LINE_END;
    default:
      return character;
  }
}

/** The end of a line, before which ripgrep may see the carriage return of a CRLF. */
const LINE_END = "(?:\\r?$)";

const ASCII_SETS: Readonly<Record<string, string>> = {
  d: "0-9",
  w: "0-9A-Za-z_",
  s: "\\t\\n\\x0C\\r ",
};

const SIMPLE_ESCAPES = new Set("aftnrv".split(""));

function escapeOutside(reader: Reader): string | undefined {
  const character = take(reader);
  if (character === undefined) return undefined;
  const lower = character.toLowerCase();
  const ascii = ASCII_SETS[lower];
  if (ascii !== undefined) return character === lower ? `[${ascii}]` : `[^${ascii}]`;
  switch (character) {
    case "A":
      return "^";
    case "z":
      return LINE_END;
    case "b":
    case "B":
      return `(?-u:\\${character})`;
    case "Q":
      return quotedText(reader);
    default:
      return commonEscape(reader, character);
  }
}

/** Escapes that mean the same inside and outside of sets. */
function commonEscape(reader: Reader, character: string): string | undefined {
  if (SIMPLE_ESCAPES.has(character)) return `\\${character}`;
  if (character === "x") return hexadecimal(reader);
  if (character === "p" || character === "P") return unicodeClass(reader, character);
  if (/[0-9]/.test(character)) return octal(reader, character);
  return /[A-Za-z]/.test(character) ? undefined : literal(character);
}

function hexadecimal(reader: Reader): string | undefined {
  const rest = reader.characters.slice(reader.at, reader.at + 12).join("");
  const digits = /^(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})/.exec(rest);
  if (digits === null) return undefined;
  reader.at += digits[0].length;
  return `\\x{${digits[1] ?? digits[2] ?? ""}}`;
}

function octal(reader: Reader, first: string): string | undefined {
  const rest = first + reader.characters.slice(reader.at, reader.at + 2).join("");
  const digits = /^[0-7]{1,3}/.exec(rest)?.[0];
  if (digits === undefined) return undefined;
  reader.at += digits.length - 1;
  return `\\x{${Number.parseInt(digits, 8).toString(16)}}`;
}

function unicodeClass(reader: Reader, kind: string): string | undefined {
  const rest = reader.characters.slice(reader.at, reader.at + 64).join("");
  const name = /^(?:([A-Z])|\{(\^?)([A-Za-z_ ]+)\})/.exec(rest);
  if (name === null) return undefined;
  reader.at += name[0].length;
  const isNegated = (kind === "P") !== (name[2] === "^");
  return `\\${isNegated ? "P" : "p"}{${name[1] ?? name[3] ?? ""}}`;
}

function quotedText(reader: Reader): string | undefined {
  const output: string[] = [];
  for (let character = take(reader); character !== undefined; character = take(reader)) {
    if (character === "\\" && reader.characters[reader.at] === "E") {
      reader.at += 1;
      break;
    }
    output.push(literal(character));
  }
  return output.length === 0 && isRepeated(reader) ? undefined : output.join("");
}

/** True if a repetition comes next. The two dialects treat a repetition of nothing differently. */
const isRepeated = (reader: Reader): boolean => /[*+?{]/.test(reader.characters[reader.at] ?? "");

/** Translates the beginning of a group. Drops the flag `m`, which changes nothing for one line at a time. */
function group(reader: Reader): string | undefined {
  if (reader.characters[reader.at] !== "?") return "(";
  const rest = reader.characters.slice(reader.at, reader.at + 80).join("");
  const named = /^\?P?<(\w+)>/.exec(rest);
  if (named !== null) {
    reader.at += named[0].length;
    return "(?:";
  }
  const flags = /^\?([imsU]*)(?:-([imsU]+))?([:)])/.exec(rest);
  if (flags === null) return undefined;
  reader.at += flags[0].length;
  const [, on = "", off = "", end = ":"] = flags;
  const kept = (letters: string): string => letters.replaceAll("m", "");
  const setting = kept(on) + (kept(off) === "" ? "" : `-${kept(off)}`);
  if (end === ")") return isRepeated(reader) ? undefined : setting === "" ? "" : `(?${setting})`;
  return `(?${setting}:`;
}

function set(reader: Reader): string | undefined {
  const output: string[] = ["["];
  if (reader.characters[reader.at] === "^") output.push(take(reader) ?? "");
  for (let isFirst = true; ; isFirst = false) {
    const character = take(reader);
    if (character === undefined) return undefined;
    if (character === "]" && !isFirst) return `${output.join("")}]`;
    const part = setMember(reader, character);
    if (part === undefined) return undefined;
    output.push(part);
  }
}

function setMember(reader: Reader, character: string): string | undefined {
  if (character === "[") {
    const rest = reader.characters.slice(reader.at, reader.at + 16).join("");
    const named = /^:\^?[a-z]+:\]/.exec(rest);
    if (named === null) return "\\[";
    reader.at += named[0].length;
    return `[${named[0]}`;
  }
  if (character === "-") {
    // A range between two members, and a plain character at either end. RE2 has refused everything else.
    const [before, second] = [reader.characters[reader.at - 2], reader.characters[reader.at - 3]];
    const isFirst = before === "[" || (before === "^" && second === "[");
    return isFirst || reader.characters[reader.at] === "]" ? "\\-" : "-";
  }
  if (character !== "\\") return "&~^".includes(character) ? `\\${character}` : character;
  const escaped = take(reader);
  if (escaped === undefined) return undefined;
  const lower = escaped.toLowerCase();
  const ascii = ASCII_SETS[lower];
  if (ascii !== undefined) return escaped === lower ? ascii : `[^${ascii}]`;
  return commonEscape(reader, escaped);
}

/** Escapes only characters with a meaning: `\<` and `\>` are word boundaries in Rust. */
const literal = (character: string): string =>
  /[\\.+*?()|[\]{}^$#&~-]/.test(character) ? `\\${character}` : character;
