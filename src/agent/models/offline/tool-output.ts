import { trimEndOf } from "../../../core/text.ts";
/**
 * Reads what the file tools answer. Lenient: a line that does not fit is left out, never an error.
 */

export interface Entry {
  /** Without a trailing slash. */
  path: string;
  directory: boolean;
}

export interface Match {
  path: string;
  line: number;
  text: string;
}

/** Lines of `ls`: `/a/b.ts (12 bytes, modified …)` and `/a/ (directory)`. */
export function parseListing(output: string): Entry[] {
  return output.split("\n").flatMap((line) => {
    if (!line.startsWith("/")) return [];
    const path = line.replace(/ \((?:directory|\d[^()]*)\)\s*$/, "").trimEnd();
    const directory = path.endsWith("/") || line.trimEnd().endsWith("(directory)");
    const bare = trimEndOf(path, "/");
    return bare === "" ? [] : [{ path: bare, directory }];
  });
}

/** File paths of `glob`, and how many more there are than it shows. */
export function parsePaths(output: string): { paths: string[]; more: number } {
  const paths = output.split("\n").filter((line) => line.startsWith("/") && !line.endsWith("/"));
  const more = Number(/^\[(\d+) more not shown/m.exec(output)?.[1] ?? 0);
  return { paths, more };
}

/** Matches of `grep` in its form `content`: a line `/path:`, below it `  12: text`. */
export function parseMatches(output: string): Match[] {
  const matches: Match[] = [];
  let path: string | undefined;
  for (const line of output.split("\n")) {
    if (line.startsWith("/") && line.endsWith(":")) {
      path = line.slice(0, -1);
      continue;
    }
    const hit = /^\s+(\d+): ?(.*)$/.exec(line);
    if (path !== undefined && hit) matches.push({ path, line: Number(hit[1]), text: (hit[2] ?? "").trim() });
  }
  return matches;
}

/** Lines of `read_file`, those between two numbers counted on; continued pieces of a long line are left out. */
export function parseLines(output: string): { line: number; text: string }[] {
  let line = 0;
  return output.split("\n").flatMap((row) => {
    const [, label, text = ""] = /^(\d*)\t(.*)$/.exec(row) ?? [];
    if (label === undefined) return [];
    line = label === "" ? line + 1 : Number(label);
    return [{ line, text }];
  });
}
