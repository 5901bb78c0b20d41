import { errorMessage } from "../core/errors.ts";
import { headOf } from "../core/text.ts";
import type { BackendErrorCode, FileOperationError } from "./backend.ts";

/**
 * Every way a file operation fails: one function, one code and one text per fact.
 *
 * A text names at most one path, the one of the call, before any other variable part, so that a mount can put its
 * prefix back. No text has a host path or a stack.
 */
export interface BackendFailure {
  readonly error: string;
  readonly code: BackendErrorCode;
  readonly cause?: unknown;
}

export type FailureAt = (path: string) => BackendFailure;

const makeFailure = (code: BackendErrorCode, error: string): BackendFailure => ({ code, error });

const QUOTE_LIMIT = 200;
const shortQuote = (text: string): string =>
  text.length <= QUOTE_LIMIT ? text : `${headOf(text, QUOTE_LIMIT)}…`;
const megabytes = (bytes: number): string => {
  const value = bytes / (1024 * 1024);
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
};

/** Codes whose text quotes patterns or file content instead of a path. */
export const CODES_WITHOUT_PATH: ReadonlySet<unknown> = new Set<BackendErrorCode>([
  "no_match",
  "ambiguous",
  "invalid_pattern",
  "out_of_range",
]);

// Paths

export const pathEmpty = () => makeFailure("invalid_path", "Path must be a non-empty string");
export const pathHasNul = () => makeFailure("invalid_path", "Path contains a NUL character");
export const pathNotUnicode = () =>
  makeFailure("invalid_path", "Path contains half of a character (a lone surrogate)");
export const pathTraversal = (path: string) =>
  makeFailure("invalid_path", `Path traversal not allowed: ${path}`);
export const windowsPath = (path: string) =>
  makeFailure("invalid_path", `Windows absolute paths are not supported: ${path}`);
export const pathNotAllowed = (path: string, prefixes: readonly string[]) =>
  makeFailure("invalid_path", `Path must start with one of ${JSON.stringify(prefixes)}: ${path}`);
export const reservedName = (path: string) =>
  makeFailure("invalid_path", `Names that start with '.wh.' are reserved: ${path}`);
/** `root`: the folder that holds the files, where paths of the host are used. */
export const outsideRoot = (path: string, root: string) =>
  makeFailure("outside_root", `'${path}' is outside the root directory. Files are in: ${root}`);
/** A link that leads out of the root, or into a loop. */
export const symlinkNotAllowed = (path: string, code: "outside_root" | "symlink") =>
  makeFailure(code, `Symlinks are not allowed: ${path}`);

// Files and directories

export const fileNotFound = (path: string) => makeFailure("not_found", `File '${path}' not found`);
export const directoryNotFound = (path: string) => makeFailure("not_found", `Directory '${path}' not found`);
/** For a search, whose path may be a directory or a file. */
export const pathNotFound = (path: string) => makeFailure("not_found", `'${path}' not found`);
export const notDirectory = (path: string) => makeFailure("not_directory", `'${path}' is not a directory`);
export const isDirectory = (path: string) => makeFailure("is_directory", `'${path}' is a directory`);
export const parentIsFile = (path: string) =>
  makeFailure("not_directory", `'${path}' cannot exist because one of its parent directories is a file`);
export const notRegularFile = (path: string) => makeFailure("unsupported", `'${path}' is not a regular file`);
export const alreadyExists = (path: string) =>
  makeFailure(
    "exists",
    `Cannot write to ${path} because it already exists. Read it and change it with edit_file, or choose a new path.`,
  );
export const writeToSymlink = (path: string) =>
  makeFailure("symlink", `Cannot write to ${path} because it is a symlink. Symlinks are not allowed.`);
export const permissionDenied = (path: string) =>
  makeFailure("permission_denied", `Permission denied: ${path}`);
export const readOnlyFile = (path: string) =>
  makeFailure(
    "permission_denied",
    `File '${path}' is read-only: its mode denies writing to everyone. It can be changed only after a person approves that. Ask for approval, or write to another file.`,
  );
export const ioFailure = (path: string, reason: string) =>
  makeFailure("io", `'${path}' could not be accessed: ${reason}`);
/** The backend itself failed; `reason` is shown, `thrown` is for the log. */
export const backendFailed = (path: string, reason: string, thrown: unknown) => ({
  ...makeFailure("backend_error", `'${path}' could not be accessed: ${reason}`),
  cause: thrown,
});
export const deletionUnavailable = (path: string) =>
  makeFailure("unsupported", `deletion is not available for '${path}'.`);
export const refusedToDelete = (path: string) =>
  makeFailure("permission_denied", `Refusing to delete '${path}'`);
export const partlyDeleted = (path: string, removed: readonly string[], reason: string) =>
  makeFailure(
    "io",
    `'${path}' was deleted only partly (removed: ${removed.join(", ") || "nothing"}): ${reason}`,
  );

// Content

export const unknownEncoding = (path: string) =>
  makeFailure("encoding", `File '${path}' is not text in UTF-8 or another known encoding`);
/** `doubt`: why the text that was read is not certainly the one of the file, as a clause. */
export const uncertainEncoding = (path: string, encoding: string, doubt: string) =>
  makeFailure(
    "encoding",
    `File '${path}' was read as ${encoding.toUpperCase()}, but ${doubt}, so it cannot be edited. ${toConvert(encoding)}`,
  );
/** The next step for a text that cannot be written back. */
const toConvert = (encoding: string) =>
  encoding === "utf-8"
    ? "Repair these bytes with a command, or ask which encoding they have."
    : `If it reads right, convert it with a command first: iconv -f ${encoding.toUpperCase()} -t UTF-8. Otherwise ask for its encoding.`;
export const notInEncoding = (path: string, character: string, encoding: string) =>
  makeFailure(
    "encoding",
    `'${character}' (U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}) cannot be written to '${path}': its encoding ${encoding.toUpperCase()} does not have this character. Use another one, or convert the file with a command first: iconv -f ${encoding.toUpperCase()} -t UTF-8.`,
  );
export const binaryFile = (path: string) => makeFailure("binary", `File '${path}' is binary`);
export const binaryEdit = (path: string) =>
  makeFailure("binary", `File '${path}' is binary and cannot be edited as text`);
export const invalidBase64 = (path: string, mimeType: string) =>
  makeFailure("encoding", `Content of '${path}' must be base64, because its type is ${mimeType}`);
export const binaryTooLarge = (bytes: number) =>
  makeFailure(
    "too_large",
    `file too large to read (${megabytes(bytes)}MB exceeds 10MB limit for binary files)`,
  );
export const tooLargeToEdit = (path: string, bytes: number, limit: number) =>
  makeFailure(
    "too_large",
    `File '${path}' is too large to edit (${megabytes(bytes)} MB, limit ${megabytes(limit)} MB)`,
  );
export const tooLargeToLoad = (path: string, bytes: number, limit: number) =>
  makeFailure(
    "too_large",
    `File '${path}' is too large to load at once (${megabytes(bytes)} MB, limit ${megabytes(limit)} MB); read it in pages`,
  );
export const fileTooLarge = (path: string, bytes: number, limit: number) =>
  makeFailure(
    "too_large",
    `File '${path}' is too large for this backend (${megabytes(bytes)} MB, limit ${megabytes(limit)} MB)`,
  );
export const textBeforeCells = () =>
  makeFailure(
    "unsupported",
    "This is a notebook: put a line such as <cell: code> or <cell: markdown> before the text of its first cell",
  );

export const changedOutputs = (cell: number) =>
  makeFailure(
    "unsupported",
    `Outputs come from running the notebook: the outputs of cell ${cell} can be removed, but not changed`,
  );
/** `text` is the store's own, and names the path. */
export const memoryTooLarge = (text: string) => makeFailure("too_large", text);
export const lineTooLong = (path: string, line: number, limit: number) =>
  makeFailure("too_large", `Line ${line} of '${path}' is too long to read (limit ${megabytes(limit)} MB)`);
export const offsetPastEnd = (offset: number, lines: number) =>
  makeFailure("out_of_range", `Line offset ${offset} exceeds file length (${lines} lines)`);

// Edits

export const stringNotFound = (old: string) =>
  makeFailure("no_match", `String not found in file: '${shortQuote(old)}'`);
export const stringAmbiguous = (old: string, count: number) =>
  makeFailure(
    "ambiguous",
    `String '${shortQuote(old)}' appears ${count} times in file. Use replace_all=True to replace all of them, or add surrounding text so that it is unique.`,
  );
export const tooManyMatches = (old: string, most: number) =>
  makeFailure(
    "ambiguous",
    `String '${shortQuote(old)}' appears more than ${most} times in file. Add surrounding text so that it appears less often, or change the file with a command.`,
  );
export const emptyOldString = () =>
  makeFailure("no_match", "oldString cannot be empty when file has content");
export const identicalStrings = () =>
  makeFailure("no_match", "old_string and new_string are identical; nothing to change.");
export const changedSinceRead = (path: string) =>
  makeFailure("conflict", `File '${path}' changed since it was read; read it again and retry.`);

// Searches

export const invalidGlob = (reason: string) =>
  makeFailure("invalid_pattern", `Invalid glob pattern: ${reason}`);
export const climbingGlob = (pattern: string) =>
  makeFailure("invalid_pattern", `Path traversal not allowed: ${pattern}`);
export const invalidRegex = (reason: string) =>
  makeFailure("invalid_pattern", `Invalid regex pattern: ${reason}`);
export const emptySearch = () => makeFailure("invalid_pattern", "Search pattern must be a non-empty string");
export const multilineSearch = () =>
  makeFailure(
    "invalid_pattern",
    "Search pattern contains a line break, but the search reads single lines; search for one of the lines",
  );

// Commands

export const outsideCommandFolder = (directory: string, path: string) =>
  makeFailure("unsupported", `Commands run in ${directory} and below only, not in '${path}'`);

// Policy

export const writesNotAllowed = (path: string) =>
  makeFailure("permission_denied", `Writes are not allowed under ${path}`);
export const editsNotAllowed = (path: string) =>
  makeFailure("permission_denied", `Edits are not allowed under ${path}`);
export const deletesNotAllowed = (path: string) =>
  makeFailure("permission_denied", `Deletes are not allowed under ${path}`);
export const sensitivePath = () => makeFailure("permission_denied", "Access to sensitive paths is forbidden");

// Runtime

export const storeMissing = () =>
  makeFailure("unsupported", "Store is required but not available in runtime");
export const threadFilesMissing = () =>
  makeFailure("unsupported", "Thread files are available only during a run's tool call");
export const operationAborted = (path: string) =>
  makeFailure("aborted", `The operation on '${path}' was cancelled`);

/** The coarse reasons that uploads and downloads report. Every other code is an invalid path. */
const COARSE: Partial<Record<BackendErrorCode, FileOperationError>> = {
  not_found: "file_not_found",
  is_directory: "is_directory",
  permission_denied: "permission_denied",
  outside_root: "permission_denied",
  symlink: "permission_denied",
  io: "permission_denied",
  backend_error: "permission_denied",
};

export const operationError = (code: BackendErrorCode | undefined): FileOperationError | null =>
  code === undefined ? null : (COARSE[code] ?? "invalid_path");

/** Makes a failure of the coarse reason for one file of an upload; without a reason there is no such method. */
export const uploadRefused = (reason: FileOperationError = "permission_denied") =>
  makeFailure(reason === "file_not_found" ? "not_found" : reason, reason);

const SPOKEN_CODES: readonly [pattern: RegExp, code: BackendErrorCode][] = [
  [/string not found|no match/i, "no_match"],
  [/exceeds file length/i, "out_of_range"],
  [/appears \d+ times|multiple (?:matches|occurrences)/i, "ambiguous"],
  [/not a directory|ENOTDIR|EEXIST: file already exists, mkdir/i, "not_directory"],
  [/already exists/i, "exists"],
  [/is a directory|EISDIR/i, "is_directory"],
  [/not found|no such file|does not exist|ENOENT/i, "not_found"],
  [/permission|not allowed under|forbidden|EACCES|EPERM/i, "permission_denied"],
  [/symlink/i, "symlink"],
  [/traversal|outside/i, "outside_root"],
  [/invalid (?:regex|glob|pattern)/i, "invalid_pattern"],
  [/timed? ?out/i, "timeout"],
];

const spokenCode = (said: string): BackendErrorCode | undefined =>
  SPOKEN_CODES.find(([pattern]) => pattern.test(said))?.[1];

/**
 * Turns the text of a backend without codes into a failure. Removes the prefix that tools add. A missing file gets our
 * own text.
 */
export function foreignFailure(path: string, said: string): BackendFailure {
  const text = said.replace(/^Error: /, "");
  // The text of a system call contains paths of the host.
  if (/\bE[A-Z]{2,}: [^,:]*, \w+ '/.test(text)) return thrownFailure(path, text);
  const code = spokenCode(text);
  return code === "not_found" ? fileNotFound(path) : makeFailure(code ?? "io", text || "the backend failed");
}

/** The failures for exceptions of foreign backends with such a code. */
const THROWN: Partial<Record<BackendErrorCode, FailureAt>> = {
  not_found: fileNotFound,
  is_directory: isDirectory,
  not_directory: parentIsFile,
  permission_denied: permissionDenied,
};

/** Turns an exception of a foreign backend into a failure. Hides its text, which may name host paths. */
export function thrownFailure(path: string, thrown: unknown): BackendFailure {
  const code = spokenCode(errorMessage(thrown));
  return (code && THROWN[code]?.(path)) ?? backendFailed(path, "its backend failed", thrown);
}
