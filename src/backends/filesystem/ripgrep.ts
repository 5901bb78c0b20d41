import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { startChild } from "../../core/child-process.ts";

export interface RipgrepRequest {
  binary: string;
  /** Host path of the directory to search. */
  directory: string;
  pattern: string;
  isRegex: boolean;
  caseSensitive: boolean;
  /** Larger files are passed over; undefined for none. */
  maxFileSize: number | undefined;
  /** Globs of ripgrep one of which passes each file wanted; undefined for all files. */
  globs: readonly string[] | undefined;
  /** Globs of ripgrep for what is left out. */
  excluded: readonly string[];
  /** More files than this are not collected: the search is stopped. */
  maxFiles: number;
  /** Milliseconds of `performance.now()`. */
  deadline: number;
  signal?: AbortSignal;
}

/** Paths are relative to the directory searched. */
export interface RipgrepAnswer {
  /** Files with at least one match, in no order. */
  files: string[];
  /** Files or directories that could not be read. */
  unreadable: string[];
  /** Files over the size limit that were passed over; with globs rg does not tell which. */
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
 * The files that contain a match, found by `rg`, which follows no links, includes hidden files and reads no
 * configuration. Undefined when it cannot be started or refuses the pattern. Its process is killed when it
 * has told enough, at the deadline and on abort, and has ended when the promise settles.
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
 * rg tells which large files it passes over. With globs it would tell of every file whether it passes, which
 * takes longer than the search.
 */
function sizeFlags({ globs, maxFileSize }: RipgrepRequest): string[] {
  if (maxFileSize === undefined) return [];
  return [`--max-filesize=${maxFileSize}`, ...(globs === undefined ? ["--debug"] : [])];
}

function start(request: RipgrepRequest): ChildProcess {
  const flags = [
    "--no-config",
    "--hidden",
    // It would wait for ever at a named pipe that is called .gitignore.
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
    // Nothing of the environment changes the search, and no secret of ours is passed on.
    env: {},
    windowsHide: true,
  });
}

/**
 * rg holds the longest line of a file in memory. One of gigabytes ends it, and the search goes on without
 * it. The limit, in KB, is one of address space; with its 12 threads rg does with 200,000.
 */
export const LIMITS_MEMORY = process.platform === "linux";
const LIMIT_MEMORY = LIMITS_MEMORY
  ? ["/bin/sh", "-c", '{ ulimit -c 0; ulimit -v 2097152; } 2>/dev/null; exec "$0" "$@"']
  : [];

/** Whole pieces of a stream as text; what is not UTF-8 in a name is lost, and such a name matches no file. */
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

/** Notes what a line of standard error says; tells whether it was about a single file or directory. */
function readDiagnostic(line: string, answer: RipgrepAnswer): boolean {
  const large = TOO_LARGE.exec(line)?.[1];
  if (large !== undefined) answer.tooLarge.push(withoutDot(large));
  const [, entry, code] = ABOUT_ONE_ENTRY.exec(line) ?? [];
  if (entry !== undefined && UNREADABLE.has(code)) answer.unreadable.push(withoutDot(entry));
  return entry !== undefined;
}

const withoutDot = (path: string): string => (path.startsWith("./") ? path.slice(2) : path);
