/**
 * The port behind which files live.
 *
 * Together with `executor.ts` it is a superset of the deepagents JS v2 backend and sandbox protocols. All additions
 * are optional, so a backend written for those fits here and ours fit there. Paths are absolute virtual paths such as
 * `/notes/a.md`. Expected failures are values (`error`, `code`), never exceptions. Their texts have no prefix
 * `Error: `, which the tool layer adds once.
 */
import type { Logger } from "../core/logger.ts";
import type { TextEncoding } from "./encoding.ts";

export type MaybePromise<T> = T | Promise<T>;

/** Stable reason of a failure. Programs branch on it, never on the text. */
export type BackendErrorCode =
  | "not_found"
  | "exists"
  | "is_directory"
  | "not_directory"
  | "permission_denied"
  | "invalid_path"
  | "outside_root"
  | "symlink"
  | "binary"
  | "encoding"
  | "too_large"
  | "no_match"
  | "ambiguous"
  | "conflict"
  | "invalid_pattern"
  | "out_of_range"
  | "timeout"
  | "aborted"
  | "unsupported"
  | "io"
  | "backend_error";

export interface Failure {
  error?: string;
  code?: BackendErrorCode;
  /** The exception behind a `backend_error`, for logs only: it may name hosts, users and files. */
  cause?: unknown;
}

export interface CallOptions {
  signal?: AbortSignal;
  /**
   * The result of `followLinks` for the path of this call, after a caller has judged it. The backend then works there,
   * and refuses a link that appears on this path. Failures and results still show the path of the call. For `write` and
   * `delete`, the result with `lastLink: "itself"`. Backends without `followLinks` ignore it.
   */
  realPath?: string;
  /**
   * True for each path of this backend that the caller hides. The backend then does not read a file that has such a
   * path besides the one by which it is opened, because of a hard link. Backends without `followLinks` ignore it.
   */
  hides?: (path: string) => boolean;
}

export interface EditOptions extends CallOptions {
  /** Compare-and-set: fails with `conflict` unless the stored version is this one. */
  expectedVersion?: string;
  /**
   * Receives the whole text before and after the edit, for each attempt to store it. The last call counts, if the edit
   * succeeds. A backend that does not have both texts at hand never calls it.
   */
  onChange?(before: string, after: string): void;
  /** Changes a file that its mode lets no one write to. Default false: that fails with `permission_denied`. */
  evenReadOnly?: boolean | undefined;
}

export interface WriteOptions extends Omit<EditOptions, "onChange"> {
  /** Default `create`: an existing path fails with `exists`. */
  mode?: "create" | "overwrite";
  /** The encoding to store a text in. Default `utf-8`. */
  encoding?: TextEncoding;
}

export interface ResolveOptions {
  /** Default `target`. */
  lastLink?: "itself" | "target";
}

export interface GrepOptions extends CallOptions {
  /** Default false: the pattern is literal text. Expressions have the syntax of RE2 and take linear time. */
  regex?: boolean;
  /** Default true. */
  caseSensitive?: boolean;
  /** Lines of context before and after each match. Default 0. */
  contextLines?: number;
  /** Matches per file. Default: no cap of its own. */
  maxPerFile?: number;
}

/** The abilities of a backend beyond the required methods. They are declared as data, never sniffed. */
export interface BackendCapabilities {
  writeMode: boolean;
  regexGrep: boolean;
  versions: boolean;
  abort: boolean;
  executeOptions: boolean;
  rawRead: boolean;
  paths: "virtual" | "real";
  lifetime: "thread" | "persistent";
  /**
   * Result of two processes writing one file at the same time: one of them gets a conflict, or the later write
   * replaces the earlier one. Within one process every backend reports the conflict.
   */
  writes: "compare-and-set" | "last-writer-wins";
  isolation: "none" | "process" | "container" | "remote";
  /** `remote`: each operation is a command or a request, so that few are made to help with a mistake. */
  latency: "local" | "remote";
}

export interface FileInfo {
  path: string;
  is_dir?: boolean;
  /** Bytes. */
  size?: number;
  /** ISO 8601. */
  modified_at?: string;
  version?: string;
  /** True for a file that its mode lets no one write to. */
  read_only?: boolean;
  /** True for a file that git ignores, in the results of a search. It comes after all others. */
  ignored?: boolean;
  /** Number of its names, for a file with hard links. */
  names?: number;
  /** For a link that leads to a place of the backend: that place, even if it does not exist. */
  real_path?: string;
}

export interface GrepMatch {
  path: string;
  /** See `FileInfo`. */
  ignored?: boolean;
  /** Counts from 1. */
  line: number;
  text: string;
  before?: string[];
  after?: string[];
}

export interface LsResult extends Failure {
  files?: FileInfo[];
  /** Entries that exist but could not be read. */
  skipped?: number;
}

export interface GlobResult extends Failure {
  files?: FileInfo[];
  truncated?: boolean;
  /** Directories that could not be searched. */
  skipped?: number;
  /** One sentence for each mount that failed while others answered. */
  notes?: string[];
}

export interface GrepResult extends Failure {
  matches?: GrepMatch[];
  truncated?: boolean;
  /** Files that were not searched: unreadable ones, and those over the size limit that could match. */
  skipped?: number;
  /** One sentence for each other part that was not searched, such as a mount that failed while others answered. */
  notes?: string[];
}

export interface ReadResult extends Failure {
  /**
   * Raw text without line numbers and byte order mark. Each line has its line end, so joined pages are the file.
   * For a binary file, all of its bytes.
   */
  content?: string | Uint8Array;
  mimeType?: string;
  totalLines?: number;
  /** First line returned, counted from 0. */
  startLine?: number;
  /** One past the last line returned. */
  endLine?: number;
  /** Offset to continue with; absent when nothing remains. */
  nextOffset?: number;
  version?: string;
  /** Encoding of a text that is not UTF-8. An edit keeps it. */
  encoding?: TextEncoding;
  /** Why the text may be wrong, as a clause: the encoding is a guess, for example. Such a text cannot be edited. */
  doubt?: string;
}

/** A stored file. Version 1 keeps lines, version 2 (what we write) keeps text or bytes and a type. */
export type FileData = FileDataV1 | FileDataV2;

/** When a stored file was made and changed. */
export interface FileTimes {
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  modified_at: string;
  /** Counts the changes of a file in thread state. Of two changes in one step, the later one has the higher number. */
  revision?: number;
}

export interface FileDataV1 extends FileTimes {
  content: string[];
}

export interface FileDataV2 extends FileTimes {
  content: string | Uint8Array;
  mimeType: string;
}

/** Changes of files kept in thread state: new content by path, `null` deletes. */
export type FilesUpdate = Record<string, FileData | null>;

export interface ReadRawResult extends Failure {
  data?: FileData;
  version?: string;
}

export interface WriteResult extends Failure {
  path?: string;
  /** The change for in-state backends, `null` for external storage. */
  filesUpdate?: Record<string, FileData> | null;
  version?: string;
  /** Other paths of a file with hard links, which changed with it, as far as they were found. */
  otherNames?: readonly string[];
  metadata?: Record<string, unknown>;
}

export interface EditResult extends WriteResult {
  occurrences?: number;
}

export interface DeleteResult extends Failure {
  path?: string;
  filesUpdate?: Record<string, null> | null;
  /** Files of the thread in which an overlay marks deletions in its base. Part of the change. */
  recorded?: Record<string, FileData>;
  metadata?: Record<string, unknown>;
}

export type FileOperationError = "file_not_found" | "permission_denied" | "is_directory" | "invalid_path";

export interface FileUploadResponse {
  path: string;
  error: FileOperationError | null;
  /** The change for in-state backends, `null` for external storage. */
  filesUpdate?: Record<string, FileData> | null;
}

export interface FileDownloadResponse {
  path: string;
  error: FileOperationError | null;
  content: Uint8Array | null;
}

/** The beginning of a subtree, for the prompt of the agent. */
export interface FileRoot {
  /** Without a slash at its end, unless it is `/`. */
  path: string;
  /** `thread`: files of this conversation. `kept`: files for later ones. `disk`: the user's own. `sandbox`: where commands run. */
  holds: "thread" | "kept" | "disk" | "sandbox";
  readOnly?: boolean;
}

export interface Backend {
  readonly capabilities?: Partial<BackendCapabilities> | undefined;
  /**
   * Lifetime of files at a path and below. Only for backends in which it depends on the path; otherwise
   * `capabilities.lifetime` applies everywhere.
   */
  lifetimeOf?(path: string): MaybePromise<BackendCapabilities["lifetime"]>;
  /**
   * The roots of the tree for the prompt of the agent, the same for each call. A backend without this method has the
   * root `/` alone, whose files have the lifetime of `capabilities.lifetime`.
   */
  roots?(): MaybePromise<readonly FileRoot[]>;
  /**
   * Follows links and returns the real path, also of a file that does not exist yet. With `lastLink: "itself"` a link
   * at the end is not followed. Returns undefined for a link that leads out of the backend. A backend without this
   * method has no links. A backend with it marks the links that `ls` and `glob` list with `real_path`, and follows none
   * below the path of a `glob` or `grep`.
   */
  followLinks?(path: string, options?: ResolveOptions): MaybePromise<string | undefined>;
  /**
   * Returns the failure of a change that cannot succeed until something else changes, so that no person is asked about
   * it. Only looks at the entry, the directories above it and rules; `delete` may look below it, too. Returns undefined
   * if the change may succeed, like a backend without this method.
   */
  refusal?(
    change: "write" | "edit" | "delete",
    path: string,
    options?: CallOptions,
  ): MaybePromise<Failure | undefined>;
  /** Entries of one directory, sorted by path; directories end in `/`. */
  ls(path: string, options?: CallOptions): MaybePromise<LsResult>;
  /**
   * Reads the lines `[offset, offset + limit)`, counted from 0; by default the first 2000. Holds only these in memory.
   * A page larger than 10 MiB ends earlier, at a line end.
   */
  read(filePath: string, offset?: number, limit?: number, options?: CallOptions): MaybePromise<ReadResult>;
  readRaw(filePath: string, options?: CallOptions): MaybePromise<ReadRawResult>;
  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): MaybePromise<GrepResult>;
  glob(pattern: string, path?: string, options?: CallOptions): MaybePromise<GlobResult>;
  write(filePath: string, content: string, options?: WriteOptions): MaybePromise<WriteResult>;
  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
    options?: EditOptions,
  ): MaybePromise<EditResult>;
  delete?(filePath: string, options?: CallOptions): MaybePromise<DeleteResult>;
  uploadFiles?(files: Array<[string, Uint8Array]>, options?: CallOptions): MaybePromise<FileUploadResponse[]>;
  downloadFiles?(paths: string[], options?: CallOptions): MaybePromise<FileDownloadResponse[]>;
}

/** Files of the running thread, as one tool call sees them: checkpointed state plus this step's changes. */
export interface ThreadFiles {
  get(path: string): FileData | undefined;
  entries(): Iterable<[string, FileData]>;
  /** Makes a change visible to later calls of the same step. The caller also returns it as `filesUpdate`. */
  apply(update: FilesUpdate): void;
}

/** The argument of a backend factory for one call. */
export interface BackendRuntime {
  files: ThreadFiles;
  /** LangGraph `BaseStore`, when the agent has one. */
  store?: import("@langchain/langgraph-checkpoint").BaseStore;
  /** The run's read-only context. */
  context?: unknown;
  /** The agent's state as the call finds it. */
  state?: unknown;
  config?: {
    readonly configurable?: Readonly<Record<string, unknown>>;
    readonly metadata?: Readonly<Record<string, unknown>>;
  };
  threadId?: string;
  assistantId?: string;
  /** Logs the exceptions of backends. */
  log?: Logger;
}

export type BackendFactory = (runtime: BackendRuntime) => MaybePromise<Backend>;
/** A backend class such as `StateBackend`; each call creates a new instance. */
export type BackendClass = new (runtime: BackendRuntime) => Backend;
/** A backend, or how to make one: accepted by all parameters for backends. */
export type BackendSource = Backend | BackendFactory | BackendClass;
