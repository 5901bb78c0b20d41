export type FileToolName =
  | "ls"
  | "read_file"
  | "write_file"
  | "edit_file"
  | "glob"
  | "grep"
  | "delete"
  | "execute"
  | "job";

export const WEB_TOOL_NAMES = ["web_fetch", "web_search"] as const;
export type WebToolName = (typeof WEB_TOOL_NAMES)[number];

/** Options of the file tools of one agent. */
export interface FileToolOptions {
  /** Size in tokens (4 characters each) at which `read_file` ends a page. `null`: no limit. Default 20000. */
  evictTokens?: number | null;
  /** Default match limit of `grep`. Default 1000. */
  grepMaxCount?: number;
  /** Default number of lines that `read_file` returns. Default 2000. */
  readLimit?: number;
  /** Longest line `read_file` shows in one piece. Default 10000. */
  maxLineChars?: number;
  /** Paths the tools accept, with everything below them. Default: all. */
  allowedPrefixes?: readonly string[];
  /** Texts that replace the built-in descriptions. */
  toolDescriptions?: Readonly<Partial<Record<FileToolName, string>>>;
  /** The tools to offer, of those that are on. Default: all of them. */
  tools?: readonly FileToolName[];
  /** True if `delete` is on. Default true. */
  delete?: boolean;
  /** True if `execute` starts background jobs, which `job` lists, reads and stops. Default false. */
  jobs?: boolean;
  /**
   * Accepts images, audio, video and PDF files for the model, by MIME type. Default: all audio, video and PDF, and the
   * image types every model with images reads: PNG, JPEG, GIF and WebP.
   */
  acceptsMedia?: (mimeType: string) => boolean;
}

/** The options with their defaults, in the units the tools work with. */
export interface FileToolSettings {
  /** Characters of a `read_file` page; `undefined`: no limit. */
  readonly maxChars: number | undefined;
  readonly grepMaxCount: number;
  readonly readLimit: number;
  readonly maxLineChars: number;
  readonly allowedPrefixes: readonly string[] | undefined;
  readonly jobs: boolean;
  readonly acceptsMedia: (mimeType: string) => boolean;
}

export function resolveOptions(options: FileToolOptions): FileToolSettings {
  const evictTokens = options.evictTokens === undefined ? 20_000 : options.evictTokens;
  return {
    maxChars: evictTokens === null ? undefined : evictTokens * 4,
    grepMaxCount: options.grepMaxCount ?? 1000,
    readLimit: options.readLimit ?? 2000,
    maxLineChars: options.maxLineChars ?? 10_000,
    allowedPrefixes: options.allowedPrefixes,
    jobs: options.jobs ?? false,
    acceptsMedia:
      options.acceptsMedia ??
      ((type) => /^(image\/(png|jpeg|gif|webp)|audio\/.+|video\/.+|application\/pdf)$/.test(type)),
  };
}
