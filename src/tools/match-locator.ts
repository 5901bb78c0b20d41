import { RE2JS } from "re2js";
import type { MatchLocator } from "./grep-format.ts";

export interface LocateOptions {
  pattern: string;
  regex: boolean;
  case_sensitive: boolean;
}

/**
 * Finds a match in a line that is too long to show whole. It only chooses the part to show, so a pattern
 * that this engine reads differently from the backend's shows the start of the line instead.
 */
export function matchLocator(options: LocateOptions): MatchLocator {
  return options.regex ? expressionLocator(options) : literalLocator(options);
}

function literalLocator({ pattern, case_sensitive: caseSensitive }: LocateOptions): MatchLocator {
  const fold = (text: string): string => (caseSensitive ? text : text.toLowerCase());
  const wanted = fold(pattern);
  return (line) => {
    const start = fold(line).indexOf(wanted);
    return start < 0 ? undefined : { start, length: wanted.length };
  };
}

function expressionLocator({ pattern, case_sensitive: caseSensitive }: LocateOptions): MatchLocator {
  const compiled = compile(pattern, caseSensitive ? 0 : RE2JS.CASE_INSENSITIVE);
  return (line) => {
    const matcher = compiled?.matcher(line);
    if (!matcher?.find()) return undefined;
    return { start: matcher.start(), length: matcher.end() - matcher.start() };
  };
}

function compile(pattern: string, flags: number): RE2JS | undefined {
  try {
    return RE2JS.compile(pattern, flags);
  } catch {
    return undefined;
  }
}
