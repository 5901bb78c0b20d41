import { z } from "zod";
import { byValue } from "../core/by-identity.ts";
import type { GrepMatch } from "../backends/backend.ts";
import { compileGlob, patternFrom } from "../backends/glob.ts";
import { type LineMatcher, MAX_LINE_LENGTH, compileSearch, excerpt } from "../backends/search.ts";
import { groupBy } from "../core/group-by.ts";
import { displayName, wellFormed } from "../core/text.ts";
import { backendError, failedAt, lookedAtRoot, pathText, pathTool, patternText } from "./call.ts";
import { counted, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { ToolContext, ToolResult, ToolSpec } from "./tool.ts";
import { otherReading, readAs } from "./glob.ts";
import texts from "./texts.json" with { type: "json" };

/**
 * Search results as the model reads them; files and lines keep the backend's order. `matcher` finds the
 * match in a line that a backend returned whole although it is too long to show.
 */
export function formatMatches(
  matches: readonly GrepMatch[],
  mode: GrepArguments["output_mode"],
  matcher: LineMatcher,
): { text: string; notices: string[] } {
  const files = [...groupBy(matches, ({ path }) => path)].map(([path, found]) => ({
    name: displayName(path),
    found,
  }));
  if (mode === "files_with_matches") return { text: files.map(({ name }) => name).join("\n"), notices: [] };
  if (mode === "count")
    return { text: files.map(({ name, found }) => `${name}: ${found.length}`).join("\n"), notices: [] };
  // Matching lines and their context, each line once, in order.
  const sections = files.map(({ name, found }) => {
    const lines = new Map<number, ShownLine>();
    const addContext = (number: number, text: string): void => {
      lines.set(number, { number, mark: "-", text: shownText(text, () => undefined) });
    };
    for (const { line, before = [], after = [] } of found) {
      for (const [index, text] of before.entries()) addContext(line - before.length + index, text);
      for (const [index, text] of after.entries()) addContext(line + 1 + index, text);
    }
    for (const { line, text } of found)
      lines.set(line, { number: line, mark: ":", text: shownText(text, matcher) });
    return { name, lines: [...lines.values()].sort((a, b) => a.number - b.number) };
  });
  // A cut may move by one unit to keep a character whole.
  const isExcerpt = ({ text }: ShownLine): boolean =>
    text.length >= MAX_LINE_LENGTH - 2 && (text.startsWith(ELLIPSIS) || text.endsWith(ELLIPSIS));
  const cut = sections.flatMap(({ lines }) => lines).filter(isExcerpt).length;
  const notice = `[${counted(cut, "line")} over ${MAX_LINE_LENGTH} characters shown in part; read a whole line with read_file, offset = its number - 1, limit = 1]`;
  const text = sections
    .flatMap(({ name, lines }) => [
      `${name}:`,
      ...lines.map((line) => `  ${line.number}${line.mark} ${line.text}`),
    ])
    .join("\n");
  return { text, notices: cut > 0 ? [notice] : [] };
}

interface ShownLine {
  number: number;
  /** `:` of a match, `-` of context. */
  mark: ":" | "-";
  text: string;
}

/** Backends cut long lines and mark the cuts; what one returned whole is cut here. */
function shownText(text: string, matcher: LineMatcher): string {
  const line = text.endsWith("\r") ? text.slice(0, -1) : text;
  if (line.length <= MAX_LINE_LENGTH + 2 * ELLIPSIS.length) return wellFormed(line);
  const { start, end } = matcher(line) ?? { start: 0, end: 0 };
  return wellFormed(excerpt(line, start, end));
}

const ELLIPSIS = "…";

const schemaFor = byValue((maxCount: number) =>
  z.strictObject({
    pattern: patternText().describe("Literal text, unless `regex`."),
    path: pathText().optional().describe("Directory or file. Default: /"),
    glob: patternText().nullish().describe("Only these files; without `/`, by name at any depth."),
    output_mode: z.enum(["content", "files_with_matches", "count"]).default("content"),
    max_count: z.int().min(1).max(100_000).default(maxCount),
    regex: z.boolean().default(false).describe("Read the pattern as RE2."),
    case_sensitive: z.boolean().default(true),
    context_lines: z.int().min(0).max(100).default(0),
  }),
);

type GrepSchema = ReturnType<typeof schemaFor>;
type GrepArguments = z.output<GrepSchema>;

export const grepTool = (settings: FileToolSettings): ToolSpec<GrepSchema> =>
  pathTool(
    {
      name: "grep",
      kind: "read",
      description: texts.grep,
      schema: schemaFor(settings.grepMaxCount),
      work: (args, { path }, context) => searchFiles(args, path, context),
      isTried: ({ pattern, regex, glob }, { path }) =>
        !compileSearch(pattern, { regex }).ok ||
        !compileGlob(patternFrom(glob ?? "*", path), { nameAtAnyDepth: true }).ok,
    },
    settings,
  );

async function searchFiles(args: GrepArguments, path: string, context: ToolContext): Promise<ToolResult> {
  const { backend, signal } = context;
  const reading = { regex: args.regex, caseSensitive: args.case_sensitive };
  const search = compileSearch(args.pattern, reading);
  if (!search.ok) return backendError(search, path);
  const glob = patternFrom(args.glob ?? "*", path);
  const filter = compileGlob(glob, { nameAtAnyDepth: true });
  if (!filter.ok) return backendError(filter, path);
  const options = {
    signal,
    ...reading,
    ...(args.output_mode === "content" ? { contextLines: args.context_lines } : {}),
    ...(args.output_mode === "files_with_matches" ? { maxPerFile: 1 } : {}),
  };
  const find = async (files: string | null) =>
    backend.grep(args.pattern, path, files, args.max_count, options);
  const literal = await find(args.glob ? glob : null);
  if (literal.error !== undefined) return failedAt(path, literal, context);
  const other = args.glob && literal.matches?.length === 0 ? otherReading(args.glob) : undefined;
  const meant = other === undefined ? {} : await find(patternFrom(other, path));
  const isOther = other !== undefined && (meant.matches ?? []).length > 0;
  const result = isOther ? meant : literal;
  const matches = (result.matches ?? []).slice(0, args.max_count);
  const formatted = formatMatches(matches, args.output_mode, search.matcher);
  const text =
    matches.length > 0 ? formatted.text : `No matches found for pattern '${displayName(args.pattern)}'`;
  const isMisread = matches.length === 0 && !args.regex && /[\\^$.*+?()[\]{}|]/.test(args.pattern);
  const isElsewhere = matches.length === 0 && result.truncated !== true && typeof args.glob === "string";
  const notices = [
    ...(isOther ? [readAs(other)] : []),
    ...(isMisread ? [await asExpression(args, path, context)] : []),
    ...(matches.length === 0 && args.regex && BREAK.test(args.pattern)
      ? ["[the search reads single lines, in which \\n matches nothing; search for one of the lines]"]
      : []),
    ...(isElsewhere ? await lookedAtRoot(filter.glob, path, context) : []),
    ...formatted.notices,
  ];
  const { truncated = false, skipped = 0, notes = [] } = result;
  const found = result.matches ?? [];
  const isCapped = found.length > args.max_count || (truncated && found.length === args.max_count);
  const stopped = isCapped
    ? `[stopped at ${args.max_count} matches; narrow the pattern or path, or raise max_count]`
    : "[the search stopped before it was complete; narrow the pattern or path]";
  notices.push(
    ...(isCapped || truncated ? [stopped] : []),
    ...(skipped > 0 ? [`[${counted(skipped, "file")} not searched: too large or not readable]`] : []),
    ...notes.map((note) => `[not searched: ${displayName(note)}]`),
  );
  return {
    content: withNotices(text, notices),
    // It is stored with the message and is not evicted.
    artifact: {
      matches: matches.slice(0, 1000).map(({ path, line }) => ({ path, line })),
      count: matches.length,
      truncated: truncated || found.length > matches.length,
      skipped,
    },
  };
}

/** A line break as an escape, outside of sets such as `[^\n]`. */
const BREAK = /(?<!\\)(?:\\\\)*\\[nr](?![^[]*\])/;
const MAX_FOUND_AS_EXPRESSION = 100;

/** Describes the matches of a pattern without matches if it is read as an expression. */
async function asExpression(
  { pattern, glob, case_sensitive: caseSensitive }: GrepArguments,
  path: string,
  { backend, signal }: ToolContext,
): Promise<string> {
  const options = { signal, caseSensitive, regex: true };
  const filter = glob ? patternFrom(glob, path) : null;
  const { matches = [], code } = compileSearch(pattern, options).ok
    ? await backend.grep(pattern, path, filter, MAX_FOUND_AS_EXPRESSION, options)
    : { code: "invalid_pattern" };
  const [first] = matches;
  const most = matches.length === MAX_FOUND_AS_EXPRESSION ? "at least " : "";
  const finds =
    first === undefined
      ? `as an expression it ${code === undefined ? "matches nothing either" : "cannot be searched"}`
      : `with regex: true it matches ${most}${counted(matches.length, "line")}, the first in ${displayName(first.path)}:${first.line}`;
  return `[the pattern was searched as literal text; ${finds}]`;
}
