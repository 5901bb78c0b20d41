const FILE_TOOLS = [
  "ls",
  "read_file",
  "write_file",
  "edit_file",
  "glob",
  "grep",
  "delete",
  "execute",
  "job",
] as const;
export type FileToolName = (typeof FILE_TOOLS)[number];
/** In the order in which they are listed. */
export const FILE_TOOL_NAMES: readonly string[] = FILE_TOOLS;

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
export type FileToolSettings = Readonly<
  Required<Pick<FileToolOptions, "grepMaxCount" | "readLimit" | "maxLineChars" | "jobs" | "acceptsMedia">>
> & {
  /** Characters of a `read_file` page; `undefined`: no limit. */
  readonly maxChars: number | undefined;
  readonly allowedPrefixes: readonly string[] | undefined;
};

export function resolveOptions({ evictTokens = 20_000, ...options }: FileToolOptions): FileToolSettings {
  const { grepMaxCount = 1000, readLimit = 2000, maxLineChars = 10_000, jobs = false } = options;
  const usualMedia = /^(image\/(png|jpeg|gif|webp)|audio\/.+|video\/.+|application\/pdf)$/;
  const { allowedPrefixes, acceptsMedia = (type: string) => usualMedia.test(type) } = options;
  const maxChars = evictTokens === null ? undefined : evictTokens * 4;
  return { maxChars, grepMaxCount, readLimit, maxLineChars, allowedPrefixes, jobs, acceptsMedia };
}
