import { errorMessage } from "../core/errors.ts";
import { headOf, fill } from "../core/text.ts";
import type { BackendErrorCode, FileOperationError } from "./backend.ts";
import table from "./errors.json" with { type: "json" };
import texts from "./texts.json" with { type: "json" };

/**
 * Every way a file operation fails: one function, one code and one text per fact. `errors.json` has those whose text
 * names at most two things as they are, and what error codes mean.
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

/** A function for each row, which fills the gaps of its text. A test compares the codes of the table with the type. */
const readRows = (rows: Readonly<Record<string, readonly string[]>>): Record<string, FailureAt> =>
  Object.fromEntries(
    Object.entries(rows).map(([name, [code, text = ""]]) => [
      name,
      (...about: (string | number)[]) => makeFailure(code as BackendErrorCode, fill(text, ...about)),
    ]),
  );

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

/** The next step for a text that cannot be written back. */
const toConvert = (encoding: string) =>
  encoding === "utf-8"
    ? "Repair these bytes with a command, or ask which encoding they have."
    : `If it reads right, convert it with a command first: iconv -f ${encoding.toUpperCase()} -t UTF-8. Otherwise ask for its encoding.`;

/**
 * A function for each fact. Those of the table have a `fixed` text, one that is `about` a path or another text, or one
 * with `two` values.
 */
export const errors = {
  ...(readRows(table.fixed) as Record<keyof typeof table.fixed, () => BackendFailure>),
  ...(readRows(table.about) as Record<keyof typeof table.about, FailureAt>),
  ...(readRows(table.two) as Record<
    keyof typeof table.two,
    (one: string | number, other: string | number) => BackendFailure
  >),
  pathNotAllowed: (path: string, prefixes: readonly string[]) =>
    makeFailure("invalid_path", `Path must start with one of ${JSON.stringify(prefixes)}: ${path}`),
  /** `root`: the folder that holds the files, where paths of the host are used. */
  outsideRoot: (path: string, root: string) =>
    makeFailure("outside_root", `'${path}' is outside the root directory. Files are in: ${root}`),
  /** A link that leads out of the root, or into a loop. */
  symlinkNotAllowed: (path: string, code: "outside_root" | "symlink") =>
    makeFailure(code, `Symlinks are not allowed: ${path}`),
  /** The backend itself failed; `reason` is shown, `thrown` is for the log. */
  backendFailed: (path: string, reason: string, thrown: unknown) => ({
    ...makeFailure("backend_error", `'${path}' could not be accessed: ${reason}`),
    cause: thrown,
  }),
  partlyDeleted: (path: string, removed: readonly string[], reason: string) =>
    makeFailure("io", fill(texts.partlyDeleted, path, removed.join(", ") || "nothing", reason)),
  /** `doubt`: why the text that was read is not certainly the one of the file, as a clause. */
  uncertainEncoding: (path: string, encoding: string, doubt: string) =>
    makeFailure(
      "encoding",
      fill(texts.uncertainEncoding, path, encoding.toUpperCase(), doubt, toConvert(encoding)),
    ),
  notInEncoding: (path: string, character: string, encoding: string) =>
    makeFailure(
      "encoding",
      `'${character}' (U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}) cannot be written to '${path}': its encoding ${encoding.toUpperCase()} does not have this character. Use another one, or convert the file with a command first: iconv -f ${encoding.toUpperCase()} -t UTF-8.`,
    ),
  binaryTooLarge: (bytes: number) => makeFailure("too_large", fill(texts.binaryTooLarge, megabytes(bytes))),
  tooLargeToEdit: (path: string, bytes: number, limit: number) =>
    makeFailure("too_large", fill(texts.tooLargeToEdit, path, megabytes(bytes), megabytes(limit))),
  tooLargeToLoad: (path: string, bytes: number, limit: number) =>
    makeFailure("too_large", fill(texts.tooLargeToLoad, path, megabytes(bytes), megabytes(limit))),
  fileTooLarge: (path: string, bytes: number, limit: number) =>
    makeFailure("too_large", fill(texts.fileTooLarge, path, megabytes(bytes), megabytes(limit))),
  changedOutputs: (cell: number) => makeFailure("unsupported", fill(texts.changedOutputs, cell)),
  lineTooLong: (path: string, line: number, limit: number) =>
    makeFailure("too_large", `Line ${line} of '${path}' is too long to read (limit ${megabytes(limit)} MB)`),
  stringNotFound: (old: string) => makeFailure("no_match", `String not found in file: '${shortQuote(old)}'`),
  stringAmbiguous: (old: string, count: number) =>
    makeFailure("ambiguous", fill(texts.stringAmbiguous, shortQuote(old), count)),
  tooManyMatches: (old: string, most: number) =>
    makeFailure("ambiguous", fill(texts.tooManyMatches, shortQuote(old), most)),
};

/** The coarse reasons that uploads and downloads report. Every other code is an invalid path. */
const COARSE: Partial<Record<BackendErrorCode, FileOperationError>> = table.coarse as object; // codes of the table

export const operationError = (code: BackendErrorCode | undefined): FileOperationError | null =>
  code === undefined ? null : (COARSE[code] ?? "invalid_path");

/** Makes a failure of the coarse reason for one file of an upload; without a reason there is no such method. */
export const uploadRefused = (reason: FileOperationError = "permission_denied") =>
  makeFailure(reason === "file_not_found" ? "not_found" : reason, reason);

const SPOKEN_CODES = table.spoken.map(
  // A test compares the codes with the type.
  ([words = "", code = ""]) => [new RegExp(words, "i"), code as BackendErrorCode] as const,
);

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
  return code === "not_found"
    ? errors.fileNotFound(path)
    : makeFailure(code ?? "io", text || "the backend failed");
}

/** The failures for exceptions of foreign backends with such a code. */
const THROWN: Partial<Record<BackendErrorCode, FailureAt>> = {
  not_found: errors.fileNotFound,
  is_directory: errors.isDirectory,
  not_directory: errors.parentIsFile,
  permission_denied: errors.permissionDenied,
};

/** Turns an exception of a foreign backend into a failure. Hides its text, which may name host paths. */
export function thrownFailure(path: string, thrown: unknown): BackendFailure {
  const code = spokenCode(errorMessage(thrown));
  return (code && THROWN[code]?.(path)) ?? errors.backendFailed(path, "its backend failed", thrown);
}
