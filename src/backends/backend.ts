import type { Logger } from "../core/logger.ts";

/** A command that was started in the background. */
export interface JobInfo {
  id: string;
  command: string;
  /** ISO 8601. */
  startedAt: string;
  /** Absent while it runs; `null` when it could not be started. */
  exitCode?: number | null;
}

export interface JobResult extends Failure {
  job?: JobInfo;
  /** Standard output and standard error so far. */
  output?: string;
  truncated?: boolean;
}

/** Background jobs end with the backend. An unknown id fails with `not_found`. */
export interface BackgroundJobs {
  start(command: string, options?: Pick<ExecuteOptions, "cwd" | "env">): MaybePromise<JobResult>;
  /** In the order in which they were started. */
  list(): MaybePromise<JobInfo[]>;
  read(id: string): MaybePromise<JobResult>;
  /** Ends a job with everything it started, and gives its last state. */
  stop(id: string): MaybePromise<JobResult>;
}

/**
 * The port behind which files live and commands run.
 *
 * Structurally a superset of the deepagents JS v2 backend and sandbox protocols: everything added is
 * optional, so a backend written for those fits here and ours fit there. Paths are absolute virtual
 * paths such as `/notes/a.md`. Expected failures are values (`error`, `code`), never exceptions; the
 * text has no `Error: ` prefix, which the tool layer adds once.
 */

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
  /** What was thrown (`backend_error`), for logs only: it may name hosts, users and files. */
  cause?: unknown;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface EditOptions extends CallOptions {
  /** Compare-and-set: fails with `conflict` unless the stored version is this one. */
  expectedVersion?: string;
}

export interface WriteOptions extends EditOptions {
  /** Default `create`: an existing path fails with `exists`. */
  mode?: "create" | "overwrite";
}

export interface ResolveOptions {
  /** Default `target`. */
  lastLink?: "itself" | "target";
}

export interface GrepOptions extends CallOptions {
  /** Default false: the pattern is literal text. Expressions are RE2 / Rust-regex syntax, linear in time. */
  regex?: boolean;
  /** Default true. */
  caseSensitive?: boolean;
  /** Lines of context before and after each match. Default 0. */
  contextLines?: number;
  /** Matches per file. Default: no cap of its own. */
  maxPerFile?: number;
}

export interface ExecuteOptions extends CallOptions {
  /** Seconds. */
  timeout?: number;
  cwd?: string;
  env?: Record<string, string>;
  /** Bytes of output to hold for `whole`, beyond what `output` has. Default: none. */
  keepBytes?: number;
  onOutput?(chunk: string): void;
}

/** What a backend can do beyond the required methods; declared as data, never sniffed. */
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
   * Tells what happens when two processes write one file at the same time: one of them is told of a conflict, or
   * the later write replaces the earlier one. Within one process every backend tells of the conflict.
   */
  writes: "compare-and-set" | "last-writer-wins";
  isolation: "none" | "process" | "container" | "remote";
}

export interface FileInfo {
  path: string;
  is_dir?: boolean;
  /** Bytes. */
  size?: number;
  /** ISO 8601. */
  modified_at?: string;
  version?: string;
}

export interface GrepMatch {
  path: string;
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
  /** Parts of the tree that failed while others answered, one sentence each. */
  notes?: string[];
}

export interface GrepResult extends Failure {
  matches?: GrepMatch[];
  truncated?: boolean;
  /** Files not searched: unreadable, or over the size limit unless it is known that they do not match. */
  skipped?: number;
  /** Parts of the tree that failed while others answered, one sentence each. */
  notes?: string[];
}

export interface ReadResult extends Failure {
  /**
   * Raw text without line numbers and byte order mark, each line with its line end, so that pages put
   * together are the file; or the bytes of a binary file, whole.
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
}

/** A stored file. Version 1 keeps lines, version 2 (what we write) keeps text or bytes and a type. */
export type FileData = FileDataV1 | FileDataV2;

/** When a stored file was made and changed. */
export interface FileTimes {
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  modified_at: string;
  /** Counts the changes of a file in thread state: of two changes in one step the higher one is the later. */
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
  metadata?: Record<string, unknown>;
}

export interface EditResult extends WriteResult {
  occurrences?: number;
}

export interface DeleteResult extends Failure {
  path?: string;
  filesUpdate?: Record<string, null> | null;
  /** Of an overlay: files of the thread that record what is deleted in its base. Part of the change. */
  recorded?: Record<string, FileData>;
  metadata?: Record<string, unknown>;
}

export interface ExecuteResponse {
  /** Standard output and standard error. */
  output: string;
  exitCode: number | null;
  truncated: boolean;
  /** When `output` is cut: the output up to the bytes the call asked to keep, and whether that is cut as well. */
  whole?: string;
  timedOut?: boolean;
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

/** A part of a tree of files, as its agent is told of it. */
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
   * How long what is written at a path, or below it, stays. Only where it differs from path to path;
   * otherwise `capabilities.lifetime` tells for all.
   */
  lifetimeOf?(path: string): MaybePromise<BackendCapabilities["lifetime"]>;
  /**
   * Where the parts of its tree begin, for the agent's prompt: the same for each call. A backend without this
   * method has one, `/`, and `capabilities.lifetime` tells what it holds.
   */
  roots?(): MaybePromise<readonly FileRoot[]>;
  /**
   * Where a path leads when links are followed, as a path of this backend; what does not exist yet is where it would
   * be made. With `lastLink: "itself"` a link at the end is not followed. `undefined`: nowhere that can be named. A
   * backend without this method has no links.
   */
  followLinks?(path: string, options?: ResolveOptions): MaybePromise<string | undefined>;
  /** Entries of one directory, sorted by path; directories end in `/`. */
  ls(path: string, options?: CallOptions): MaybePromise<LsResult>;
  /**
   * Lines `[offset, offset + limit)`, counted from 0; by default the first 2000. Only what is asked for is
   * held in memory. A page larger than 10 MiB ends earlier, at a line end.
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

/** Where commands run and what bounds them; what is not known is left out. */
export interface CommandFacts {
  /** Directory in which a command starts, as commands see it. Left out where it is a path of this machine. */
  directory?: string;
  /** The folder of the file tree that is this directory. Default `/`. */
  folder?: string;
  /** Whether commands reach the network. */
  network?: boolean;
  /** Seconds after which a command is ended unless its call says otherwise. */
  timeout?: number;
  /** Bytes of output that are shown. */
  outputBytes?: number;
}

export interface SandboxBackend extends Backend {
  /** Not empty. */
  readonly id: string;
  /** What the model is told of its commands. */
  readonly commands?: CommandFacts;
  /** Commands that go on while others run; absent where there are none. */
  readonly jobs?: BackgroundJobs;
  execute(command: string, options?: ExecuteOptions): MaybePromise<ExecuteResponse>;
}

/** Files of the running thread, as one tool call sees them: checkpointed state plus this step's changes. */
export interface ThreadFiles {
  get(path: string): FileData | undefined;
  entries(): Iterable<[string, FileData]>;
  /** Makes a change visible to later calls of the same step. The caller also returns it as `filesUpdate`. */
  apply(update: FilesUpdate): void;
}

/** What a backend factory gets for one call. */
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
  /** Gets what backends throw. */
  log?: Logger;
}

export type BackendFactory = (runtime: BackendRuntime) => MaybePromise<Backend>;
/** A backend class such as `StateBackend`, made anew for each call. */
export type BackendClass = new (runtime: BackendRuntime) => Backend;
/** What parameters and configuration accept where a backend is meant. */
export type BackendSource = Backend | BackendFactory | BackendClass;
