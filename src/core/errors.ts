/**
 * The one error family of the project.
 *
 * `message` is written for the person or model that reads it: what happened, to which thing, what to
 * do next. It never carries a stack, a secret or a host path. `code` is stable; programs branch on it.
 * Expected failures of backends and tools are values, not exceptions; this class is for broken
 * configuration, broken contracts and failures that end a run.
 */
export class DeepAgentError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Wrong parameters or configuration, found before anything ran. */
export class ConfigurationError extends DeepAgentError {}

/** A run cannot continue; `code` becomes the run's stable `failure_reason`. */
export class RunFailure extends DeepAgentError {}

/** A memory over the limit of a store, which stored nothing of its batch. */
export class MemoryTooLarge extends DeepAgentError {
  constructor(key: string, bytes: number, limit: number) {
    const [found, most] = [bytes, limit].map((count) => count.toLocaleString("en"));
    super(
      "memory_too_large",
      `'${key}' is too large for a memory: it has ${found} bytes, and a memory has at most ${limit / 2 ** 20} MB ` +
        `(${most} bytes). Split it into several, or keep it as a file outside the memories.`,
    );
  }
}

/** The text of anything that was thrown, without its stack. */
export function errorMessage(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  return typeof thrown === "string" ? thrown : "unknown error";
}

/** The code of a system error or of this family, such as `ENOENT`; `undefined` when it has none. */
export const codeOf = (thrown: unknown): string | undefined =>
  thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;

export const isAbortError = (thrown: unknown): boolean =>
  thrown instanceof Error && (thrown.name === "AbortError" || thrown.name === "TimeoutError");

/** The reason to interrupt work that others continue. */
export class Parked extends Error {
  override readonly name = "AbortError";

  constructor() {
    super("the server is stopping; the run continues when a server is available again");
  }
}

export const isParked = (signal: AbortSignal | undefined): boolean => signal?.reason instanceof Parked;

/** Stable reasons why the database cannot be used. */
export type StorageErrorCode =
  | "storage_not_loaded"
  | "storage_directory"
  | "storage_not_a_database"
  | "storage_corrupt"
  | "storage_newer"
  | "storage_migration"
  | "storage_busy"
  | "storage_full"
  | "storage_readonly"
  | "storage_io";

/** A failure of the database file or its directory; `name` in the texts is the file's own name, without its folder. */
export class StorageError extends DeepAgentError {
  override readonly code: StorageErrorCode;

  constructor(code: StorageErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
    this.code = code;
  }
}

const TRANSIENT: ReadonlySet<StorageErrorCode> = new Set([
  "storage_busy",
  "storage_full",
  "storage_readonly",
  "storage_directory",
  "storage_io",
]);

/** True if a later attempt may succeed, once there is space again, a lock is released or a disk is mounted. */
export const isTransient = (thrown: unknown): thrown is StorageError =>
  thrown instanceof StorageError && TRANSIENT.has(thrown.code);

/** True if another connection held the lock until the end of a try. */
export const isLocked = (thrown: unknown): thrown is StorageError =>
  thrown instanceof StorageError && thrown.code === "storage_busy";

/** True if a disk had too little space for a write. */
export const isFull = (thrown: unknown): boolean =>
  thrown instanceof StorageError && thrown.code === "storage_full";

/** The result of `run`, or `otherwise` if it throws. */
export function orElse<Result, Other>(run: () => Result, otherwise: Other): Result | Other {
  try {
    return run();
  } catch {
    return otherwise;
  }
}
