/** Reads glob patterns as models write them. */
import { compileGlob } from "../backends/glob.ts";
import { displayName } from "../core/text.ts";

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
export const readAs = (pattern: string): string =>
  `[nothing matches the pattern as it stands; it was read as ${displayName(pattern)}]`;
