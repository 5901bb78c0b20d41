import { z } from "zod";
import { compileGlob, patternFrom } from "../backends/glob.ts";
import { displayName, fill } from "../core/text.ts";
import { backendError, failedAt, lookedAtRoot, pathText, pathTool, patternText } from "./call.ts";
import { counted, withNotices } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { ToolSpec } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

const globSchema = z.strictObject({
  pattern: patternText().describe("For example **/*.ts or src/{a,b}*.md"),
  path: pathText().optional().describe("Directory. Default: /"),
});

export const globTool = (settings: FileToolSettings): ToolSpec<typeof globSchema> =>
  pathTool(
    {
      name: "glob",
      kind: "read",
      description: fill(texts.glob, MAX_LINES),
      schema: globSchema,
      async work({ pattern: given }, { path }, context) {
        const { backend, signal } = context;
        const pattern = patternFrom(given, path);
        const compiled = compileGlob(pattern);
        if (!compiled.ok) return backendError(compiled, path);
        const literal = await backend.glob(pattern, path, { signal });
        if (literal.error !== undefined) return failedAt(path, literal, context);
        const hasNone = literal.files?.length === 0 && literal.truncated !== true;
        const other = hasNone ? otherReading(given) : undefined;
        const meant =
          other === undefined ? {} : await backend.glob(patternFrom(other, path), path, { signal });
        const isOther = other !== undefined && (meant.files ?? []).length > 0;
        const { files = [], truncated = false, skipped = 0, notes = [] } = isOther ? meant : literal;
        const paths = files.slice(0, MAX_LINES).map((file) => file.path);
        const hidden = files.length - paths.length;
        const isNowhere = paths.length === 0 && !truncated;
        const notices = [
          ...(isNowhere ? await lookedAtRoot(compiled.glob, path, context) : []),
          ...(isOther ? [readAs(other)] : []),
          ...(hidden > 0 ? [`[${hidden} more not shown; narrow the pattern]`] : []),
          ...(truncated ? ["[the search stopped before it was complete; narrow the pattern or path]"] : []),
          ...(skipped > 0
            ? [`[${counted(skipped, "directory", "directories")} could not be searched: permission denied]`]
            : []),
          ...notes.map((note) => `[not searched: ${displayName(note)}]`),
        ];
        const none = `No files found matching pattern '${displayName(given)}' in ${displayName(path)}`;
        const text = paths.map(displayName).join("\n") || none;
        const artifact = { paths, count: files.length, truncated, skipped };
        return { content: withNotices(text, notices), artifact };
      },
      isTried: async ({ pattern }, { path }, { backend, signal }) =>
        !compileGlob(patternFrom(pattern, path)).ok ||
        (await backend.ls(path, { signal })).files?.[0]?.path === path,
    },
    settings,
  );

const MAX_LINES = 1000;

/**
 * Another reading of a pattern that found nothing as it stands: without quotes around it, as several patterns in one,
 * with separators of Windows, `**.ts`, groups of shells, or brackets that are part of a name, such as routes of
 * Next.js. `undefined`: there is none.
 */
export function otherReading(given: string): string | undefined {
  const bare = given.trim().replace(/^(["'`])([^]*)\1$/, "$2");
  const slashed = WINDOWS.test(bare) ? bare.replaceAll("\\", "/") : bare;
  const pattern = slashed
    .replaceAll(GROUP, (_, options: string) => `{${options.replaceAll("|", ",")}}`)
    .replaceAll(/\{[^{}]*\}/g, (braces) =>
      braces
        .split(/(?<=[{},])|(?=[{},])/)
        .map((part) => part.trim())
        .join(""),
    )
    .replaceAll(/(?<=^|[/,{\s])\*\*(?=[^/*,}\s])/g, "**/*")
    .replaceAll(NAME_IN_BRACKETS, (brackets) => brackets.replaceAll(/[[\]]/g, String.raw`\$&`));
  const parts = pattern.split(/\s*[,|\s]\s*(?![^{]*\})/);
  const reading =
    parts.length > 1 && parts.every((part) => part.includes("*")) ? `{${parts.join(",")}}` : pattern;
  return reading !== given && compileGlob(reading, { fromRoot: true }).ok ? reading : undefined;
}

/** No `/`, and no backslash in front of a character that it could escape but `*`. */
const WINDOWS = /^[\w.*-][^/\\]*(?:\\[\w.*][^/\\]*)+$/;
/** `@(a|b)`, `+(a|b)` and `(a|b)`. */
const GROUP = /[@+]?\(([^()|/{}]+(?:\|[^()|/{}]+)+)\)/g;
const NAME_IN_BRACKETS = /(?<=^|\/)\[{1,2}(?:\.{3})?\w+\]{1,2}(?=$|[/.])/g;

/** Names for a model the pattern that found something. */
export const readAs = (pattern: string): string => fill(texts.otherPattern, displayName(pattern));
