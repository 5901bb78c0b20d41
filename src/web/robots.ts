/** The rules of robots.txt (RFC 9309) for one reader. */

interface RobotsRule {
  /** Parts of the pattern, between its wildcards. */
  parts: readonly string[];
  /** The pattern ends with `$`. */
  isWhole: boolean;
  /** Number of bytes of the pattern: the longest that matches counts. */
  length: number;
  allows: boolean;
}

/** Longer files are read up to here; the standard asks for as much. */
export const MAX_ROBOTS_BYTES = 500 * 1024;

/** True if the path and query of a URL may be read. */
export type RobotsRules = (url: URL) => boolean;

/** Reads a robots.txt for the reader with this name, in small letters. */
export function readRobots(text: string, name: string): RobotsRules {
  const own: RobotsRule[] = [];
  const others: RobotsRule[] = [];
  let hasOwn = false;
  /** The readers that the current group names. */
  let group = { isOwn: false, isOthers: false };
  let isNaming = false;
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, key = "", value = ""] = /^\s*([\w-]+)\s*:\s*([^#]*)/.exec(line) ?? [];
    const field = key.toLowerCase();
    if (field === "user-agent") {
      if (!isNaming) group = { isOwn: false, isOthers: false };
      isNaming = true;
      const agent = value.trim().toLowerCase();
      group.isOthers ||= agent === "*";
      group.isOwn ||= agent.split(/[/\s]/, 1)[0] === name;
      hasOwn ||= group.isOwn;
    } else if (field === "allow" || field === "disallow") {
      isNaming = false;
      const pattern = value.trim();
      const rules = group.isOwn ? own : group.isOthers ? others : undefined;
      if (pattern === "" || rules === undefined || rules.length >= 5000) continue;
      const isWhole = pattern.endsWith("$");
      const path = normal(isWhole ? pattern.slice(0, -1) : pattern);
      rules.push({ parts: path.split(/\*+/), isWhole, length: path.length, allows: field === "allow" });
    }
  }
  const rules = hasOwn ? own : others;
  return (url) => allows(rules, url);
}

function allows(rules: readonly RobotsRule[], url: URL): boolean {
  const path = normal(url.pathname + url.search);
  const [best] = rules
    .filter((rule) => matches(rule, path))
    .sort((a, b) => b.length - a.length || Number(b.allows) - Number(a.allows));
  return path === "/robots.txt" || (best?.allows ?? true);
}

/** Finds each part after the one before it, as early as possible; the last one of a whole pattern at the end. */
function matches({ parts, isWhole }: RobotsRule, path: string): boolean {
  const [first = "", ...rest] = parts;
  if (!path.startsWith(first)) return false;
  if (rest.length === 0) return !isWhole || path.length === first.length;
  let at = first.length;
  const last = isWhole ? rest.pop() : undefined;
  for (const part of rest) {
    const found = path.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return last === undefined || (path.length - last.length >= at && path.endsWith(last));
}

/** One spelling of the same path: characters outside ASCII as escapes, and escapes in capitals. */
function normal(path: string): string {
  const escaped = path.replace(/[^\x21-\x7e]/gu, (character) => encodeURIComponent(character.toWellFormed()));
  return escaped.replace(/%[0-9a-f]{2}/gi, (escape) => escape.toUpperCase());
}
